"""Running malleable jobs whose share a plan may change from now on, and their segments in a plan (SD-1, SD-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from cpsched.cp.task_modes import TaskMode, continuation_modes
from cpsched.domain import Instance, Job, NodeState, PlannedJob, Segment, changed_from, resumable

__all__ = ["coming", "resumed", "running_modes"]


def running_modes(instance: Instance, job: Job, planned: PlannedJob) -> tuple[TaskMode, ...]:
    """Return the modes in which a running job can continue; none if it is to continue as planned.

        That is so if the job is exclusive, or its nodes keep something free or take no new jobs, or if the plan
    continues it in none of these modes.
    """
    left = resumable(job, instance.now)
    if left is None or job.request.place.exclusive:
        return ()
    classes = [instance.cluster.class_of[held.node] for allocation in left.allocations for held in allocation]
    if any(node_class.keep_free or node_class.state is not NodeState.UP for node_class in classes):
        return ()
    modes = continuation_modes(left)
    return modes if mode_of(modes, coming(planned, instance.now)) is not None else ()


def coming(planned: PlannedJob, now: int) -> tuple[Segment, ...]:
    """Return the future part of a job's segments."""
    return tuple(replace(segment, start=max(segment.start, now)) for segment in planned.segments if segment.end > now)


def mode_of(modes: Sequence[TaskMode], segments: Sequence[Segment]) -> int | None:
    """Return the mode of a job with these future segments."""
    held = [set(segment.allocation) for segment in segments]
    lengths = [segment.end - segment.start for segment in segments]
    for number, mode in enumerate(modes):
        if held == [set(allocation) for allocation in mode.allocations] and all(
            span.least <= length <= span.most for span, length in zip(mode.spans, lengths, strict=True)
        ):
            return number
    return None


def resumed(job: Job, mode: TaskMode, times: Sequence[int], now: int) -> PlannedJob:
    """Return the plan of a changed running job: its past segments, and then those of the mode.

    Parameters
    ----------
    times
        When its first segment to come begins, and each of them ends, on the instance's clock.
    """
    coming_on = zip(pairwise(times), mode.allocations, strict=True)
    return changed_from(job, now, [Segment(start=start, end=end, allocation=held) for (start, end), held in coming_on])
