"""Starts for jobs of the waiting room beside a plan, whichever engine has made it.

Engines leave jobs out for reasons of their own: a rule looks only at whole nodes, an order of chunks does not fit, a
malleable job for which another one waits gets all its cores. Beside the plan these reasons are gone.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations
from math import ceil

from cpsched.booking import CheapFirst
from cpsched.booking import Mapping as NodeMapping
from cpsched.domain import (
    Cluster,
    Dependency,
    DependencyType,
    Instance,
    Job,
    Placement,
    PlannedJob,
    Request,
    Running,
    SetAside,
    Step,
    WaitingJob,
    WaitingReason,
    modes,
    repeated,
)
from cpsched.engine import Outcome
from cpsched.planner.admission_result import HURRIED, unsupported
from cpsched.planner.planner import Planner
from cpsched.problem import missing_from, planning_order, refusal, refusals, waits

#: The most bookings that are made while jobs are tried one by one, the most of these jobs where a window is compiled
#: for each, and the most orders of the kinds of chunks of each.
_MOST_BOOKED, _MOST_COMPILED, _MOST_ORDERS = 6_000, 20, 6


def inserted(instance: Instance, outcome: Outcome) -> Outcome:
    """Return a plan with starts for those jobs of its waiting room that find one beside it; no other job is moved.

    All are tried together, then one by one: those that no order of planning lets in may change their share, for no job
    of their window waits for them, and several kinds of chunks are placed in several orders. Work is bounded by the
    number of jobs, so that the same plan always gets the same starts.

    `instance`: the window, for engines. `outcome`: a plan of all its jobs.
    """
    names = {job.id for job in outcome.waiting_room}
    lost = never_placed(instance, names)
    if len(lost) == len(names) or unsupported(instance):
        return outcome
    apart = elements_apart(instance)
    beside, reasons = Beside(apart, outcome.jobs), dict[str, WaitingJob]()
    waiting = [job for job in apart.jobs if job.id in names and job.id not in lost]
    order = [job.id for job in planning_order(apart, waiting)]
    _insert(beside, order, (CheapFirst(),), reasons)
    left = (name for name in order if name not in beside.planned and not _is_tried(beside.entries[name]))
    for name in islice(left, most_tried(len(outcome.jobs) + len(names))):
        _insert(beside, [name], _mappings(beside.entries[name]), reasons)
    if len(beside.planned) == len(outcome.jobs):
        return outcome
    return _outcome(beside, {job.id: job for job in outcome.waiting_room}, reasons)


def most_tried(jobs: int, *, is_compiled: bool = False) -> int:
    """Return how many jobs are tried one by one in a window; with `is_compiled`, one is compiled for each."""
    most = max(1, _MOST_BOOKED // max(1, jobs))
    return min(_MOST_COMPILED, most) if is_compiled else most


def never_placed(instance: Instance, names: Collection[str]) -> frozenset[str]:
    """Return those of some waiting jobs that find no start beside any plan, for lack of nodes, licences or time."""
    if not names:
        return frozenset()
    # no job waits for one that is tried by itself: it may be shrunk
    alone = {job.id: replace(job, after=()) for job in instance.elements() if job.id in names}
    lost = refusals(replace(instance, jobs=tuple(alone.values())))
    again = [rigid for name, job in alone.items() if name in lost for rigid in _rigid(job)]
    possible = {job.id for job in again if refusal(instance, job) is None}
    return frozenset(lost.keys() - possible)


def elements_apart(instance: Instance) -> Instance:
    """Return a window in which each element of an array is planned by itself."""
    if all(job.array is None for job in instance.jobs):
        return instance
    of_arrays = {name for job in instance.jobs if job.array is not None for name in job.element_ids}
    jobs = (replace(job, array=()) if job.id in of_arrays else job for job in instance.elements())
    return replace(instance, jobs=tuple(jobs))


def _insert(
    beside: "Beside", names: Sequence[str], mappings: Sequence[NodeMapping], reasons: dict[str, WaitingJob]
) -> None:
    """Plan jobs beside those that have a plan, by the first mapping that finds starts; `reasons` are of the others."""
    window = beside.window(names, lambda _: True)
    waiting = [job for job in window.jobs if job.running is None]
    if not waiting:
        return  # they wait for jobs without a start
    tries = [(window, mapping) for mapping in mappings]
    if len(names) == 1:
        others = tuple(job for job in window.jobs if job.running is not None)
        tries += [(replace(window, jobs=(*others, rigid)), CheapFirst()) for rigid in _rigid(waiting[0])]
    for one, mapping in tries:
        planner = Planner(one, mapping)
        planner.plan()
        found = planner.outcome()
        reasons |= {job.id: job for job in found.waiting_room if job.id not in reasons}
        starts = {job.id: job for job in found.jobs if job.id in names}
        if starts:
            beside.planned |= starts
            return


def _rigid(job: Job) -> Iterator[Job]:
    """Yield a malleable job on each of its shares, rounded up to whole cores: the modes of engines round down."""
    if job.malleability is None or job.is_evolving:
        return
    lower = {mode.request for mode in modes(job)}
    for mode in modes(job, ceil):
        if mode.request not in lower:
            step = Step(walltime=mode.time_for(job.walltime), request=mode.request)
            yield replace(job, steps=(step,), malleability=None)


def _is_tried(job: Job) -> bool:
    """Return whether a job finds its start alone or never: rigid, of one kind of chunks, waiting for nobody."""
    return not (job.changes or job.after) and all(len(one.request.chunks) == 1 for one in job.choices)


def _mappings(job: Job) -> list[NodeMapping]:
    """Return the orders of nodes and of kinds of chunks in which a job is tried."""
    if job.is_evolving or len(job.request.chunks) == 1:
        return [CheapFirst()]
    orders = list(islice(permutations(range(len(job.request.chunks))), _MOST_ORDERS))
    return [_InOrder(order, is_reversed) for is_reversed in (False, True) for order in orders]


class _InOrder(CheapFirst):
    """Places the kinds of chunks in an order of those of `CheapFirst`, on cheap or on dear nodes first."""

    def __init__(self, order: Sequence[int], is_reversed: bool) -> None:
        self._order, self._is_reversed = order, is_reversed

    def node_order(self, cluster: Cluster) -> list[int]:
        """Return all node indices, those to be filled first in front."""
        nodes = super().node_order(cluster)
        return nodes[::-1] if self._is_reversed else nodes

    def chunk_order(self, cluster: Cluster, request: Request) -> list[int]:
        """Return all kinds of chunks of a request, those to be placed first in front."""
        kinds = super().chunk_order(cluster, request)
        return [kinds[place] for place in self._order] if len(kinds) == len(self._order) else kinds


def _outcome(beside: "Beside", before: Mapping[str, WaitingJob], reasons: Mapping[str, WaitingJob]) -> Outcome:
    """Return the plan: a job that waits on does so for the reason `before`, unless what it waited for has a start."""
    left = [name for name in beside.elements if name in before and name not in beside.planned]
    known = {name: before[name] for name in left if before[name].reason is not WaitingReason.DEPENDENCY}
    known |= {name: reasons[name] for name in left if name not in known and name in reasons}
    waiting = beside.without_start(known, left)
    return Outcome(
        jobs=tuple(beside.planned[name] for name in beside.elements if name in beside.planned),
        waiting_room=tuple(waiting[name] for name in left),
    )


class Beside:
    """The windows of waiting jobs beside those that have a plan; mutable: further ones get a plan.

    `instance`: the window of all jobs, for engines. `planned`: plans of some jobs, of running ones where they differ.
    """

    def __init__(self, instance: Instance, planned: Iterable[PlannedJob] = ()) -> None:
        self._instance = instance
        self._members = instance.members()
        self.entries = {job.id: job for job in instance.jobs}
        self._entry_of = {element: job.id for job in instance.jobs for element in job.element_ids}
        self.planned: dict[str, PlannedJob] = {job.id: job for job in planned}

    @property
    def elements(self) -> Collection[str]:
        """The ids of all jobs, in document order."""
        return self._entry_of.keys()

    def is_running(self, element: str) -> bool:
        """Return whether a job runs."""
        return self.entries[self._entry_of[element]].running is not None

    def window(self, entries: Collection[str], is_settled: Callable[[Job], bool]) -> Instance:
        """Return the window of some waiting entries without a plan.

        Jobs that wait for one that has no start are not in it.

        `is_settled`: tells of a running job whether it may not be changed any more.
        """
        chosen = self._startable(entries)
        jobs = []
        for job in self._instance.jobs:
            if job.running is not None:
                jobs.append(self._as_planned(job, is_settled=is_settled(job)))
            elif job.id in chosen:
                jobs.append(self._after_settled(job, chosen))
        return replace(self._instance, jobs=tuple(jobs), set_aside=(*self._instance.set_aside, *self._settled()))

    def without_start(self, waiting: Mapping[str, WaitingJob], names: Iterable[str]) -> dict[str, WaitingJob]:
        """Return why jobs without a start wait, by id: those that are in no window wait for others without a start.

        `waiting`: why some of them wait, by their own windows.
        """
        missing, found = missing_from(self._instance, self._had()), dict(waiting)
        for name, one in waiting.items():  # its window had a deadline in place of jobs with a plan
            job = self.entries[self._entry_of[name]]
            if one.reason is WaitingReason.TOO_LATE and self._instance.latest_start(job) is None:
                found[name] = replace(one, detail=HURRIED)
        for name in names:
            if name not in self.planned and name not in found:
                detail = "no start was found for it after those of the jobs that it waits for"
                found[name] = waits(self._instance, self.entries[self._entry_of[name]], missing, detail, name)
        return found

    def _startable(self, entries: Collection[str]) -> set[str]:
        """Return the entries that wait for no job without a start."""
        chosen, had = set(entries), self._had()
        while True:
            startable = had.union(*(self.entries[name].element_ids for name in chosen))
            missing = missing_from(self._instance, startable)
            lost = {name for name in chosen if any(missing(one.job) for one in self.entries[name].after)}
            if not lost:
                return chosen
            chosen -= lost

    def _had(self) -> set[str]:
        """Return the jobs that run, and those that have a plan."""
        return {element for element in self.elements if element in self.planned or self.is_running(element)}

    def _as_planned(self, job: Job, *, is_settled: bool) -> Job:
        """Return a running job as it is planned so far; one that is settled cannot be changed any more."""
        planned = self.planned.get(job.id)
        if planned is not None and planned != repeated(job):
            job = replace(job, running=Running(start=planned.start, segments=planned.segments))
        return replace(job, malleability=None) if is_settled and job.malleability is not None else job

    def _after_settled(self, job: Job, chosen: Collection[str]) -> Job:
        """Return a waiting job that may start after those that it waits for: settled ones are an earliest start, and
        with a longest delay a deadline.
        """
        if not job.after:
            return job
        earliest, latest = [] if job.not_before is None else [job.not_before], list[int | None]()
        after: list[Dependency] = []
        for dependency in job.after:
            names = self._members[dependency.job]
            left = [name for name in names if self._entry_of[name] in chosen or self.is_running(name)]
            if len(left) == len(names):
                after.append(dependency)
                continue
            after += (replace(dependency, job=name) for name in left)
            of = {name: self.planned[name] for name in names if name not in left}
            is_start = dependency.type is DependencyType.AFTER
            earliest += ((one.start if is_start else one.end) + dependency.delay for one in of.values())
            latest += (dependency.latest(one.start, one.end) for one in of.values())
        job = replace(job, after=tuple(after), not_before=max(earliest, default=None))
        return job.starting_by(min((limit for limit in latest if limit is not None), default=None))

    def _settled(self) -> Iterator[SetAside]:
        """Yield what the waiting jobs that have a plan hold, segment by segment."""
        has = self._instance.cluster.class_of
        for name, planned in self.planned.items():
            job = self.entries[self._entry_of[name]]
            if job.running is not None:
                continue  # it is in every window
            chosen = job.choices[min(planned.alternative, len(job.alternatives))]
            for segment in planned.segments:
                allocation = segment.allocation
                if chosen.steps[0].request.place.exclusive:
                    nodes = dict.fromkeys(one.node for one in allocation)
                    allocation = tuple(Placement(node=node, resources=has[node].resources) for node in nodes)
                yield SetAside(start=segment.start, end=segment.end, allocation=allocation, licenses=chosen.licenses)
