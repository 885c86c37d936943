"""From a window and a plan of it to the window some time later, when all has gone as planned."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpsched.domain import (
    Amounts,
    Dependency,
    Instance,
    Job,
    NodeState,
    Placement,
    Plan,
    PlannedJob,
    Reservation,
    ReservedSlice,
    Running,
    Segment,
    counted,
    repeated,
)


def advanced(instance: Instance, plan: Plan, at: int) -> Instance:
    """Return a window at a later second, if all jobs have started and ended as in a plan of it.

    Ended jobs are removed; jobs that waited for them wait no more, or for the rest of a delay (``not_before``);
    one that has to start within some time of them has a ``deadline``.
    Started jobs run, in the segments of the plan, future ones included: these are promises now. Jobs that start at
    `at` or later, or have no start, keep waiting. Elements of arrays that have started are jobs of their own.

    Raises `ValueError` if `at` is before `now`.

    `plan`: of this window; a job that it does not have waits on, or runs on as the window says. `at`: the new `now`.
    """
    if at < instance.now:
        raise ValueError(f"expected a second from {instance.now} on, got {at}")
    return _after(instance, _started_jobs(instance, plan, at), at)


def without(instance: Instance, ended: Mapping[str, PlannedJob]) -> Instance:
    """Return a window in which some jobs have `ended` by `now`, each by its run, whatever was planned of them."""
    running = {job.id: repeated(job) for job in instance.jobs if job.running is not None}
    return _after(instance, {**running, **ended}, instance.now)


def with_slices(instance: Instance, slices: Sequence[ReservedSlice]) -> Instance:
    """Return a window whose reservations have what a plan says that they got, as far as those nodes are not down.

    A recurring one has it at its next time. What a plan does not say of a reservation remains as it is.
    """
    classes = instance.cluster.class_of
    own: dict[str, ReservedSlice] = {}
    for slice_ in slices:
        if slice_.end > instance.now:
            own.setdefault(slice_.id, slice_)

    def kept(reservation: Reservation) -> Reservation:
        slice_ = own.get(reservation.id)
        if slice_ is None or reservation.request is None:
            return reservation
        is_there = reservation.is_downtime or all(
            classes[held.node].state is not NodeState.DOWN
            and all(amount <= classes[held.node].resources.get(name, 0) for name, amount in held.resources.items())
            for held in slice_.allocation
        )
        return replace(reservation, allocation=slice_.allocation if is_there else ())

    return replace(instance, reservations=tuple(map(kept, instance.reservations)))


def _after(instance: Instance, started: Mapping[str, PlannedJob], at: int) -> Instance:
    """Return a window at a second before which some jobs have started or ended: what these consumed is gone."""
    links = _Links(instance, started, at)
    jobs, spent, cluster = list[Job](), Counter[str](), instance.cluster
    for entry in instance.jobs:
        waiting, after = [], links.kept(entry)
        for element in entry.element_ids:
            run = started.get(element)
            if run is None:
                waiting.append(element)
            elif run.end > at:
                jobs.append(_started(entry, run, after))
            else:
                spent.update(entry.licenses_of(min(run.alternative, len(entry.alternatives))))
        if waiting:
            jobs.append(_waiting(entry, waiting, after, links.passed(entry)).starting_by(links.latest(entry)))
    if cluster.consumed:
        left = {name: max(0, cluster.licenses[name] - spent[name]) for name in cluster.consumed}
        cluster = replace(cluster, licenses=Amounts({**cluster.licenses, **left}))
    return replace(instance, now=at, jobs=tuple(jobs), cluster=cluster)


def _started_jobs(instance: Instance, plan: Plan, at: int) -> dict[str, PlannedJob]:
    """Return all jobs that have started before `at`, by id: malleable ones as in the plan."""
    planned = {job.id: job for job in plan.jobs}
    started: dict[str, PlannedJob] = {}
    for job in instance.elements():
        run = planned.get(job.id)
        if job.running is not None:
            started[job.id] = run if run is not None and job.malleability is not None else repeated(job)
        elif run is not None and run.start < at:
            started[job.id] = run
    return started


class _Links:
    """The rest of dependencies on jobs some of which have started, and some of which have ended; mutable only in its
    cache: all elements of an array have the same dependencies.
    """

    def __init__(self, instance: Instance, started: Mapping[str, PlannedJob], at: int) -> None:
        self._members, self._started, self._at = instance.members(), started, at
        self._kept: dict[Dependency, tuple[Dependency, ...]] = {}
        self._passed: dict[Dependency, int] = {}

    def kept(self, job: Job) -> tuple[Dependency, ...]:
        """Return the dependencies of a job on jobs that have not ended: of an array on its waiting part too."""
        for dependency in job.after:
            if dependency not in self._kept:
                self._kept[dependency] = tuple(self._rest(dependency))
        return tuple(dict.fromkeys(link for dependency in job.after for link in self._kept[dependency]))

    def _rest(self, dependency: Dependency) -> Iterator[Dependency]:
        members = self._members[dependency.job]
        if any(name not in self._started for name in members):
            yield dependency
        for name in members:
            if name in self._started and self._started[name].end > self._at:
                yield replace(dependency, job=name)

    def passed(self, job: Job) -> int | None:
        """Return the earliest start that ended jobs allow a job that waited for them; None: it may start at once."""
        for dependency in job.after:
            if dependency not in self._passed:
                self._passed[dependency] = max(self._moments(dependency), default=self._at)
        earliest = max((self._passed[dependency] for dependency in job.after), default=self._at)
        return earliest if earliest > self._at else None

    def latest(self, job: Job) -> int | None:
        """Return the latest start that ended jobs leave a job that follows them within some time; None: any."""
        limits = (dependency.latest(run.start, run.end) for dependency in job.after for run in self._ended(dependency))
        return min((limit for limit in limits if limit is not None), default=None)

    def _moments(self, dependency: Dependency) -> Iterator[int]:
        for run in self._ended(dependency):
            yield run.start + dependency.lag(run.end - run.start)

    def _ended(self, dependency: Dependency) -> Iterator[PlannedJob]:
        runs = map(self._started.get, self._members[dependency.job])
        return (run for run in runs if run is not None and run.end <= self._at)


def _waiting(entry: Job, elements: Sequence[str], after: tuple[Dependency, ...], passed: int | None) -> Job:
    """Return a job, or what is left of an array, that waits on: not before those have `passed` that it waited for."""
    array = entry.array
    if array:
        left = set(elements)
        array = tuple(index for index, name in zip(array, entry.element_ids, strict=True) if name in left)
    not_before = entry.not_before
    if passed is not None:
        not_before = passed if not_before is None else max(passed, not_before)
    if (array, after, not_before) == (entry.array, entry.after, entry.not_before):
        return entry  # the same object: a comparison of windows sees at once that nothing has changed
    return replace(entry, array=array, after=after, not_before=not_before)


def _started(entry: Job, run: PlannedJob, after: tuple[Dependency, ...]) -> Job:
    """Return a job, or an element of an array, that runs."""
    if entry.running is not None and run == repeated(entry):
        return replace(entry, after=after)
    running = Running(start=run.start, segments=_segments(entry, run))
    entry = entry.choices[min(run.alternative, len(entry.alternatives))]
    if entry.steps[0].cost:
        entry = replace(entry, steps=(replace(entry.steps[0], cost=0),))
    return replace(entry, id=run.id, array=None, after=after, told=None, running=running)


def _segments(entry: Job, run: PlannedJob) -> tuple[Segment, ...]:
    """Return the segments of a plan as running jobs have them: each kind of chunks once on a node."""
    stands = _stands(entry)
    return tuple(replace(segment, allocation=_merged(segment.allocation, stands)) for segment in run.segments)


def _stands(entry: Job) -> Mapping[str, Placement]:
    """Return the first holdings of a running malleable job on each node that has chunks of one kind only."""
    if entry.running is None or entry.malleability is None:
        return {}
    known = counted(entry.request, entry.running.segments[0].allocation) or ()
    kinds = Counter(held.node for held in known)
    return {held.node: held for held in known if kinds[held.node] == 1}


def _merged(allocation: Sequence[Placement], stands: Mapping[str, Placement]) -> tuple[Placement, ...]:
    """Return an allocation with one entry for each node and kind of chunks."""
    merged: dict[tuple[str, int | None], Placement] = {}
    for held in allocation:
        if held.chunk is None and held.node in stands:
            held = replace(stands[held.node], resources=held.resources)
        before = merged.get((held.node, held.chunk))
        if before is not None:
            names = {**before.resources, **held.resources}
            amounts = {name: before.resources.get(name, 0) + held.resources.get(name, 0) for name in names}
            count = None if held.count is None else held.count + (before.count or 0)
            held = replace(held, count=count, resources=Amounts(amounts))
        merged[held.node, held.chunk] = held
    return tuple(merged.values())
