"""Project instances of PSPLIB (Kolisch and Sprecher, 1997) as windows: a foreign judge of dependencies and licences.

A project has activities with durations, precedences, and renewable resources of which each activity takes an amount
while it runs; the objective is the shortest project. Here an activity is a job of one core on a node that has a
core for each, a resource is a licence, and a precedence is a dependency ``afterok``. Modes of an activity (files
``.mm``) are alternatives, and resources that are used up are licences that do not come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    Objective,
    ObjectiveTerm,
    Request,
    Step,
)
from cpsched.errors import DocumentError, Fault

__all__ = ["lags_window", "project_window"]

#: The lines that say how many resources there are; nothing in a window is both held and used up.
_RESOURCES, _DOUBLY = ("- renewable", "- nonrenewable"), "- doubly constrained"
#: The parts of a file that hold what counts, and how many columns their rows have at least.
_PARTS = {"PRECEDENCE RELATIONS": 3, "REQUESTS/DURATIONS": 3, "RESOURCEAVAILABILITIES": 1}


@dataclass(frozen=True, slots=True)
class _Activity:
    """One activity of a project."""

    #: Of each mode the duration, and the amount that it takes of each resource.
    modes: tuple[tuple[int, tuple[int, ...]], ...]
    #: The activities that end before it starts, by number.
    predecessors: tuple[int, ...]

    @property
    def takes_time(self) -> bool:
        """Whether it has a duration in each of its modes."""
        return all(duration for duration, _ in self.modes)


def project_window(text: str, name: str) -> Instance:
    """Return a project (a file ``.sm`` or ``.mm``) as a window whose makespan is that of the project.

    Activities that take no time, the source and the sink of the project, are left out; what comes before them still
    comes before what comes after them.

    Parameters
    ----------
    text
        The content of the file.
    name
        What the instance is called.

    Raises
    ------
    DocumentError
        If the text is no such project.
    """
    counts, rows = _rows_of(text, name)
    activities = _activities(rows, name)
    capacities = rows["RESOURCEAVAILABILITIES"][0]
    if len(capacities) != sum(counts):
        raise _fault(name, "RESOURCEAVAILABILITIES", f"Expected {sum(counts)} resources, got {len(capacities)}")
    names = [f"R{1 + place}" if place < counts[0] else f"N{1 + place - counts[0]}" for place in range(len(capacities))]
    jobs = tuple(
        _job(number, activity, _awaited(activities, number), names)
        for number, activity in activities.items()
        if activity.takes_time
    )
    return _window(name, jobs, dict(zip(names, capacities, strict=True)), tuple(names[counts[0] :]))


def lags_window(text: str, name: str) -> Instance:
    """Return a project with general time lags (a file ``.sch`` of ProGen/max, Schwindt 1998) as a window.

    A row has the number of an activity, its modes (one), how many others it has lags to, those, and for each the lag
    from start to start in brackets. One of at least 0 is a least lag; one of -n from j to i lets j start at most n
    after i. Where j may also start before i, both follow a marker, a job of a second that uses nothing: i at any time
    after it, and j at most n. The source, the sink and their lags are left out.

    Raises `DocumentError` if the text is no such project.
    """
    rows = [[int(word.strip("[]")) for word in line.split()] for line in text.splitlines() if line.strip()]
    count, num_resources = rows[0][:2]
    if len(rows) != 2 * count + 6:
        raise _fault(name, "", f"Expected {2 * count + 6} rows for {count} activities, got {len(rows)}")
    lags = {
        (row[0], other): lag
        for row in rows[1 : count + 3]
        for other, lag in zip(row[3 : 3 + row[2]], row[3 + row[2] :], strict=True)
        if 0 < row[0] <= count and 0 < other <= count
    }
    shapes = {row[0]: (row[2], row[3 : 3 + num_resources]) for row in rows[count + 3 : 2 * count + 5]}
    capacities = rows[2 * count + 5][:num_resources]
    names = [f"R{1 + place}" for place in range(num_resources)]
    paths = _longest_paths(lags, count)
    for number in range(1, count + 1):
        if paths[number, number] > 0:
            raise _fault(name, f"activity {number}", "Expected lags that starts can keep together, got a circle")
    after: dict[str, list[Dependency]] = {str(number): [] for number in range(1, count + 1)}
    for (one, other), lag in lags.items():
        if lag < paths[one, other]:
            continue  # it follows from others
        # two that start together come in the order of their numbers
        if lag >= 0 and (one < other or paths[other, one] < 0):
            after[str(other)].append(Dependency(job=str(one), type=DependencyType.AFTER, delay=lag))
        elif paths[other, one] >= 0:
            after[str(one)].append(Dependency(job=str(other), type=DependencyType.AFTER, max_delay=-lag))
        else:
            marker = f"{other}-{one}"
            after[marker] = []
            after[str(other)].append(Dependency(job=marker, type=DependencyType.AFTER))
            after[str(one)].append(Dependency(job=marker, type=DependencyType.AFTER, max_delay=-lag))
    jobs = []
    for called, links in after.items():
        seconds, amounts = shapes[int(called)] if called.isdecimal() else (1, ())
        licenses = Amounts({name: n for name, n in zip(names, amounts, strict=False) if n})
        step = Step(walltime=seconds, request=_ONE_CORE)
        jobs.append(Job(id=called, submit=0, steps=(step,), licenses=licenses, after=tuple(links)))
    return _window(name, tuple(jobs), dict(zip(names, capacities, strict=True)))


def _longest_paths(lags: Mapping[tuple[int, int], int], count: int) -> NDArray[np.float64]:
    """Return the longest path of lags from each activity (row) to each other, minus infinity where there is none."""
    paths = np.full((count + 1, count + 1), -np.inf)
    for (one, other), lag in lags.items():
        paths[one, other] = lag
    for by in range(count + 1):
        paths = np.maximum(paths, paths[:, by, None] + paths[by])
    return paths


def _window(name: str, jobs: tuple[Job, ...], licenses: Mapping[str, int], consumed: tuple[str, ...] = ()) -> Instance:
    """Return a window of which the last end counts."""
    node = NodeClass(names=("project",), resources=Amounts({"cores": max(1, len(jobs))}))
    return Instance(
        name=name,
        cluster=Cluster(classes=(node,), licenses=Amounts(licenses), consumed=consumed),
        jobs=jobs,
        objective=Objective(weights=FrozenMap({ObjectiveTerm.MAKESPAN: 1.0})),
    )


def _job(number: int, activity: _Activity, awaited: Sequence[int], names: Sequence[str]) -> Job:
    """Return an activity as a job; modes that are the same are one."""
    choices = [
        (
            Step(walltime=duration, request=_ONE_CORE),
            Amounts({name: n for name, n in zip(names, demands, strict=True) if n}),
        )
        for duration, demands in dict.fromkeys(activity.modes)
    ]
    return Job(
        id=str(number),
        submit=0,
        steps=(choices[0][0],),
        licenses=choices[0][1],
        alternatives=tuple(step for step, _ in choices[1:]),
        licenses_of_choices=tuple(licenses for _, licenses in choices) if len(choices) > 1 else (),
        after=tuple(Dependency(job=str(other), type=DependencyType.AFTEROK) for other in awaited),
    )


_ONE_CORE = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),))


def _awaited(activities: Mapping[int, _Activity], number: int) -> list[int]:
    """Return the predecessors of an activity; predecessors of no duration are replaced by their own predecessors."""
    awaited: list[int] = []
    pending = list(reversed(activities[number].predecessors))
    while pending:
        other = pending.pop()
        if activities[other].takes_time:
            awaited.append(other)
        else:
            pending.extend(reversed(activities[other].predecessors))
    return sorted(set(awaited))


def _rows_of(text: str, name: str) -> tuple[list[int], dict[str, list[tuple[int, ...]]]]:
    """Return the numbers of renewable and nonrenewable resources, and the rows of numbers of each part; lines of stars
    end a part, other text is not read.
    """
    counts = [0, 0]
    rows: dict[str, list[tuple[int, ...]]] = {part: [] for part in _PARTS}
    part = None
    for number, line in enumerate(text.splitlines(), 1):
        head, _, value = (piece.strip() for piece in line.partition(":"))
        if head in _PARTS or line.startswith("*"):
            part = head if head in _PARTS else None
        elif head in _RESOURCES:
            counts[_RESOURCES.index(head)] = int(value.split()[0])
        elif head == _DOUBLY and not value.startswith("0"):
            raise _fault(name, f"line {number}", f"Expected no resources of both kinds, got {line.strip()!r}")
        elif part is not None and line.strip() and all(word.isdecimal() for word in line.split()):
            row = tuple(map(int, line.split()))
            if len(row) < _PARTS[part]:
                raise _fault(name, f"line {number}", f"Expected {_PARTS[part]} numbers or more, got {line.strip()!r}")
            rows[part].append(row)
    for part, found in rows.items():
        if not found:
            raise _fault(name, "", f"Expected a part {part!r} with rows of numbers, got none")
    return counts, rows


def _activities(rows: Mapping[str, Sequence[tuple[int, ...]]], name: str) -> dict[int, _Activity]:
    """Return the activities by number, in the order of the file."""
    num_resources = len(rows["RESOURCEAVAILABILITIES"][0])
    num_modes: dict[int, int] = {}
    successors: dict[int, tuple[int, ...]] = {}
    for number, modes, count, *listed in rows["PRECEDENCE RELATIONS"]:
        if not modes or len(listed) != count:
            found = f"{modes} modes and {len(listed)} successors"
            raise _fault(name, f"activity {number}", f"Expected a mode and {count} successors, got {found}")
        num_modes[number], successors[number] = modes, tuple(listed)
    modes_of: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    number = 0  # of no activity
    for row in rows["REQUESTS/DURATIONS"]:
        # further modes of an activity do not repeat its number
        if not number or len(modes_of[number]) >= num_modes.get(number, 1):
            number, rest = row[0], row[1:]
        else:
            rest = row
        _, duration, *demands = rest
        if len(demands) != num_resources:
            raise _fault(name, f"activity {number}", f"Expected {num_resources} demands, got {len(demands)}")
        modes_of.setdefault(number, []).append((duration, tuple(demands)))
    named = {number for listed in successors.values() for number in listed}
    if not named | successors.keys() <= modes_of.keys():
        unknown = sorted((named | successors.keys()) - modes_of.keys())
        raise _fault(name, f"activity {unknown[0]}", "Expected a row with its duration, got none")
    activities = {}
    for number, of_modes in modes_of.items():
        before = tuple(other for other, listed in successors.items() if number in listed)
        activities[number] = _Activity(tuple(of_modes), before)
        if not activities[number].takes_time and (any(duration for duration, _ in of_modes) or any(of_modes[0][1])):
            raise _fault(name, f"activity {number}", "Expected a duration in each mode, or one that takes nothing")
    return activities


def _fault(name: str, path: str, message: str) -> DocumentError:
    """Return the error for the first fault of a file."""
    return DocumentError(name, [Fault(path, message)])
