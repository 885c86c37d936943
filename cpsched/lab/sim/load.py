"""A workload as arrays: what the event loops need to know of its jobs, and of the machine."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpsched.booking import CheapFirst, Columns
from cpsched.domain import FOR_EVER, DependencyType, Instance, Job, Preemption, StopKind, WaitingReason
from cpsched.errors import UnsupportedError
from cpsched.lab.sim import arrays
from cpsched.lab.sim.arrays import C, R, S
from cpsched.lab.sim.holds import asides_of
from cpsched.lab.sim.shares import modes_of_jobs
from cpsched.metrics import Ending
from cpsched.planner import slices_of
from cpsched.problem import compiled, dominant_share, refusal, refusals, stated_node
from cpsched.rusv import FOREVER, Timeline, grouped, instant_kernels

_TYPES = {
    DependencyType.AFTER: arrays.AFTER_START,
    DependencyType.AFTEROK: arrays.AFTER_OK,
    DependencyType.AFTERANY: arrays.AFTER_ANY,
    DependencyType.AFTERNOTOK: arrays.AFTER_NOT_OK,
}

#: The most reservations on nodes that a queue rule keeps at a time; where jobs are counted there is no limit.
_RESERVED = 32

#: The reason for refusing a job whose kinds of chunks fit one by one, but not together.
_NOT_MAPPED = "each kind of its chunks finds room by itself, but no way was found to place all on the empty machine"

Ints = NDArray[np.int64]


def unsupported(instance: Instance) -> tuple[str, ...]:
    """Return the features of a workload that no simulation can honour yet, each with its path."""
    found = [f"cluster.consumed: the licence {name} does not come back" for name in instance.cluster.consumed]
    if instance.now < 0:
        found.append(f"now: a clock that begins at {instance.now}, before second 0")
    kinds = instance.kinds()
    has_asides = bool(instance.set_aside) or any(job.start_at is not None for job in instance.jobs)
    for job in instance.jobs:
        if job.after and job.is_hurried:
            found.append(f"job {job.id}: starts at most some time after another (max_delay)")
        if job.alternatives and (job.deadline is not None or job.start_at is not None):
            found.append(f"job {job.id}: has alternatives, and a deadline or one start")
        if instance.cluster.slowdown and (job.changes or job.resizable is not None or job.preemptible is not None):
            found.append(f"job {job.id}: changes while it runs or may be stopped, and may be slower (cluster.slowdown)")
        is_suspended = job.preemptible is not None and job.preemptible.by is StopKind.SUSPEND
        if is_suspended and instance.preemption is not None and has_asides:
            found.append(f"job {job.id}: may be suspended, and amounts are set aside for a time")
        if job.is_evolving:
            beside = {
                "runs already": job.running is not None,
                "accepts one start only": job.start_at is not None,
                "amounts are set aside for a time": bool(instance.set_aside),
                "may stop others": any(instance.may_stop(job, other) for other in kinds),
            }
            found.extend(
                f"job {job.id}: evolves over several steps, and {what}" for what, is_so in beside.items() if is_so
            )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fixed:
    """The allocations of jobs that ran before the beginning."""

    #: int64 (jobs, 2): where a job's columns begin, and how many there are.
    spans: Ints
    columns: Ints
    amounts: Ints
    #: The licences of a job: (job, system column, amount).
    licenses: list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kinds:
    """Which of some jobs share a request and licences: what follows from these alone is found once for each kind."""

    #: The kind of each job.
    number: Ints
    #: A job of each kind.
    examples: tuple[Job, ...]

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> "Kinds":
        """Return the kinds of jobs of one step, by the identity of what they share."""
        numbers: dict[tuple[int, int], int] = {}
        examples, number = list[Job](), list[int]()
        for job in jobs:
            key = id(job.steps[0].request), id(job.licenses)
            if key not in numbers:
                numbers[key] = len(examples)
                examples.append(job)
            number.append(numbers[key])
        return cls(number=np.array(number, dtype=np.int64), examples=tuple(examples))

    def each(self, of: Callable[[Job], float], dtype: type = np.int64) -> NDArray[Any]:
        """Return a number for each job, what it is `of` a job of its kind."""
        return np.array([of(job) for job in self.examples], dtype=dtype)[self.number]


class Load:
    """A workload, its jobs in the order of submission (as in the document, where they came in the same second).

    Raises `UnsupportedError` if the workload asks for something that no simulation can honour yet.

    `feedback`: whether jobs that wait for others are submitted when these release them.
    `stops_small`: whether of jobs that may be stopped small ones are stopped first, and not those that lose least.
    """

    def __init__(self, instance: Instance, *, feedback: bool = False, stops_small: bool = False) -> None:
        #: The workload as it was given, and what its reservations got; `instance` and `jobs` have licences, guards,
        #: nodes of reservations, and amounts set aside in place of rules.
        self.stated, self.slices = instance, slices_of(instance) if instance.reservations else ()
        self.problem = compiled(instance, self.slices, record=True)
        self.instance = instance = self.problem.instance
        features = unsupported(self.stated)
        if instance is not self.stated:
            features = features or unsupported(instance)
        if feedback and not features:  # the second of their submission is open
            features = tuple(
                f"job {job.id}: follows others, and evolves, or has a hard max_wait"
                for job in instance.jobs
                if job.after and (job.is_evolving or instance.must_start_by(job) is not None)
            )
        if features:
            raise UnsupportedError("simulation", features)
        self.now = instance.now
        possible, settled = _possible_choices(instance), self.problem.alternatives
        jobs = tuple(_as_rigid(job, possible, settled) for job in instance.elements())
        stated = jobs
        if instance is not self.stated:
            stated = tuple(_as_rigid(job, possible, settled) for job in self.stated.elements())
        #: The index of each job in the document.
        self.places: Ints = np.argsort([job.submit for job in jobs], kind="stable").astype(np.int64)
        self.jobs: tuple[Job, ...] = tuple(jobs[place] for place in self.places.tolist())
        self.kinds = Kinds.of(self.jobs)
        self.stated_jobs, self._stated_kinds = self.jobs, self.kinds
        if stated is not jobs:
            self.stated_jobs = tuple(stated[place] for place in self.places.tolist())
            self._stated_kinds = Kinds.of(self.stated_jobs)
        #: The jobs of several steps, by index; in `jobs` they are rigid, with what their largest step asks for.
        several = {job.id: job for job in instance.elements() if job.is_evolving}
        self.evolving = {index: several[job.id] for index, job in enumerate(self.jobs) if job.id in several}
        #: The jobs with a choice, by index; in `jobs` they are rigid, by the first choice that could start.
        choosing = {job.id: job for job in instance.elements() if job.alternatives}
        self.choosing = {index: choosing[job.id] for index, job in enumerate(self.jobs) if job.id in choosing}
        self.columns = Columns(instance.cluster, CheapFirst())
        #: Why a job can never start here, by its index: the reason, and in words. It may run already.
        self.refused: dict[int, tuple[WaitingReason, str]] = {}
        self.submit = self._ints(job.submit for job in self.jobs)
        self.walltime = self._ints(job.walltime for job in self.jobs)
        self.runtime = self._ints(-1 if job.runtime is None else job.runtime for job in self.jobs)
        self.expected_wait = self._ints(instance.expected_wait(job) for job in self.jobs)
        self.demand = self._compile()
        for index, evolving_job in self.evolving.items():
            if (verdict := refusal(instance, evolving_job, is_shrunk=False)) is not None:
                self.refused[index], self.demand[index] = verdict, -1
        self._refuse_unmapped()
        #: What they can run by: (number, as a rigid job), without those that could not start; and the same as arrays.
        self.choices = {index: possible[job.id] for index, job in self.choosing.items()}
        self.choices_of, self.choice_rows = self._compile_choices()
        #: Which jobs may change between their choices while they run.
        self.resizable = np.array(
            [job.id in choosing and choosing[job.id].resizable is not None for job in self.jobs], dtype=np.bool_
        )
        #: The modes of malleable jobs, by index.
        self.job_modes = modes_of_jobs(self.jobs, self.demand, self.columns)
        self.cores = self.kinds.each(_cores).astype(np.float64)
        self.users, self.user = _numbered([job.user for job in self.jobs])
        self.latest, self.start_at = self._compile_latest()
        self.before, self.after = self._compile_links()
        #: bool (jobs,): whether a job is submitted when other jobs release it; `submit` is then what the workload says.
        self.follows = (np.bincount(self.after[:, 1], minlength=len(self.jobs)) > 0) & feedback
        self.fixed = self._compile_fixed()
        self.timeline = Timeline(self.columns.demands)
        #: What rules set aside.
        self.asides = asides_of(self)
        #: Who may be stopped, for whom, and what that costs (see `SimState`).
        self.stops, self.stop_rules, self.may_stop, self.stop_weights = self._compile_stops(stops_small)
        #: Which system columns are counters of rules.
        self.of_rules = np.zeros(len(self.columns.demands.layout.system_capacity), dtype=np.bool_)
        rules = self.columns.license_number.keys() - self.stated.cluster.licenses.keys()
        self.of_rules[[self.columns.license_number[name] for name in rules]] = True
        #: Whether a job may be suspended, and which columns are of cores, none if not.
        self.suspends = bool((self.stops[:, S.INTERVAL] < 0).any() and len(self.may_stop))
        self.lends = self.columns.is_of("cores") if self.suspends else np.zeros(0, dtype=np.bool_)
        #: The most entries that the jobs with one start may need.
        booked = np.flatnonzero((self.start_at >= 0) & (self.demand >= 0)).tolist()
        self.spare = 2 * sum(chunk.count for job in booked for chunk in self.jobs[job].request.chunks)

    def _ints(self, values: Iterable[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64, count=len(self.jobs))

    @property
    def lengths(self) -> Ints:
        """How long each job really runs: for its runtime, but no longer than its walltime."""
        return np.where(self.runtime < 0, self.walltime, np.minimum(self.runtime, self.walltime))

    def near(self) -> Ints:
        """Return the group of each node at each level that slows jobs down (levels, nodes), below 0 if it is in none,
        another number for each such node; none of no level.
        """
        cluster = self.stated.cluster
        number = {name: place for place, name in enumerate(cluster.node_names)}
        found = np.zeros((len(cluster.slowdown), len(self.columns.node_names)), dtype=np.int64)
        for row, level in zip(found, cluster.slowdown, strict=True):
            groups = enumerate(cluster.topology[level].values())
            group_of = {node: group for group, nodes in groups for node in nodes}
            names = map(stated_node, self.columns.node_names)
            row[:] = [group_of.get(name, -1 - number[name]) for name in names]
        return found

    @property
    def chunks(self) -> Ints:
        """How many kinds of chunks each job asks for."""
        return self.kinds.each(lambda job: len(job.request.chunks))

    @property
    def endings(self) -> Ints:
        """How each job ends if it runs."""
        return np.where(self.runtime > self.walltime, Ending.KILLED, Ending.COMPLETED).astype(np.int64)

    def _compile(self) -> Ints:
        """Return the demand of each job, -1 of those that can never start; jobs that ask for the same share work."""
        guards = any(guard.max_walltime is not None for c in self.instance.cluster.classes for guard in c.admits)
        bounds = any(queue.max_walltime is not None for queue in self.instance.queues.values())
        known: dict[object, tuple[int, tuple[WaitingReason, str] | None]] = {}
        demands = []
        for number, (job, kind) in enumerate(zip(self.jobs, self.kinds.number.tolist(), strict=True)):
            walltime = job.walltime if guards or bounds else 0
            # a job that its own times leave no start, or that is overdue by a hard max_wait before, can never start
            stated = job.not_before, job.start_at, job.deadline
            times = None if stated == (None, None, None) else (job.submit, job.walltime, *stated)
            key = (kind, job.queue, walltime, times)
            if key not in known:
                verdict = refusal(self.instance, job, is_shrunk=False)
                demand = -1 if verdict else self.columns.compile(job.request, job.licenses, job.walltime)
                known[key] = demand, verdict
            demand, verdict = known[key]
            demands.append(demand)
            if verdict is not None:
                self.refused[number] = verdict
        return self._ints(demands)

    def smith(self) -> NDArray[np.float64]:
        """Return the factor of a job's length in its key by Smith's rule for the sum of weight x wait / expected wait:
        expected wait x dominant share / weight. It is 0 for jobs that can never start.
        """
        return self.shares * self.expected_wait / self.weights

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each job at the beginning."""
        known: dict[object, float] = {}
        weights = np.empty(len(self.jobs), dtype=np.float64)
        for number, job in enumerate(self.jobs):
            key = job.weight, job.queue, job.user, job.project
            if key not in known:
                known[key] = float(self.instance.weight(job))
            weights[number] = known[key]
        return weights

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The dominant share of each job, the largest that it takes of anything; 0 for jobs that can never start."""
        cluster = self.stated.cluster
        found = self._stated_kinds.each(lambda job: float(dominant_share(cluster, job)), np.float64)
        return np.where(self.demand >= 0, found, 0.0)

    def classes(self) -> tuple[Ints, int]:
        """Return the numbers of the classes of each job, from the widest to the narrowest (jobs, 5), and how many there
        are: all jobs; those of the same queue with walltimes of the same power of two; of the same user; with exactly
        this walltime; with as many cores.
        """
        _, queue = _numbered([job.queue for job in self.jobs])
        power = np.frexp(self.walltime.astype(np.float64))[1].astype(np.int64)
        columns = np.stack([queue, power, self.user, self.walltime, self.cores.astype(np.int64)], axis=1)
        found, first = [np.zeros(len(self.jobs), dtype=np.int64)], 1
        _, number = np.unique(columns[:, 0], return_inverse=True)
        for column in columns.T[1:]:
            values, place = np.unique(column, return_inverse=True)
            _, number = np.unique(number * len(values) + place, return_inverse=True)
            found.append(first + number)
            first += int(number.max(initial=-1)) + 1
        return np.stack(found, axis=1).astype(np.int64), first

    def promised(self) -> Ints:
        """Return the last promised start of each job by deadline or hard ``max_wait``; `FOREVER` of all others."""
        due = [self.instance.must_start_by(job) for job in self.jobs]
        return np.minimum(self.latest, self._ints(FOREVER if last is None else last for last in due))

    def asked(self) -> dict[str, Ints]:
        """Return the request of each job for each resource of the machine, licences too."""
        cluster, kinds = self.stated.cluster, self._stated_kinds
        return {name: kinds.each(partial(amount_of, name)) for name in (*cluster.totals, *cluster.licenses)}

    def asked_of_all(self) -> tuple[Ints, Ints]:
        """Return the amounts that jobs ask for, of all that any of them does, (jobs, A), and the machine's, (A,)."""
        has = {**self.stated.cluster.totals, **self.stated.cluster.licenses}
        asked = {name: amounts for name, amounts in self.asked().items() if amounts.any()}
        amounts = np.array(list(asked.values()), dtype=np.int64).reshape(len(asked), len(self.jobs))
        return amounts.T.copy(), np.array([has[name] for name in asked], dtype=np.int64)

    def _compile_choices(self) -> tuple[Ints, Ints]:
        """Return where the choices of each job begin, and all: demand, walltime, real length, cores, number, and the
        seconds after its submission from which on rules take it: what it costs beyond the one that it waits by.
        """
        count, rows = np.zeros(len(self.jobs) + 1, dtype=np.int64), list[tuple[int, ...]]()
        for index, choices in self.choices.items():
            if self.demand[index] >= 0 and len(choices) > 1:
                count[index + 1] = len(choices)
                for number, job in choices:
                    demand = self.columns.compile(job.request, job.licenses, job.walltime)
                    length = job.walltime if job.runtime is None else min(job.runtime, job.walltime)
                    since = max(0, job.steps[0].cost - choices[0][1].steps[0].cost)
                    rows.append((demand, job.walltime, length, _cores(job), number, since))
        return np.cumsum(count), np.array(rows, dtype=np.int64).reshape(-1, 6)

    def row_of(self, index: int, choice: int | None) -> int | None:
        """Return which of its choices a job takes by a number, or by None; None: it could not start by that."""
        numbers = [number for number, _ in self.choices.get(index, ())] or [0]
        return 0 if choice is None else numbers.index(choice) if choice in numbers else None

    def job_by(self, index: int, choice: int) -> Job:
        """Return a job as it runs by one of its choices, by its number in the document."""
        return next((job for number, job in self.choices.get(index, ()) if number == choice), self.jobs[index])

    def _refuse_unmapped(self) -> None:
        """Refuse jobs whose several kinds of chunks are not mapped even to the empty machine: they would wait without
        end, and block others.
        """
        demands = np.unique(self.demand[(self.chunks > 1) & (self.demand >= 0)])
        if not len(demands):
            return
        timeline = Timeline(self.columns.demands)
        free, sums = timeline.free_at(0)
        tables, scratch = timeline.instant_views()
        free, sums = free.astype(np.int32), sums.astype(np.int64)
        fits = instant_kernels.map_now
        lost = [demand for demand in demands.tolist() if not fits(demand, free, sums, tables, scratch)]
        for number in np.flatnonzero(np.isin(self.demand, lost)).tolist():
            self.refused[number] = WaitingReason.NOT_MAPPED, _NOT_MAPPED
            self.demand[number] = -1

    def _compile_latest(self) -> tuple[Ints, Ints]:
        """Return the last second at which each job may start, and the only one, -1 if any. Of the window's promises a
        simulation keeps these; a hard ``max_wait`` is left to the scheduler.
        """
        latest = np.full(len(self.jobs), FOREVER, dtype=np.int64)
        start_at = np.full(len(self.jobs), -1, dtype=np.int64)
        closed = self._closed()
        for index, job in enumerate(self.jobs):
            ends = [start for name, start, left in closed if job.licenses.get(name, 0) > left]
            if job.deadline is not None:
                ends.append(job.deadline)
            if ends:
                latest[index] = min(ends) - job.walltime
            if job.start_at is not None and job.running is None:
                latest[index] = start_at[index] = job.start_at
        return latest, start_at

    def _compile_stops(self, is_by_size: bool) -> tuple[Ints, Ints, NDArray[np.bool_], NDArray[np.float64]]:
        """Return what each job may stop and keeps when it is stopped, the rules, whose jobs may stop whose, and what a
        second of their work is worth; nothing where no job can be stopped.
        """
        given, can_stop = self.instance.preemption, any(job.preemptible is not None for job in self.jobs)
        preemption = given or Preemption()
        most = preemption.stops or FOREVER
        rules = np.array([preemption.notice, preemption.exempt, most, preemption.resume, is_by_size], dtype=np.int64)
        none = np.zeros((0, 0), dtype=np.bool_)
        if not can_stop:
            return np.zeros((0, 8), dtype=np.int64), rules, none, np.zeros(0, dtype=np.float64)
        by_queue = bool(preemption.queues)
        names: list[object] = [job.queue if by_queue else self.instance.priority(job) for job in self.jobs]
        known = sorted(set(names), key=lambda name: (name is not None, name))
        number = {name: place for place, name in enumerate(known)}
        stoppable = {name for name, job in zip(names, self.jobs, strict=True) if job.preemptible is not None}
        may_stop = none

        def is_above(name: Any, other: Any) -> bool:
            return other in preemption.queues.get(name or "", ()) if by_queue else bool(name > other)

        if given is not None:
            may_stop = np.array(
                [[other in stoppable and is_above(name, other) for other in known] for name in known], dtype=np.bool_
            )
        levels: Mapping[Any, int] = preemption.levels() if by_queue else number
        rows = []
        for name, job in zip(names, self.jobs, strict=True):
            level = levels.get(name, 0) if len(may_stop) and may_stop[number[name]].any() else 0
            way = job.preemptible
            cost, interval = (0, 0) if way is None else (way.cost, way.interval or -(way.by is StopKind.SUSPEND))
            left = job.walltime if job.runtime is None else job.runtime
            # one that cannot be stopped has been stopped often enough
            stops = 0 if _can_be_stopped(job) else FOREVER
            rows.append((number[name], level, cost, interval, stops, -1, left, job.walltime))
        weights = np.array([float(self.instance.own_weight(job)) for job in self.jobs], dtype=np.float64)
        return np.array(rows, dtype=np.int64), rules, may_stop, weights

    def _closed(self) -> list[tuple[str, int, int]]:
        """Return the licences that are set aside for ever, since when, and what is left: who needs more ends before."""
        has = self.instance.cluster.licenses
        return [
            (name, aside.start, has[name] - amount)
            for aside in self.instance.set_aside
            if aside.end >= self.now + FOR_EVER
            for name, amount in aside.licenses.items()
        ]

    def _compile_links(self) -> tuple[Ints, Ints]:
        """Return the milestones between jobs, each an event of one job, or of all elements of an array, int64 (·, 3):
        (job, milestone, type) of the jobs before them, and (milestone, job, delay) of those that wait for them. A job
        that runs, or can never run, waits for no other.
        """
        after: dict[tuple[str, DependencyType], list[tuple[int, int]]] = {}
        for index, job in enumerate(self.jobs):
            if job.after and job.running is None and index not in self.refused:
                for link in job.after:
                    after.setdefault((link.job, link.type), []).append((index, link.delay))
        members = self.instance.members() if after else {}
        number = {job.id: index for index, job in enumerate(self.jobs)} if after else {}
        before = [
            (number[name], milestone, _TYPES[kind])
            for milestone, (entry, kind) in enumerate(after)
            for name in members[entry]
        ]
        waiting = [(milestone, *one) for milestone, of_one in enumerate(after.values()) for one in of_one]
        return (np.array(before, dtype=np.int64).reshape(-1, 3), np.array(waiting, dtype=np.int64).reshape(-1, 3))

    def _compile_fixed(self) -> _Fixed:
        """Return the amounts that jobs hold that run at the beginning.

        Running jobs are facts, even if they break a rule: of a column of which they hold more than its capacity, the
        job that ends last holds all of its amount, and the others hold the rest. Where they take more of a node than it
        has, the first of these others holds all that is left of the node: nothing starts there until the rest fits.
        """
        spans = np.zeros((len(self.jobs), 2), dtype=np.int64)
        columns: list[int] = []
        amounts: list[int] = []
        licenses: list[tuple[int, int, int]] = []
        left: dict[int, int] = {}
        taken: dict[tuple[str | None, str], int] = {}
        lengths = self.lengths.tolist()
        running = [(index, job, job.running) for index, job in enumerate(self.jobs) if job.running is not None]
        for index, job, run in sorted(running, key=lambda row: -(row[2].start + lengths[row[0]])):
            whole = job.request.place.exclusive
            first = len(columns)
            segment = next(part for part in run.segments if part.end > self.now)
            for held in segment.allocation:
                has = self.instance.cluster.class_of[held.node].resources
                is_over = False
                for name, amount in held.resources.items():
                    taken[held.node, name] = taken.get((held.node, name), 0) + amount
                    is_over |= taken[held.node, name] > has.get(name, 0)
                for column, amount, capacity in self.columns.columns_on(
                    held.node, held.resources, whole=whole or is_over
                ):
                    columns.append(column)
                    amounts.append(min(amount, left.get(column, capacity)))
                    left[column] = left.get(column, capacity) - amounts[-1]
            spans[index] = first, len(columns) - first
            for name, many in job.licenses.items():
                free = self.instance.cluster.licenses.get(name, 0) - taken.get((None, name), 0)
                taken[None, name] = taken.get((None, name), 0) + min(many, free)
                licenses.append((index, self.columns.license_number[name], min(many, free)))
        return _Fixed(
            spans=spans,
            columns=np.array(columns, dtype=np.int64),
            amounts=np.array(amounts, dtype=np.int64),
            licenses=licenses,
        )

    def outages(self) -> tuple[Ints, Ints]:
        """Return the events of nodes in ascending order: (time, kind, first, last), and the nodes that these point to.

        Nodes that are not up stay so, but fail like others: jobs that run there are cut short.
        """
        parts: dict[str, list[int]] = {}  # a node, and its parts that are reserved
        for name, number in self.columns.node_number.items():
            parts.setdefault(stated_node(name), []).append(number)
        nodes: list[int] = []
        rows = []
        for outage in self.instance.outages:
            first = len(nodes)
            nodes.extend(number for name in outage.nodes for number in parts[name])
            rows.append((outage.start, arrays.BREAKS, first, len(nodes)))
            rows.append((outage.end, arrays.RETURNS, first, len(nodes)))
        rows.sort(key=lambda row: (row[0], -row[1], row[2]))  # returns of nodes come before failures in the same second
        return np.array(rows, dtype=np.int64).reshape(-1, 4), np.array(nodes, dtype=np.int64)


def _possible_choices(instance: Instance) -> dict[str, list[tuple[int, Job]]]:
    """Return the choices with which jobs could start, by their ids: (number, as a rigid job)."""
    choices = {
        f"{job.id} {number}": (job.id, number, one)
        for job in instance.elements()
        if job.alternatives
        for number, one in enumerate(job.choices)
    }
    if not choices:
        return {}
    refused = refusals(instance, [replace(one, id=name) for name, (_, _, one) in choices.items()])
    found: dict[str, list[tuple[int, Job]]] = {name: [] for name, _, _ in choices.values()}
    for key, (name, number, one) in choices.items():
        if key not in refused:
            found[name].append((number, one))
    return found


def _as_rigid(job: Job, possible: Mapping[str, Sequence[tuple[int, Job]]], settled: Mapping[str, int]) -> Job:
    """Return a job of one step: an evolving one with what its step with the most cores asks for, all the time; one with
    alternatives by the first with which it could start, or that which is `settled`.
    """
    if job.alternatives:
        number, _ = next(iter(possible.get(job.id, ())), (settled.get(job.id, 0), job))
        return job.choices[number]
    if not job.is_evolving:
        return job
    largest = max(job.steps, key=lambda step: step.request.totals.get("cores", 0))
    return replace(job, steps=(replace(largest, walltime=job.walltime),), expand_limit=1)


def _can_be_stopped(job: Job) -> bool:
    """Return whether a job may be stopped; to be suspended, what ran at the beginning has more than cores."""
    if job.preemptible is None:
        return False
    if job.preemptible.by is not StopKind.SUSPEND or job.running is None:
        return True
    held = [one.resources for segment in job.running.segments for one in segment.allocation]
    return not any(resources.keys() <= {"cores"} for resources in held)


def _cores(job: Job) -> int:
    return job.request.totals.get("cores", 0)


def amount_of(name: str, job: Job) -> int:
    """Return how much of a resource or licence a job asks for."""
    return job.request.totals.get(name, job.licenses.get(name, 0))


def _numbered(names: Sequence[str | None]) -> tuple[tuple[str, ...], Ints]:
    """Return the different names in the order of their first use, and for each entry which one it is, -1 for none."""
    numbers: dict[str, int] = {}
    found = [-1 if name is None else numbers.setdefault(name, len(numbers)) for name in names]
    return tuple(numbers), np.array(found, dtype=np.int64)


def empty_state(load: Load, steps: Sequence[int]) -> arrays.SimState:
    """Return the state before the first event: running jobs are not booked yet."""
    count, systems = len(load.jobs), len(load.columns.demands.layout.system_capacity)
    links_of, links = grouped(load.before, count)
    milestones = 1 + int(load.after[:, 0].max(initial=-1))
    after_of, after = grouped(load.after, milestones)
    awaited = np.bincount(load.after[:, 1], minlength=count).astype(np.int64)
    is_running = np.array([job.running is not None for job in load.jobs], dtype=np.bool_)
    release = np.where(load.follows, load.now, load.submit)
    for index, job in enumerate(load.jobs):
        if job.not_before is not None and job.running is None:
            release[index] = max(release[index], job.not_before)
    arrival = np.maximum(release, load.now)
    is_refused = (load.demand < 0) & ~is_running
    by_itself = (awaited == 0) & (arrival == np.maximum(load.submit, load.now)) & ~is_refused & ~is_running
    arrival = np.where(by_itself, arrival, np.where(load.follows, arrays.SUBMITTED_LATER, -1))
    jobs = np.stack([load.submit, arrival, load.walltime, load.lengths, load.endings], axis=1)
    runs = np.full((count, 6), -1, dtype=np.int64)
    runs[:, R.ENDING] = np.where(is_refused, Ending.REFUSED, Ending.WAITING)
    runs[:, R.STARTS :] = 0
    sums = np.zeros((count, systems), dtype=np.int64)
    for index, column, amount in load.fixed.licenses:
        sums[index, column] += amount
    outages, out = load.outages()
    classes, num_classes = load.classes()
    columns, (asked, has) = len(load.timeline.free_at(0)[0]), load.asked_of_all()
    clock = np.zeros(C.CLOCK, dtype=np.int64)
    clock[C.FIXED] = len(load.fixed.columns)
    clock[C.SPARE], clock[C.REPLAYED], clock[C.NOTICE], clock[C.EXEMPT] = load.spare, -FOREVER, -1, FOREVER
    clock[C.NOW], clock[C.UNTIL], clock[C.HEAD], clock[C.RESERVED] = (load.now, load.now - 1, -1, -1)
    clock[C.NEXT_DAY], clock[C.EASY_FROM] = load.now, -1

    def zeros(*shape: int) -> NDArray[Any]:
        return np.zeros(shape, dtype=np.int64)

    return arrays.SimState(
        clock=clock,
        jobs=jobs,
        demand=load.demand.astype(np.int32),
        cores=load.cores.copy(),
        choices_of=load.choices_of,
        choices=load.choice_rows,
        choice=load._ints(load.choices[index][0][0] if load.choices.get(index) else 0 for index in range(count)),
        links_of=links_of,
        links=links,
        after_of=after_of,
        after=after,
        missing=np.bincount(load.before[:, 1], minlength=milestones).astype(np.int64),
        passed=np.full(milestones, -FOREVER, dtype=np.int64),
        user=load.user,
        history=zeros(len(load.users), 2),
        awaited=awaited,
        release=release,
        runs=runs,
        estimate=load.walltime.copy(),
        bumps=zeros(count),
        predicted=load.walltime.copy(),
        smith=load.smith(),
        share=load.shares,
        asked=asked,
        replay_free=has,
        replay_beside=np.zeros_like(has),
        turns=zeros(count),
        replay_queue=zeros(count),
        replay_ends=zeros(count, 2),
        replay_waits=np.full(count, -1, dtype=np.int64),
        compared=np.zeros(3, dtype=np.float64),
        keys=np.zeros(count, dtype=np.float64),
        sums=sums,
        queue=zeros(count),
        ends=zeros(count, 2),
        heap=zeros(4 * count + 64 + int(np.count_nonzero(load.choice_rows[:, 5])), 3),
        pool=np.zeros((max(4096, 2 * count), 3), dtype=np.int32),
        outages=outages,
        out=out,
        down=zeros(load.columns.demands.layout.num_nodes),
        attempts=zeros(16, 7),
        failed=np.full((len(load.columns.demands), 2), -1, dtype=np.int64),
        bounded=np.full((len(load.columns.demands), 4), -1, dtype=np.int64),
        fixed=load.fixed.spans.copy(),
        fixed_columns=np.append(load.fixed.columns, zeros(64)),
        fixed_amounts=np.append(load.fixed.amounts, zeros(64)),
        changes=zeros(64, 3),
        modes=np.zeros(4096, dtype=np.int8),
        arrived=zeros(count),
        gone=zeros(2 * count),
        expired=zeros(count),
        steps=np.array(steps, dtype=np.int64),
        latest=load.latest,
        start_at=load.start_at,
        classes=classes,
        learnt=np.zeros((num_classes, 2), dtype=np.float64),
        promised=load.promised(),
        reserved=zeros(_RESERVED, 5),
        reserved_columns=zeros(_RESERVED * columns),
        reserved_amounts=zeros(_RESERVED * columns),
        beside=np.zeros((_RESERVED, columns), dtype=np.int32),
        step_times=zeros(4 * _RESERVED),
        step_sums=zeros(4 * _RESERVED, systems),
        stoppable=zeros(3, count if len(load.may_stop) else 0),
        asleep=zeros(count if load.suspends else 0),
        lends=load.lends,
        owed=zeros(len(load.lends)),
        withheld=zeros(len(load.lends)),
        stop_prices=np.zeros(count if len(load.may_stop) else 0, dtype=np.float64),
        stops=load.stops.copy(),
        stop_rules=load.stop_rules,
        may_stop=load.may_stop,
        of_rules=load.of_rules,
        near=load.near(),
        slowdown=np.array(list(load.stated.cluster.slowdown.values()), dtype=np.int64),
        base=np.stack([np.where(load.runtime < 0, -1, load.lengths), load.endings], axis=1),
        stop_weights=load.stop_weights,
        **{name: array.copy() for name, array in load.asides.items()},
    )
