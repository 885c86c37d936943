"""The causes for which jobs start later than in the plan before an event: each is named."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cpsched.domain import Dependency, Instance, NodeState, PlannedJob, ReservedSlice

#: The time of a holding, the node, and its job.
_Held = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """A job that starts later than in the plan before, or has no start any more."""

    job: str
    before: int
    #: None: it is in the waiting room.
    after: int | None
    cause: str

    def __str__(self) -> str:
        """Return the delay in words."""
        now = "has no start any more" if self.after is None else f"starts at {self.after}"
        return f"job {self.job} {now}, planned was {self.before}: {self.cause}"


def delays(
    instance: Instance,
    takes: Mapping[str, Mapping[str, int]],
    before: Sequence[PlannedJob],
    after: Sequence[PlannedJob],
    slices: tuple[Sequence[ReservedSlice], Sequence[ReservedSlice]],
    *,
    touched: Mapping[str, str],
    words: str,
) -> tuple[Delay, ...]:
    """Return all jobs of a window that start later than before, each with the cause.

    The cause is the first of: what the event says of the job; a node that is not up; a job that it waits for; a job
    that has its nodes then, or of the same licence or limit, and did not have it before; a reservation; the event.

    `instance`: the window after the event. `takes`: the licences that jobs take, those that stand for limits and free
    pools included, by job. `before`, `after`: the plans before and after the event, without jobs that have ended.
    `slices`: what reservations got before and after. `touched`, `words`: what the event says of single jobs, and the
    event itself.
    """
    new = {job.id: job for job in after}
    known = {job.id: job for job in instance.elements()}
    late = [job for job in before if job.id in known and (job.id not in new or new[job.id].start > job.start)]
    if not late:
        return ()
    search = _Search(instance, takes, before, after, slices)
    return tuple(
        Delay(
            job=job.id,
            before=job.start,
            after=new[job.id].start if job.id in new else None,
            cause=touched.get(job.id) or search.cause(job) or words,
        )
        for job in late
    )


class _Search:
    """What the window after an event has in the way of places before it."""

    def __init__(
        self,
        instance: Instance,
        takes: Mapping[str, Mapping[str, int]],
        before: Sequence[PlannedJob],
        after: Sequence[PlannedJob],
        slices: tuple[Sequence[ReservedSlice], Sequence[ReservedSlice]],
    ) -> None:
        self._instance, self._takes, self._slices = instance, takes, slices
        self._jobs = {job.id: job for job in instance.elements()}
        self._members = instance.members()
        self._before = {job.id: job for job in before}
        self._after = {job.id: job for job in after}
        #: What `_last_of` has found: all elements of an array have the same dependencies.
        self._last: dict[Dependency, tuple[str, int | None]] = {}
        self._on_node: dict[str, list[_Held]] = {}
        for job in after:
            for start, end, node in _held(job):
                self._on_node.setdefault(node, []).append((start, end, job.id))

    def cause(self, job: PlannedJob) -> str | None:
        """Return why a job cannot have its place before the event, or None if that is not known."""
        return self._node(job) or self._awaited(job) or self._holder(job) or self._taker(job) or self._reserved(job)

    def _node(self, job: PlannedJob) -> str | None:
        """Return a node of the place that is not up."""
        states = self._instance.cluster.class_of
        for _, _, node in _held(job):
            if not states[node].is_up:
                return f"its node {node} is {'down' if states[node].state is NodeState.DOWN else 'drained'}"
        return None

    def _awaited(self, job: PlannedJob) -> str | None:
        """Return a job that it waits for, and that starts or ends too late."""
        for dependency in self._jobs[job.id].after:
            name, moment = self._last_of(dependency)
            if moment is None:
                return f"it waits for job {name}, which has no start"
            if moment > job.start:
                return f"it waits for job {name}, which ends at {self._after[name].end}"
        return None

    def _last_of(self, dependency: Dependency) -> tuple[str, int | None]:
        """Return the last job that a dependency means, and when it lets others start; None: it has no start."""
        if dependency not in self._last:
            names = self._members[dependency.job]
            runs = {name: self._after[name] for name in names if name in self._after}
            moments = {name: run.start + dependency.lag(run.end - run.start) for name, run in runs.items()}
            lost = next((name for name in names if name not in runs), None)
            last = max(names, key=lambda name: moments.get(name, 0)) if lost is None else lost
            self._last[dependency] = last, moments.get(last)
        return self._last[dependency]

    def _holder(self, job: PlannedJob) -> str | None:
        """Return a job that has a node of the place then, and did not have it before."""
        for start, end, node in _held(job):
            for first, last, name in self._on_node.get(node, ()):
                if name != job.id and first < end and last > start and not self._had(name, node, first, last):
                    return f"job {name} has node {node} from {first} to {last}"
        return None

    def _had(self, name: str, node: str, start: int, end: int) -> bool:
        """Return whether a job had a node all the time before the event."""
        old = self._before.get(name)
        return old is not None and any(
            one == node and first <= start and last >= end for first, last, one in _held(old)
        )

    def _taker(self, job: PlannedJob) -> str | None:
        """Return a job that takes of the same licence, limit or pool then, and did not take it before."""
        own = self._takes.get(job.id, {}).keys()
        for other in self._after.values() if own else ():
            shared = own & self._takes.get(other.id, {}).keys()
            old = self._before.get(other.id)
            is_new = old is None or other.start < old.start or other.end > old.end
            if other.id != job.id and shared and is_new and other.start < job.end and other.end > job.start:
                return f"job {other.id} has what it needs too, from {other.start} to {other.end}"
        return None

    def _reserved(self, job: PlannedJob) -> str | None:
        """Return a reservation that has a node of the place then, and did not have it before."""
        before, after = self._slices
        nodes = {node for _, _, node in _held(job)}
        for slice_ in after:
            is_new = slice_ not in before and slice_.start < job.end and slice_.end > job.start
            if is_new and any(held.node in nodes for held in slice_.allocation):
                return f"reservation {slice_.id} has its nodes from {slice_.start} to {slice_.end}"
        if any(one.id == self._jobs[job.id].reservation for one in before if one not in after):
            return f"reservation {self._jobs[job.id].reservation} has other nodes, or none"
        return None


def _held(job: PlannedJob) -> Iterator[tuple[int, int, str]]:
    """Yield the nodes of a job, each with the time for which it has it."""
    for segment in job.segments:
        for held in segment.allocation:
            yield segment.start, segment.end, held.node
