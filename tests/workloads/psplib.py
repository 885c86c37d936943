"""Project instances of PSPLIB (Kolisch and Sprecher, 1997) as windows: a foreign judge of dependencies and licences.

A project has activities with durations, precedences, and renewable resources of which each activity takes an amount
while it runs; the objective is the shortest project. Here an activity is a job of one core on a node that has a
core for each, a resource is a licence, and a precedence is a dependency ``afterok``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

__all__ = ["project_window"]

#: The parts of a file that hold what counts, and how many columns their rows have at least.
_PARTS = {"PRECEDENCE RELATIONS": 3, "REQUESTS/DURATIONS": 3, "RESOURCEAVAILABILITIES": 1}
#: Resources that are used up: nothing in a window is.
_USED_UP = ("- nonrenewable", "- doubly constrained")


@dataclass(frozen=True, slots=True)
class _Activity:
    """One activity of a project."""

    duration: int
    #: The amount that it takes of each resource.
    demands: tuple[int, ...]
    #: The activities that end before it starts, by number.
    predecessors: tuple[int, ...]


def project_window(text: str, name: str) -> Instance:
    """Return a single-mode project (a file ``.sm``) as a window whose makespan is that of the project.

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
    rows = _rows_of(text, name)
    activities = _activities(rows, name)
    jobs = tuple(
        Job(
            id=str(number),
            submit=0,
            steps=(Step(walltime=activity.duration, request=_ONE_CORE),),
            licenses=Amounts({f"R{place}": amount for place, amount in enumerate(activity.demands, 1) if amount}),
            after=tuple(
                Dependency(job=str(other), type=DependencyType.AFTEROK) for other in _awaited(activities, number)
            ),
        )
        for number, activity in activities.items()
        if activity.duration
    )
    capacities = rows["RESOURCEAVAILABILITIES"][0]
    node = NodeClass(names=("project",), resources=Amounts({"cores": max(1, len(jobs))}))
    licenses = Amounts({f"R{place}": amount for place, amount in enumerate(capacities, 1)})
    return Instance(
        name=name,
        cluster=Cluster(classes=(node,), licenses=licenses),
        jobs=jobs,
        objective=Objective(weights=FrozenMap({ObjectiveTerm.MAKESPAN: 1.0})),
    )


_ONE_CORE = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": 1})),))


def _awaited(activities: Mapping[int, _Activity], number: int) -> list[int]:
    """Return the predecessors of an activity; predecessors of no duration are replaced by their own predecessors."""
    awaited: list[int] = []
    pending = list(reversed(activities[number].predecessors))
    while pending:
        other = pending.pop()
        if activities[other].duration:
            awaited.append(other)
        else:
            pending.extend(reversed(activities[other].predecessors))
    return sorted(set(awaited))


def _rows_of(text: str, name: str) -> dict[str, list[tuple[int, ...]]]:
    """Return the rows of numbers of each part; lines of stars end a part, other text is not read."""
    rows: dict[str, list[tuple[int, ...]]] = {part: [] for part in _PARTS}
    part = None
    for number, line in enumerate(text.splitlines(), 1):
        head, _, value = (piece.strip() for piece in line.partition(":"))
        if head in _PARTS or line.startswith("*"):
            part = head if head in _PARTS else None
        elif head in _USED_UP and not value.startswith("0"):
            raise _fault(name, f"line {number}", f"Expected renewable resources only, got {line.strip()!r}")
        elif part is not None and line.strip() and all(word.isdecimal() for word in line.split()):
            row = tuple(map(int, line.split()))
            if len(row) < _PARTS[part]:
                raise _fault(name, f"line {number}", f"Expected {_PARTS[part]} numbers or more, got {line.strip()!r}")
            rows[part].append(row)
    for part, found in rows.items():
        if not found:
            raise _fault(name, "", f"Expected a part {part!r} with rows of numbers, got none")
    return rows


def _activities(rows: Mapping[str, Sequence[tuple[int, ...]]], name: str) -> dict[int, _Activity]:
    """Return the activities by number, in the order of the file."""
    num_resources = len(rows["RESOURCEAVAILABILITIES"][0])
    successors: dict[int, tuple[int, ...]] = {}
    for number, modes, count, *listed in rows["PRECEDENCE RELATIONS"]:
        if modes != 1 or len(listed) != count:
            found = f"{modes} modes and {len(listed)} successors"
            raise _fault(name, f"activity {number}", f"Expected one mode and {count} successors, got {found}")
        successors[number] = tuple(listed)
    demanded = {number: (duration, tuple(demands)) for number, _, duration, *demands in rows["REQUESTS/DURATIONS"]}
    named = {number for listed in successors.values() for number in listed}
    if not named | successors.keys() <= demanded.keys():
        unknown = sorted((named | successors.keys()) - demanded.keys())
        raise _fault(name, f"activity {unknown[0]}", "Expected a row with its duration, got none")
    activities = {}
    for number, (duration, demands) in demanded.items():
        if len(demands) != num_resources:
            raise _fault(name, f"activity {number}", f"Expected {num_resources} demands, got {len(demands)}")
        before = tuple(other for other, listed in successors.items() if number in listed)
        activities[number] = _Activity(duration, demands, before)
    return activities


def _fault(name: str, path: str, message: str) -> DocumentError:
    """Return the error for the first fault of a file."""
    return DocumentError(name, [Fault(path, message)])
