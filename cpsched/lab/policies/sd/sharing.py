"""The jobs that share nodes while a simulation runs: guests, their mates, and possible mates (SD-4 to SD-11)."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import modes
from cpsched.lab.policies.sd.mates import SdRule
from cpsched.lab.policies.sd.owners import Owners
from cpsched.lab.policies.sd.partners import Guest, Pace, guest_of, predicted_end
from cpsched.lab.policies.sd.static_backfill import FutureMap
from cpsched.lab.sim import Change, Site, Start

Modes = NDArray[np.int8]


class Sharing:
    """Guests and mates under one rule; mutable.

    `site`, `future`: the simulation, and the map on which nodes are kept for jobs that share.
    `by_value`: whether a guest starts only if it saves more slowdown than its mates lose, and its mates are those that
      lose least.
    """

    def __init__(self, site: Site, future: FutureMap, rule: SdRule, *, by_value: bool = False) -> None:
        self._site, self._future, self._rule = site, future, rule
        self._number = {job.id: index for index, job in enumerate(site.jobs)}
        #: Jobs as guests, if they were tried as such.
        self._asked: dict[int, Guest | None] = {}
        self._owners, self._by_value = Owners(site, rule, by_loss=by_value), by_value
        #: The mates of each guest that runs, while they run, and the other way round.
        self._mates: dict[int, tuple[int, ...]] = {}
        self._guest: dict[int, int] = {}
        self._pace: dict[int, Pace] = {}
        #: The predicted ends of jobs that share (SD-11), and of those that have just ceased to share.
        self._ends: dict[int, int] = {}
        #: In which modes those run that are not at full share, as decided.
        self._modes: dict[int, Modes] = {}
        #: The decisions of this second, and the state before them.
        self._starts: dict[int, Start] = {}
        self._changed: dict[int, Modes | None] = {}
        self._decided_at = site.now
        #: The jobs that were started as guests, and those that have lent (SD-12).
        self.guests: set[int] = set()
        self.lenders: set[int] = set()
        self._recover()

    def _recover(self) -> None:
        """Find guests and mates among the running jobs: of two jobs on a node the guest has started last."""
        site, on_node, mates = self._site, dict[int, int](), dict[int, set[int]]()
        running = [job for job in site.running.tolist() if site.jobs[job].malleability is not None]
        for job in sorted(running, key=lambda job: (site.start_of(job), job)):
            entries = site.entries_of(job)
            nodes = entries[:, 0].tolist()
            found = {on_node[node] for node in nodes if node in on_node}
            if found and self._guest_for(job) is not None:
                mates[job] = found
            elif len(entries):
                self._owners.add(job, entries, site.now + site.work_left(job))
                on_node.update((node, job) for node in nodes if job in self._owners.of)
        lending = {mate for found in mates.values() for mate in found}
        for job in set(self._owners.of) - lending:
            if site.modes_of(job).any():  # no mate has what it lacks
                self._owners.drop(job)
        for guest, found in mates.items():
            self._mates[guest] = tuple(sorted(found))
            for mate in found:
                self._guest[mate], self._modes[mate] = guest, site.modes_of(mate).copy()
                self._owners.lend(mate)
            self._pace[guest], self._modes[guest] = self._pace_of(guest), site.modes_of(guest).copy()
            self._predict(guest)

    @property
    def starts(self) -> list[Start]:
        """The jobs that start in this second."""
        return list(self._starts.values())

    @property
    def changes(self) -> list[Change]:
        """The jobs that change in this second."""
        found = []
        for job, before in self._changed.items():
            full = np.zeros(len(self._site.entries_of(job)), dtype=np.int8)
            after = self._modes.get(job, full)
            if not np.array_equal(after, full if before is None else before):
                found.append(Change(job, after))
        return found

    def follow(self, gone: Sequence[int]) -> None:
        """Follow the events of the simulation: a job that shared with an ended job has its nodes for itself (SD-10)."""
        over = {*gone, *(job for job in self._starts if not self._site.is_running(job))}
        decided = [job for job in (*self._starts, *self._changed) if job not in over]
        late = [job for job in decided if self._site.since(job) != self._decided_at]
        kept = set(self._changed)
        self._starts, self._changed, self._decided_at = {}, {}, self._site.now
        self._ends = {job: end for job, end in self._ends.items() if job in self._mates or job in self._guest}
        parted = {self._guest.get(job, job) for job in over} & self._mates.keys()
        for job in over:
            self._owners.remove(job)
            for known in (self._guest, self._ends, self._modes):
                known.pop(job, None)
        for guest in sorted(parted):
            self._part(guest, over)
        for job in late:
            self._put_right(job, is_kept=job in kept)
        if self._future.is_void:
            for guest in self._mates:
                if self._drifts(guest):
                    self._predict(guest)

    def _put_right(self, job: int, *, is_kept: bool) -> None:
        """Reckon anew with a job that has begun, or changed, later than it was decided."""
        guest = self._guest.get(job, job)
        if guest in self._mates:
            self._predict(guest)
        elif self._owners.is_idle(job):
            end = self._owners.add_again(job)
            if is_kept:
                self._keep(job, end, self._owners.of[job].entries)

    def _part(self, guest: int, over: set[int]) -> None:
        """Give a guest and its mates the cores of those of them that have ended."""
        left = tuple(mate for mate in self._mates.pop(guest) if mate not in over)
        if guest not in over:
            self._mates[guest] = left
            self._expand(guest)
            return
        for mate in left:
            del self._guest[mate]
            self._change(mate, None)
            over_at = self._owners.add_again(mate)
            self._keep(mate, over_at, self._owners.of[mate].entries)

    def _expand(self, job: int) -> None:
        """Give a guest all cores of those of its nodes whose owners have ended."""
        self._pace[job] = self._pace_of(job)
        self._change(job, np.where(self._is_lent(job), self._mode(job, self._rule.guest_share), 0).astype(np.int8))
        del self._ends[job]  # even if that stays: it has nodes of its own now
        self._predict(job)

    def _pace_of(self, job: int) -> Pace:
        """Return how fast a guest is that runs, with all cores of its own nodes."""
        entries, is_lent = self._site.entries_of(job), self._is_lent(job)
        guest, names = self._asked[job], self._site.columns.node_names
        assert guest is not None  # noqa: S101 - it runs as one
        shared = [names[node] for node in entries[is_lent, 0].tolist()]
        own = [names[node] for node in entries[~is_lent, 0].tolist()]
        return guest.pace_on(guest.allocation(shared, own))

    def _is_lent(self, guest: int) -> NDArray[np.bool_]:
        """Return which entries of a guest are on nodes of others."""
        lent = [self._owners.of[mate].nodes for mate in self._mates[guest]]
        found: NDArray[np.bool_] = np.isin(
            self._site.entries_of(guest)[:, 0], np.concatenate([*lent, np.zeros(0, np.int32)])
        )
        return found

    def cut_off(self) -> float:
        """Return the cut-off of a mate's penalty (SD-5)."""
        limit = self._rule.max_slowdown
        if limit is not None:
            return limit
        site = self._site
        ends = dict(zip(site.running.tolist(), site.ends.tolist(), strict=True))
        ends |= {job: site.now + site.estimate(job) for job in self._starts} | self._ends
        jobs, last = list(ends), np.array(list(ends.values()), dtype=np.int64)
        return float(((last - site.submit[jobs]) / site.walltime[jobs]).mean()) if jobs else 0.0

    def _drifts(self, guest: int) -> bool:
        """Return whether predicted ends get earlier over time, since they are cautious."""
        paces = [self._pace[guest], *(self._owners.of[mate].lender.pace for mate in self._mates[guest])]
        return any(pace.real != pace.cautious for pace in paces)

    def _predict(self, guest: int) -> None:
        """Renew the predicted ends of a guest and its mates, and keep their nodes for them until then (SD-11)."""
        now = self._site.now
        until = predicted_end(self._work(guest), self._pace[guest], now)
        if self._ends.get(guest) != until:
            own = None if guest in self._starts else self._site.entries_of(guest)[~self._is_lent(guest)]
            self._keep(guest, until, own)
        for mate in self._mates[guest]:
            owner = self._owners.of[mate]
            end = predicted_end(self._work(mate), owner.lender.pace, now, until)
            if self._ends.get(mate) != end:
                self._keep(mate, end, owner.entries)

    def _work(self, job: int) -> Fraction:
        return Fraction(self._site.jobs[job].walltime) if job in self._starts else self._site.work_left(job)

    def _keep(self, job: int, end: int, entries: NDArray[np.int32] | None) -> None:
        """Keep nodes for a job as a whole until its predicted end: those on which it has entries of its own."""
        self._ends[job] = end
        self._future.keep(job, self._future.whole(job, np.zeros((0, 3), np.int32) if entries is None else entries, end))

    def start(self, start: Start) -> None:
        """Start a job as reserved (the static attempt)."""
        self._starts[start.job] = start
        self._owners.enter(start.job, start.entries)
        job = self._site.jobs[start.job]
        if job.malleability is not None:
            self._owners.add(start.job, start.entries, Fraction(self._site.now + job.walltime))

    def borrow(self, job: int, cut_off: float) -> bool:
        """Start a job on the nodes of others if it ends earlier so, and they are to be had (the malleable attempt)."""
        guest, reserved = self._guest_for(job), self._future.start_of(job)
        if guest is None or reserved is None or reserved + guest.job.walltime <= self._site.now + guest.seconds:
            return False
        chosen = self._owners.mates_of(guest, cut_off)
        if chosen is None:
            return False
        saved = Fraction(reserved + guest.job.walltime - self._site.now - guest.seconds, guest.job.walltime)
        if self._by_value and sum(mate.penalty for mate in chosen) >= saved:
            return False
        self._share(job, guest, tuple(self._number[mate.job_id] for mate in chosen))
        return True

    def _guest_for(self, job: int) -> Guest | None:
        if job not in self._asked:
            found = self._site.jobs[job]
            self._asked[job] = None if found.malleability is None else guest_of(found, self._rule)
        return self._asked[job]

    def _share(self, job: int, guest: Guest, mates: tuple[int, ...]) -> None:
        """Start a guest, and let its mates lend to it."""
        for mate in mates:
            self._guest[mate] = job
            self._owners.lend(mate)
            self._change(mate, self._uniform(mate, self._owners.of[mate].entries, self._rule.mate_share))
        nodes = np.sort(np.concatenate([self._owners.of[mate].nodes for mate in mates]))
        kind = self._site.columns.demands.kinds_of(int(self._site.demand[job]))[0][0]
        entries = np.stack([nodes, np.full(len(nodes), kind), np.ones(len(nodes))], axis=1).astype(np.int32)
        self._modes[job] = self._uniform(job, entries, self._rule.guest_share)
        self._starts[job] = Start(job, entries, self._modes[job])
        self._owners.enter(job, entries)
        self._mates[job], self._pace[job] = mates, guest.pace
        self.guests.add(job)
        self.lenders.update(mates)
        self._predict(job)

    def _change(self, job: int, chosen: Modes | None) -> None:
        """Change the modes of a running job; None: full share."""
        begun = self._starts.get(job)
        if begun is None:
            self._changed.setdefault(job, self._modes.get(job))
        else:
            self._starts[job] = Start(job, begun.entries, chosen)
        if chosen is None:
            self._modes.pop(job, None)
        else:
            self._modes[job] = chosen

    def _mode(self, job: int, share: float) -> int:
        return next(number for number, mode in enumerate(modes(self._site.jobs[job])) if mode.share == share)

    def _uniform(self, job: int, entries: NDArray[np.int32], share: float) -> Modes:
        return np.full(len(entries), self._mode(job, share), dtype=np.int8)
