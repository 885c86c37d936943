"""A window with malleable jobs as data of ``models/malleable.mzn``, and its solution as a plan (SD-1, SD-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import lcm
from typing import Any, NamedTuple

from cpsched.domain import (
    Chunk,
    Instance,
    Job,
    Mode,
    NodeState,
    PlannedJob,
    Remaining,
    Segment,
    modes,
    repeated,
    resumable,
    resumed_plan,
)
from cpsched.metrics import end_rate
from cpsched.mzn.changing import Costs, Staged, allocations_of, changing_data, times_data
from cpsched.mzn.data import columns, most_on_nodes
from cpsched.mzn.prices import MOST_INTEGER, start_prices
from cpsched.mzn.times import Times
from cpsched.planner import end_price
from cpsched.problem import awaited_ends, in_segments

__all__ = ["MalleableWindow", "lending", "longer_by", "parts_of"]


class _Share(NamedTuple):
    """A share on which a job (by its index) can run: the seconds that it takes, and its work per second."""

    job: int
    mode: Mode
    seconds: int
    speed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MalleableWindow:
    """An instance as the model's data; `data` has a value for each name that the model declares."""

    instance: Instance
    #: The planned jobs, by their starts in the known plan; then the running jobs that can lend cores.
    jobs: tuple[Job, ...]
    #: The rest of the latter.
    left: Mapping[str, Remaining]
    shares: tuple[_Share, ...]
    kinds: tuple[Staged, ...]
    data: Mapping[str, Any]

    model = "malleable"

    @classmethod
    def of(cls, instance: Instance, known: Sequence[PlannedJob]) -> MalleableWindow:
        """Return the window of the waiting jobs that a known plan has starts for, and of the running jobs."""
        plans = {planned.id: planned for planned in known}
        waiting = [job for job in instance.elements() if job.running is None and job.id in plans]
        waiting.sort(key=lambda job: plans[job.id].start)
        left = lending(instance)
        jobs = (*waiting, *(job for job in instance.jobs if job.id in left))
        shares = tuple(_shares(instance, jobs, left))
        times = Times.of(instance, waiting, longer=longer_by(instance, waiting))
        kinds, only_on = _kinds(instance, jobs, left, shares)
        costs = _costs(instance, waiting, jobs, times)
        data = {
            **changing_data(instance, jobs, _stages(jobs), kinds, left),
            **times_data(instance, jobs, times),
            **costs.data,
            "walltime": [_least(job, left) for job in jobs],
            "runs": [job.id in left for job in jobs],
            "num_shares": len(shares),
            **columns(("share_job", "seconds", "speed"), [(one.job + 1, one.seconds, one.speed) for one in shares]),
            "only_on": only_on,
            "work": [int(left[job.id].work * parts_of(left[job.id])) if job.id in left else 0 for job in jobs],
            "most_cost": _most_cost(instance, jobs, left, plans, shares, costs),
        }
        return cls(instance=instance, jobs=jobs, left=left, shares=shares, kinds=tuple(kinds), data=data)

    def planned(self, solution: Any) -> Iterator[PlannedJob]:
        """Yield the jobs of a solution; running jobs that cannot lend cores are as in the instance."""
        yield from (repeated(job) for job in self.instance.jobs if job.running is not None)
        now = self.instance.now
        allocations = allocations_of(self.instance, self.kinds, solution.count)
        for job, share, stage in zip(self.jobs, solution.share, _first_stages(self.jobs), strict=True):
            begin = now + solution.begin[stage]
            end = begin + solution.length[stage]
            if job.id in self.left:
                left = self.left[job.id]
                mode = left.modes.index(self.shares[share - 1].mode)
                yield resumed_plan(job, left, now, [(now, mode), *([(end, 0)] if solution.length[stage + 1] else [])])
            else:
                yield in_segments(job.id, [Segment(start=begin, end=end, allocation=allocations[stage])])


def lending(instance: Instance) -> dict[str, Remaining]:
    """Return the running jobs that the model may shrink, by id, and the rest of each.

    All other running jobs continue as the instance states: exclusive jobs and jobs beside one; jobs on nodes that keep
    something free or take no new jobs; jobs for whose end others wait; and jobs whose chunks have different shares.
    """
    awaited = awaited_ends(instance)
    taken = Counter(
        held.node
        for job in instance.jobs
        if job.running is not None and job.steps[0].request.place.exclusive
        for held in job.running.segments[-1].allocation
    )
    found = {}
    for job in instance.jobs:
        left = None if job.id in awaited or job.is_evolving else resumable(job, instance.now)
        if left is None or not _goes_on_so(instance, job, left):
            continue
        nodes = [held.node for held in left.allocations[0]]
        classes = [instance.cluster.class_of[node] for node in nodes]
        is_plain = all(one.state is NodeState.UP and not one.keep_free for one in classes)
        if is_plain and not any(taken[node] for node in nodes):
            found[job.id] = left
    return found


def _goes_on_so(instance: Instance, job: Job, left: Remaining) -> bool:
    """Return whether the job's segments in the instance fit the model: on a share, and then on all cores."""
    coming = [segment for segment in repeated(job).segments if segment.end > instance.now]
    if left.current is None or len(coming) > 2:
        return False
    later = [(coming[0].end, 0)] if len(coming) == 2 else []
    return resumed_plan(job, left, instance.now, [(instance.now, left.modes.index(left.current)), *later]) == repeated(
        job
    )


def longer_by(instance: Instance, waiting: Sequence[Job]) -> int:
    """Return the most seconds by which all jobs together may take longer than the instance states."""
    slow = sum(modes(job)[-1].time_for(job.walltime) - job.walltime for job in waiting)
    ends = {job.id: repeated(job).end - instance.now for job in instance.jobs if job.running is not None}
    lent = (max(0, left.modes[-1].time_for(left.work) - ends[name]) for name, left in lending(instance).items())
    return slow + sum(lent)


def parts_of(left: Remaining) -> int:
    """Return the number of parts of a second at full share by which all work and speeds are whole numbers."""
    return lcm(left.work.denominator, *(mode.rate.denominator for mode in left.modes))


def _least(job: Job, left: Mapping[str, Remaining]) -> int:
    """Return the seconds, or remaining seconds, of a job on all of its cores."""
    return left[job.id].modes[0].time_for(left[job.id].work) if job.id in left else job.walltime


def _stages(jobs: Sequence[Job]) -> list[int]:
    """Return the job of each stage: a waiting job has one stage, a running job two."""
    return list(
        chain.from_iterable([place] if job.running is None else [place, place] for place, job in enumerate(jobs))
    )


def _first_stages(jobs: Sequence[Job]) -> list[int]:
    """Return the first stage of each job."""
    stages = _stages(jobs)
    return [stages.index(place) for place in range(len(jobs))]


def _shares(instance: Instance, jobs: Sequence[Job], left: Mapping[str, Remaining]) -> Iterator[_Share]:
    """Yield the shares of all jobs; a job for whose end others wait has only the full share."""
    awaited = awaited_ends(instance)
    for place, job in enumerate(jobs):
        if job.id in left:
            remaining = left[job.id]
            for mode in remaining.modes:
                yield _Share(place, mode, mode.time_for(remaining.work), int(mode.rate * parts_of(remaining)))
        else:
            for mode in modes(job)[: 1 if job.id in awaited else None]:
                yield _Share(place, mode, mode.time_for(job.walltime), 0)


def _kinds(
    instance: Instance, jobs: Sequence[Job], left: Mapping[str, Remaining], shares: Sequence[_Share]
) -> tuple[list[Staged], list[int]]:
    """Return the kinds of all jobs, and the number of the share to which each belongs (0: to every share).

    The allocation of a running job on a node is a kind of its own with one chunk, fixed to that node.
    """
    kinds: list[Staged] = []
    only_on: list[int] = []
    stages = _first_stages(jobs)
    names = instance.cluster.node_names
    for number, (place, mode, _, _) in enumerate(shares, 1):
        job, stage = jobs[place], stages[place]
        if job.id not in left:
            for kind, (chunk, asked) in enumerate(zip(mode.request.chunks, job.request.chunks, strict=True)):
                kinds.append(Staged(place, stage, kind, chunk, most_on_nodes(instance, job, chunk, asked)))
                only_on.append(number)
            continue
        remaining = left[job.id]
        held = [(stage, number, one) for one in remaining.allocations[remaining.modes.index(mode)]]
        if mode is remaining.modes[0]:
            held += [(stage + 1, 0, one) for one in remaining.allocations[0]]
        for when, on, placement in held:
            here = [int(name == placement.node) for name in names]
            kinds.append(Staged(place, when, 0, Chunk(count=1, resources=placement.resources), here))
            only_on.append(on)
    return kinds, only_on


def _costs(instance: Instance, waiting: Sequence[Job], jobs: Sequence[Job], times: Times) -> Costs:
    """Return the costs of jobs: of waiting jobs for their starts, and of malleable ones for a longer runtime."""
    return Costs(
        starts=start_prices(instance, waiting, times.earliest, [job.walltime for job in waiting]),
        runs=[Fraction(0) if job.malleability is None else end_rate(instance, job) for job in jobs],
        holds=(),
        end=Fraction(end_price(instance)),
        horizon=times.horizon,
    )


def _most_cost(
    instance: Instance,
    jobs: Sequence[Job],
    left: Mapping[str, Remaining],
    plans: Mapping[str, PlannedJob],
    shares: Sequence[_Share],
    costs: Costs,
) -> int:
    """Return the cost of the known plan, or an upper bound of all plans if it runs a job on none of the model's
    shares.
    """
    starts, runs = [], []
    for place, job in enumerate(jobs):
        start = instance.now if job.id in left else plans[job.id].start
        seconds = plans[job.id].end - start
        starts.append(start - instance.now)
        runs.append(seconds - _least(job, left))
        if job.id not in left and not any(one.job == place and one.seconds == seconds for one in shares):
            return MOST_INTEGER
    last_end = max((plans[job.id].end - instance.now for job in jobs if job.id not in left), default=0)
    return costs.price_of(starts, runs, last_end)
