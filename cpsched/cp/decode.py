"""From solutions to plans, and back."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from cpsched.cp.encoding import Encoding, Task
from cpsched.cp.running import coming, joined, resumed, totals_of
from cpsched.cp.solution import ABSENT, Placed
from cpsched.cp.task_modes import lengths_in
from cpsched.cp.variables import alternatives_of
from cpsched.domain import PlannedJob, Segment
from cpsched.errors import EngineError
from cpsched.problem import Hold, Machine, in_segments, map_to_nodes, placements


def decode(encoding: Encoding, solution: Sequence[Placed]) -> dict[str, PlannedJob]:
    """Return the planned jobs, by id, of a solution (one entry for each task), without those that it leaves out.

    Raises `EngineError` if it is no solution of this window.
    """
    alternatives = {(number, part, site) for (number, part, site), _ in alternatives_of(encoding)}
    counts = {(number, part, site) for number, one in enumerate(solution) for part, site, _ in one.counts}
    if len(solution) != len(encoding.tasks) or not counts <= alternatives or not _has_segments(encoding, solution):
        raise EngineError("CP-SAT found what is no plan of this window")
    return decode_tasks(encoding, {number: one for number, one in enumerate(solution) if not one.is_absent})


def decode_tasks(encoding: Encoding, placed: Mapping[int, Placed]) -> dict[str, PlannedJob]:
    """Return some tasks as planned jobs, by id; on whole nodes they are all that there are."""
    if encoding.machine is not None:
        tasks = [encoding.tasks[number] for number in placed]
        return _on_whole_nodes(encoding, encoding.machine, tasks, tuple(placed.values()))
    return {
        encoding.tasks[number].job.id: _planned(encoding, encoding.tasks[number], one) for number, one in placed.items()
    }


def _has_segments(encoding: Encoding, solution: Sequence[Placed]) -> bool:
    """Return whether each job is run in one of its modes."""
    return all(
        (task.is_optional and not placed.counts)
        if placed.is_absent
        else placed.mode < len(task.modes) and len(placed.lengths) == len(task.modes[placed.mode].spans)
        for placed, task in zip(solution, encoding.tasks, strict=True)
    )


def _planned(encoding: Encoding, task: Task, placed: Placed) -> PlannedJob:
    """Return a job with the nodes of its chunks."""
    if task.is_running:
        times = [encoding.now + time for time in placed.times]
        return resumed(task.job, task.modes[placed.mode], times, encoding.now)
    held: list[list[tuple[str, int, int]]] = [[] for _ in placed.lengths]
    for place, site, units in sorted(placed.counts):
        part, name = task.parts[place], encoding.sites[site].name
        for segment, unit in enumerate(part.units, start=part.first):
            held[segment] += ((name, kind, units * per_unit) for kind, per_unit in unit)
    return _in_segments(encoding, task, placed, held)


def _on_whole_nodes(
    encoding: Encoding, machine: Machine, tasks: Sequence[Task], solution: Sequence[Placed]
) -> dict[str, PlannedJob]:
    """Return the jobs with whole nodes: a growing job keeps the nodes that it has."""
    requests = [task.modes[placed.mode].requests for task, placed in zip(tasks, solution, strict=True)]
    holds = [
        [
            Hold(start, end, sum(chunk.count for chunk in request.chunks))
            for (start, end), request in zip(pairwise(placed.times), of_task, strict=True)
        ]
        for placed, of_task in zip(solution, requests, strict=True)
    ]
    planned = {}
    nodes = map_to_nodes(holds, machine.free_from)
    for task, placed, of_steps in zip(tasks, solution, nodes, strict=True):
        held = [[(machine.names[node], 0, 1) for node in numbers] for numbers in of_steps]
        planned[task.job.id] = _in_segments(encoding, task, placed, held)
    return planned


def _in_segments(
    encoding: Encoding, task: Task, placed: Placed, held: Sequence[Sequence[tuple[str, int, int]]]
) -> PlannedJob:
    """Return a job that holds (node, kind of chunks, how many) in each of its segments."""
    times = pairwise(encoding.now + time for time in placed.times)
    segments = [
        Segment(start=start, end=end, allocation=placements(request.chunks, units))
        for (start, end), request, units in zip(times, task.modes[placed.mode].requests, held, strict=True)
    ]
    alternative = placed.mode if task.job.alternatives else 0
    return in_segments(task.job.id, segments if task.job.is_evolving else joined(segments), alternative)


# --- and back --------------------------------------------------------------------------------------------------------


def placed_as_in(encoding: Encoding, planned: Mapping[str, PlannedJob]) -> tuple[Placed, ...] | None:
    """Return the place and mode of each task in a plan, or None if the model does not have that plan: the units of a
    part share their segments, and each job has one of its modes, or is one that may be left out.
    """
    site_of = {site.name: number for number, site in enumerate(encoding.sites)}
    found = []
    for task in encoding.tasks:
        if task.is_optional and task.job.id not in planned:
            found.append(Placed((task.earliest,), (), ABSENT))
            continue
        placed = place_of(encoding, task, planned[task.job.id], site_of)
        if placed is None:
            return None
        found.append(placed)
    return tuple(found)


def place_of(encoding: Encoding, task: Task, job: PlannedJob, site_of: Mapping[str, int]) -> Placed | None:
    """Return the place and mode of a task that is planned so, or None if the model does not have that.

    `site_of`: the number of each site, by name.
    """
    segments = coming(job, encoding.now) if task.is_running else job.segments
    found = _mode_in(task, segments)
    if task.job.alternatives:
        found = job.alternative, [segment.end - segment.start for segment in segments]
    if found is None:
        return None
    mode, lengths = found
    counts = _counts_in(task, mode, segments, site_of)
    if counts is None:
        return None
    times = tuple(accumulate(lengths, initial=segments[0].start - encoding.now))
    return Placed(times, tuple(sorted(counts)), mode)


def _mode_in(task: Task, segments: Sequence[Segment]) -> tuple[int, list[int]] | None:
    """Return the mode in which a plan runs a job, the first one that has what the plan has, and how long each of its
    segments is then.
    """
    has, lengths = (
        [totals_of(segment.allocation) for segment in segments],
        [segment.end - segment.start for segment in segments],
    )
    for number, mode in enumerate(task.modes):
        asked = [Counter(request.totals) for request in mode.requests]
        if task.is_running:
            asked = [totals_of(held) for held in mode.allocations]
        if mode.work is None:
            if has == asked:
                return number, lengths
        elif (found := lengths_in(mode, has, asked, lengths)) is not None:
            return number, found
    return None


def _counts_in(
    task: Task, mode: int, segments: Sequence[Segment], site_of: Mapping[str, int]
) -> list[tuple[int, int, int]] | None:
    """Return the number of units of each part on each site, or None if they do not fit together: longest layers
    first.
    """
    if task.is_running:
        return [
            (n, alternative.site, 1)
            for n, part in enumerate(task.parts)
            if part.mode == mode
            for alternative in part.alternatives
        ]
    if task.modes[mode].work is not None:  # the chunks stand on the same nodes in all of its segments
        segments = [segments[0]] * len(task.modes[mode].spans)
    left = [
        Counter({(site_of.get(held.node, -1), held.chunk or 0): held.count or 0 for held in segment.allocation})
        for segment in segments
    ]
    counts = []
    for number, part in enumerate(task.parts):
        need = part.need if part.mode == mode else 0
        for site in dict.fromkeys(site for site, _ in left[part.first]) if need else ():
            there = [(left[part.first + n], kind, per) for n, unit in enumerate(part.units) for kind, per in unit]
            units = min(need, *(of_segment[site, kind] // per for of_segment, kind, per in there))
            for of_segment, kind, per in there if units else ():
                of_segment[site, kind] -= per * units
            if units:
                counts.append((number, site, units))
            need -= units
        if need:
            return None
    return counts
