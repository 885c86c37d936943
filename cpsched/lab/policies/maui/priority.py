"""The priority of a job in Maui: a weighted sum of components (MAUI-3 to MAUI-6), with past usage (MAUI-5)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import Arrangement, Job
from cpsched.lab.policies.maui.params import Credential, Exemption, MauiParams, Qos, Target, Weights


class UsageHistory:
    """The usage of each consumer, window by window; mutable.

    The usage of running jobs is kept as a rate, and added up over time; the last column is the total.

    `origin`: the begin of a window (s).
    `interval`, `depth`, `decay`: seconds of a window, the number of windows that count, and the weight of each relative
      to the next younger one.
    """

    def __init__(self, *, origin: int, interval: int, depth: int, decay: float, count: int) -> None:
        self._origin, self._interval, self._depth = origin, interval, depth
        self._factors = decay ** np.arange(depth, dtype=np.float64)
        #: The youngest window first.
        self._windows: NDArray[np.float64] = np.zeros((depth, count + 1), dtype=np.float64)
        self._rates: NDArray[np.float64] = np.zeros(count + 1, dtype=np.float64)
        self._now = origin

    def advance(self, now: int) -> None:
        """Add up usage until `now`, which is not before the last time."""
        while self._window_of(self._now) < self._window_of(now):
            border = self._origin + (self._window_of(self._now) + 1) * self._interval
            self._windows[0] += self._rates * (border - self._now)
            self._windows = np.roll(self._windows, 1, axis=0)
            self._windows[0] = 0
            self._now = border
        self._windows[0] += self._rates * (now - self._now)
        self._now = now

    def change(self, who: NDArray[np.int64], rate: float, since: int) -> None:
        """Begin or (negative) end the usage of a job, which may count for several consumers; `since`: by now."""
        columns = np.append(who, -1)
        self._rates[columns] += rate
        youngest = self._window_of(self._now)
        for age in range(self._depth):
            border = self._origin + (youngest - age) * self._interval
            until = self._now if age == 0 else border + self._interval
            self._windows[age, columns] += rate * max(0, until - max(since, border))
            if since >= border:
                return

    def percentages(self) -> NDArray[np.float64]:
        """Return the share of each in all usage, in percent: the sum of decay^i own_i over that of decay^i total_i."""
        weighted = self._factors @ self._windows
        if weighted[-1] <= 0:
            return np.zeros(len(weighted) - 1)
        shares: NDArray[np.float64] = 100 * weighted[:-1] / weighted[-1]
        return shares

    def _window_of(self, time: int) -> int:
        return (time - self._origin) // self._interval


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A target counts for no more than this: where it is nearer than 1 % of itself, or missed.
_NEAREST = 0.01
_NO_QOS = Qos()


def expansion_factor(wait: Floats, walltime: Ints) -> Floats:
    """Return (wait + walltime) / walltime (MAUI-3): after an hour 3.0 for half an hour, 1.1 for ten."""
    factor: Floats = (wait + walltime) / walltime
    return factor


def target_factor(value: Floats, target: Floats) -> Floats:
    """Return how near something that grows is to its target: (target / what is left)^2, from 1 to 10,000.

    The paper names the distance to the target only, and the manual says that it grows ever faster; the formula is ours.
    What has no target (nan) has the factor 0.
    """
    left = np.maximum((target - value) / target, _NEAREST)
    factor: Floats = np.where(np.isnan(target), 0.0, left**-2.0)
    return factor


def qos_name(params: MauiParams, job: Job) -> str | None:
    """Return the quality of service of a job: its user's, else its group's, else its account's (MAUI-6)."""
    for credential, members in ((job.user, "users"), (job.group, "groups"), (job.project, "accounts")):
        for name, qos in params.qos.items():
            if credential is not None and credential in getattr(qos, members):
                return name
    return None


class Priorities:
    """The priorities of a workload's jobs; mutable: usage and bypasses are counted (MAUI-4).

    `params`: the weights, and what they are for.
    `jobs`: by their numbers.
    `submit`, `walltime`, `cores`: what these have.
    `origin`: when the first window of fairshare begins (s).
    """

    def __init__(
        self, params: MauiParams, jobs: Sequence[Job], submit: Ints, walltime: Ints, cores: Floats, origin: int
    ) -> None:
        self._weights = params.weights
        self._submit, self._cores = submit, cores
        self._walltime = np.maximum(walltime, 1)
        names = [qos_name(params, job) for job in jobs]
        #: The quality of service of each job; the default one where it has none.
        self.qos: list[Qos] = [_NO_QOS if name is None else params.qos[name] for name in names]
        credentials = [
            {
                Credential.USER: job.user,
                Credential.GROUP: job.group,
                Credential.ACCOUNT: job.project,
                Credential.QUEUE: job.queue,
                Credential.QOS: name,
            }
            for job, name in zip(jobs, names, strict=True)
        ]
        self._fixed = self._fixed_parts(params, jobs, credentials)
        self._targets: Floats = np.array(
            [(qos.target_queue_time or np.nan, qos.target_xfactor or np.nan) for qos in self.qos], dtype=np.float64
        ).reshape(-1, 2)
        self._bypassed: Ints = np.zeros(len(jobs), dtype=np.int64)
        # whether past usage can change any priority
        has_fairshare = any(_fairshare_weight(params.weights, Credential(kind)) for kind in params.fairshare.targets)
        self._shares = _Shares(params, credentials, self.qos, origin) if has_fairshare else None

    def _fixed_parts(
        self, params: MauiParams, jobs: Sequence[Job], credentials: Sequence[dict[Credential, str | None]]
    ) -> Floats:
        """Return the part of a job's priority that does not change while it waits: credentials and resources."""
        w = self._weights
        tables = [
            (kind, getattr(w, kind), params.priorities[kind])
            for kind in Credential
            if kind in params.priorities and getattr(w, kind)
        ]
        fixed: Floats = w.processors * self._cores
        fixed = fixed + w.processor_seconds * self._cores * self._walltime + w.walltime * self._walltime
        for number, job in enumerate(jobs):
            known = credentials[number]
            by_name = sum(weight * table.get(known[kind] or "", 0) for kind, weight, table in tables)
            fixed[number] += by_name + w.qos * self.qos[number].priority
            if w.nodes or w.memory:
                fixed[number] += w.nodes * _nodes(job) + w.memory * job.request.totals.get("mem", 0)
        return fixed

    def of(self, jobs: Ints, now: int) -> Floats:
        """Return the priorities of some waiting jobs."""
        w = self._weights
        wait = (now - self._submit[jobs]).astype(np.float64)
        found: Floats = self._fixed[jobs] + w.queue_time * wait / 60
        if w.xfactor:
            found += w.xfactor * expansion_factor(wait, self._walltime[jobs])
        if w.bypass:
            found += w.bypass * self._bypassed[jobs]
        if w.target_queue_time:
            found += w.target_queue_time * target_factor(wait, self._targets[jobs, 0])
        if w.target_xfactor:
            factor = expansion_factor(wait, self._walltime[jobs])
            found += w.target_xfactor * target_factor(factor, self._targets[jobs, 1])
        if self._shares is not None:
            found += self._shares.terms(jobs)
        return found

    def bypass(self, jobs: Sequence[int]) -> None:
        """Record that another job was started before these, although their priorities are higher."""
        if jobs:
            self._bypassed[list(jobs)] += 1

    def advance(self, now: int) -> None:
        """Add up usage until now."""
        if self._shares is not None:
            self._shares.history.advance(now)

    def begin(self, job: int, start: int) -> None:
        """Count the usage of a job from its start on, which is not later than now."""
        if self._shares is not None:
            self._shares.history.change(self._shares.columns_of(job), float(self._cores[job]), start)

    def end(self, job: int, end: int) -> None:
        """Count no usage of a job after its end, which is not later than now."""
        if self._shares is not None:
            self._shares.history.change(self._shares.columns_of(job), -float(self._cores[job]), end)


class _Shares:
    """Fairshare: the consumers, their usage, and its part of the priorities; mutable."""

    def __init__(
        self, params: MauiParams, credentials: Sequence[dict[Credential, str | None]], qos: Sequence[Qos], origin: int
    ) -> None:
        fairshare = params.fairshare
        #: One for each credential with a target that counts: its weight and its target.
        self._aims: list[tuple[float, Target]] = []
        number: dict[tuple[Credential, str], int] = {}
        for kind in Credential:
            weight = _fairshare_weight(params.weights, kind)
            for name, text in fairshare.targets.get(kind, {}).items() if weight else ():
                number[kind, name] = len(self._aims)
                self._aims.append((weight, Target.of(text)))
        self._columns = [
            [number[kind, name] for kind, name in known.items() if name is not None and (kind, name) in number]
            for known in credentials
        ]
        #: For each job which aims it has, at most one of each kind; the column after the last means none.
        self._aims_of: Ints = np.full((len(qos), len(Credential)), len(self._aims), dtype=np.int64)
        for job, columns in enumerate(self._columns):
            if Exemption.FAIRSHARE not in qos[job].exempt:
                self._aims_of[job, : len(columns)] = columns
        self.history = UsageHistory(
            origin=origin,
            interval=fairshare.interval,
            depth=fairshare.depth,
            decay=fairshare.decay,
            count=len(self._aims),
        )

    def columns_of(self, job: int) -> Ints:
        """Return the consumers of a job's usage."""
        return np.array(self._columns[job], dtype=np.int64)

    def terms(self, jobs: Ints) -> Floats:
        """Return the sum over each job's credentials of weight times distance to the target."""
        usage = self.history.percentages()
        by_aim = [weight * target.distance(used) for (weight, target), used in zip(self._aims, usage, strict=True)]
        found: Floats = np.array([*by_aim, 0.0])[self._aims_of[jobs]].sum(axis=1)
        return found


def _fairshare_weight(weights: Weights, kind: Credential) -> float:
    return float(getattr(weights, f"fairshare_{kind}"))


def _nodes(job: Job) -> int:
    """Return the most nodes of a job: each of its chunks may have a node of its own."""
    if job.request.place.arrangement is Arrangement.PACK:
        return 1
    return sum(chunk.count for chunk in job.request.chunks)
