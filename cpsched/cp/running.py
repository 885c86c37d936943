"""Running malleable jobs whose share a plan may change from now on, and their segments in a plan (SD-1, SD-3)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from cpsched.cp.task_modes import TaskMode, lengths_in, malleable_modes
from cpsched.domain import Instance, Job, Placement, PlannedJob, Segment, changed_from, resumable


def running_modes(instance: Instance, job: Job, planned: PlannedJob) -> tuple[TaskMode, ...]:
    """Return the modes in which a running job can continue; none if it is to continue as planned.

    That is so if the job is exclusive, or its nodes keep something free or take no new jobs, or if the plan continues
    it on other shares than these.
    """
    left = resumable(job, instance.now)
    if left is None or job.request.place.exclusive:
        return ()
    classes = [instance.cluster.class_of[held.node] for allocation in left.allocations for held in allocation]
    if any(node_class.keep_free or not node_class.is_up for node_class in classes):
        return ()
    held = [set(allocation) for allocation in left.allocations]
    segments = coming(planned, instance.now)
    if any(set(segment.allocation) not in held for segment in segments):
        return ()
    known = [[held.index(set(segment.allocation)) for segment in segments]]
    modes = malleable_modes(left.work, left.modes, left.allocations, known)
    return modes if any(_lengths_in(mode, segments) for mode in modes) else ()


def coming(planned: PlannedJob, now: int) -> tuple[Segment, ...]:
    """Return the future part of a job's segments."""
    return tuple(replace(segment, start=max(segment.start, now)) for segment in planned.segments if segment.end > now)


def _lengths_in(mode: TaskMode, segments: Sequence[Segment]) -> list[int] | None:
    """Return how long each segment of a mode is in a plan with these future segments; None if that has another mode."""
    return lengths_in(
        mode,
        [set(segment.allocation) for segment in segments],
        [set(allocation) for allocation in mode.allocations],
        [segment.end - segment.start for segment in segments],
    )


def totals_of(allocation: Iterable[Placement]) -> Counter[str]:
    """Return the amounts that a job has on all nodes together."""
    return sum((Counter(held.resources) for held in allocation), Counter[str]())


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """Return segments without those that take no time, equal neighbours as one."""
    found: list[Segment] = []
    for segment in segments:
        if segment.end == segment.start:
            continue
        if found and set(found[-1].allocation) == set(segment.allocation):
            segment = replace(found.pop(), end=segment.end)
        found.append(segment)
    return found


def resumed(job: Job, mode: TaskMode, times: Sequence[int], now: int) -> PlannedJob:
    """Return the plan of a changed running job: its past segments, and then those of the mode.

    `times`: when its first segment to come begins, and each of them ends, on the instance's clock.
    """
    coming_on = zip(pairwise(times), mode.allocations, strict=True)
    segments = (Segment(start=start, end=end, allocation=held) for (start, end), held in coming_on)
    return changed_from(job, now, joined(segments))
