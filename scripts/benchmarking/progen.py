"""Multi-mode projects by the scheme of ProGen (Kolisch, Sprecher and Drexl 1995), as files ``.mm`` of PSPLIB.

The resource factor is the share of the resources that an activity takes in each mode. With a strength of 0 a capacity
just lets each activity run alone, or each in its thriftiest mode; with 1 none waits, or every mode can be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

#: Modes of an activity; the longest duration and the largest demand; and the fewest and most neighbours in the network.
MODES, LONGEST, LARGEST, FIRST, MOST = 3, 10, 10, 3, 3
#: Resources that come back, and that do not.
KINDS = (2, 2)

_Modes = list[tuple[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a project is like."""

    activities: int
    #: Arcs by activity, none of which follows from others.
    complexity: float
    #: Of both kinds of resources.
    factors: tuple[float, float]
    strengths: tuple[float, float]


def shapes(activities: int, complexities: tuple[float, ...]) -> list[Shape]:
    """Return the full factorial design of MMLIB: factors of a half and 1, strengths of 1/4, 1/2 and 3/4."""
    pairs = list(product((0.5, 1.0), repeat=2)), list(product((0.25, 0.5, 0.75), repeat=2))
    return [
        Shape(activities=activities, complexity=complexity, factors=factors, strengths=strengths)
        for complexity, factors, strengths in product(complexities, *pairs)
    ]


def project(shape: Shape, seed: int) -> str:
    """Return a project as the text of a file."""
    random = Random(seed)
    arcs = _network(shape, random)
    modes = [_modes(shape, random) for _ in range(shape.activities)]
    return _text(arcs, modes, [*_renewable(shape, arcs, modes), *_nonrenewable(shape, modes)])


def with_lags(shape: Shape, seed: int) -> str:
    """Return a project with general time lags as the text of a file ``.sch`` (ProGen/max, Schwindt 1998).

    Least lags are half to one and a half times the first one's duration. For a fifth of all activities a later one may
    start at most so long after an earlier one as the longest path between them and up to as much again.
    """
    random, count = Random(seed), shape.activities
    arcs = _network(shape, random)
    modes = [_modes(shape, random) for _ in range(count)]
    lags = {
        (one, other): random.randint((modes[one][0][0] + 1) // 2, modes[one][0][0] * 3 // 2)
        for one, others in enumerate(arcs)
        for other in others
    }
    paths: dict[tuple[int, int], int] = {}
    for one in reversed(range(count)):  # all arcs lead to larger numbers
        for other in arcs[one]:
            paths[one, other] = max(paths.get((one, other), 0), lags[one, other])
            for last in range(other + 1, count):
                if (other, last) in paths:
                    far = lags[one, other] + paths[other, last]
                    paths[one, last] = max(paths.get((one, last), 0), far)
    pairs = [pair for pair in paths if pair not in lags]
    for one, other in random.sample(pairs, min(len(pairs), -(-count // 5))):
        most = random.randint(paths[one, other], 2 * paths[one, other])
        lags[other, one] = -most
        # what leads to the later one, and on from the earlier one
        ahead = {first: far for (first, last), far in paths.items() if last == other} | {other: 0}
        beyond = {last: far for (first, last), far in paths.items() if first == one} | {one: 0}
        for first, before in ahead.items():
            for last, after in beyond.items():
                if first != last:
                    paths[first, last] = max(paths.get((first, last), before - most + after), before - most + after)
    capacities = _renewable(shape, arcs, [of[:1] for of in modes])
    lines = [
        f"{count} {KINDS[0]} 0 0",
        "0 1 0",
        *(_lags_of(number, lags) for number in range(count)),
        f"{count + 1} 1 0",
    ]
    shapes = [
        f"{1 + number} 1 {of[0][0]} {' '.join(map(str, of[0][1][: KINDS[0]]))}" for number, of in enumerate(modes)
    ]
    none = " 0" * KINDS[0]
    return "\n".join([*lines, f"0 1 0{none}", *shapes, f"{count + 1} 1 0{none}", " ".join(map(str, capacities)), ""])


def _lags_of(number: int, lags: dict[tuple[int, int], int]) -> str:
    found = [(other, lag) for (one, other), lag in lags.items() if one == number]
    numbers = [str(1 + other) for other, _ in found] + [f"[{lag}]" for _, lag in found]
    return " ".join([str(1 + number), "1", str(len(found)), *numbers])


def _network(shape: Shape, random: Random) -> list[set[int]]:
    """Return the direct successors of each activity."""
    count = shape.activities
    after: list[set[int]] = [set() for _ in range(count)]
    before: list[set[int]] = [set() for _ in range(count)]
    #: All that come after each activity.
    behind: list[set[int]] = [set() for _ in range(count)]

    def add(one: int, other: int) -> None:
        ahead, beyond = {one, *(first for first in range(one) if one in behind[first])}, {other, *behind[other]}
        if other in behind[one] or any(after[first] & beyond for first in ahead):
            return  # it or another arc would follow from others
        after[one].add(other)
        before[other].add(one)
        for first in ahead:
            behind[first] |= beyond

    for other in range(FIRST, count):
        add(random.choice([one for one in range(other) if len(after[one]) < MOST]), other)
    for one in range(count - FIRST):
        if not after[one]:
            add(one, random.randrange(one + 1, count))
    for _ in range(50 * count):
        if sum(map(len, after)) >= shape.complexity * count:
            break
        one, other = sorted(random.sample(range(count), 2))
        if len(after[one]) < MOST and len(before[other]) < MOST:
            add(one, other)
    return after


def _modes(shape: Shape, random: Random) -> _Modes:
    """Return the modes of an activity, the shortest first; what takes longer takes no more of anything."""
    durations = sorted(random.randint(1, LONGEST) for _ in range(MODES))
    demands: list[list[int]] = []
    for factor, number in zip(shape.factors, KINDS, strict=True):
        taken = random.sample(range(number), max(1, round(factor * number)))
        for resource in range(number):
            few, much = sorted(random.randint(1, LARGEST) for _ in range(2))
            amounts = [round(much - (much - few) * place / (MODES - 1)) for place in range(MODES)]
            demands.append(amounts if resource in taken else [0] * MODES)
    return [(duration, tuple(of[place] for of in demands)) for place, duration in enumerate(durations)]


def _renewable(shape: Shape, arcs: list[set[int]], modes: list[_Modes]) -> list[int]:
    """Return the capacities of the resources that come back."""
    starts = [0] * len(arcs)
    for one, others in enumerate(arcs):
        for other in others:
            starts[other] = max(starts[other], starts[one] + modes[one][0][0])
    found = []
    for resource in range(KINDS[0]):
        least = max(min(demands[resource] for _, demands in of) for of in modes)
        ends = [start + of[0][0] for start, of in zip(starts, modes, strict=True)]
        peak = max(
            sum(
                max(demands[resource] for _, demands in modes[one])
                for one in range(len(arcs))
                if starts[one] <= time < ends[one]
            )
            for time in starts
        )
        found.append(least + round(shape.strengths[0] * max(0, peak - least)))
    return found


def _nonrenewable(shape: Shape, modes: list[_Modes]) -> list[int]:
    """Return the capacities of the resources that do not come back."""
    found = []
    for resource in range(KINDS[0], sum(KINDS)):
        amounts = [[demands[resource] for _, demands in of] for of in modes]
        least, most = sum(map(min, amounts)), sum(map(max, amounts))
        found.append(least + round(shape.strengths[1] * (most - least)))
    return found


def _text(arcs: list[set[int]], modes: list[_Modes], capacities: list[int]) -> str:
    """Return the file; activities are numbered from 2 on, after the source."""
    count, none = len(arcs), (0,) * sum(KINDS)
    has_before = set().union(*arcs)
    follows = [[2 + one for one in range(count) if one not in has_before]]
    follows += [sorted(2 + other for other in others) or [count + 2] for others in arcs]
    all_modes: list[_Modes] = [[(0, none)], *modes, [(0, none)]]
    lines = ["RESOURCES", *(f"  - {name} : {n}" for name, n in zip(("renewable", "nonrenewable"), KINDS, strict=True))]
    lines += ["*" * 72, "PRECEDENCE RELATIONS:"]
    for number, (of, others) in enumerate(zip(all_modes, [*follows, []], strict=True), 1):
        lines.append(" ".join(map(str, (number, len(of), len(others), *others))))
    lines += ["*" * 72, "REQUESTS/DURATIONS:"]
    for number, of in enumerate(all_modes, 1):
        for place, (duration, demands) in enumerate(of, 1):
            first = [] if place > 1 else [number]
            lines.append(" ".join(map(str, (*first, place, duration, *demands))))
    lines += ["*" * 72, "RESOURCEAVAILABILITIES:", " ".join(map(str, capacities)), ""]
    return "\n".join(lines)
