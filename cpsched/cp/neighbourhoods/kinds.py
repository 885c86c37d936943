"""Kinds of neighbourhoods: which tasks are planned anew together, and on which nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from cpsched.cp.neighbourhoods.occupation import Occupation

__all__ = ["KINDS", "Choice", "Kind", "Size"]


@dataclass(frozen=True, slots=True)
class Size:
    """The most tasks and sites of a neighbourhood."""

    tasks: int
    sites: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Some tasks, ascending, and the sites on which they may be."""

    tasks: tuple[int, ...]
    sites: tuple[int, ...]


#: Chooses a neighbourhood; None: there is none of this kind.
Kind = Callable[[Occupation, Size, Random], Choice | None]


def costly_nodes(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose the nodes of a costly task, deep in time: it, and what is on them before it and while it runs."""
    costly = _costly(occupation, random)
    if costly is None:
        return None
    sites = [*occupation.sites_of(costly)]
    random.shuffle(sites)
    others = [site for site in occupation.admitted(costly) if site not in set(sites)]
    sites += random.sample(others, min(len(others), max(0, size.sites - len(sites))))
    since = int(occupation.encoding.tasks[costly].earliest)
    near = _on(occupation, sites, since, int(occupation.ends[costly]))
    near.sort(key=lambda number: (abs(int(occupation.starts[number]) - int(occupation.starts[costly])), number))
    return _closed(occupation, [costly, *near], sites, size)


def costly_rivals(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose a costly task, and those that run at some earlier second on nodes where it could."""
    costly = _costly(occupation, random)
    if costly is None:
        return None
    earliest, start = int(occupation.encoding.tasks[costly].earliest), int(occupation.starts[costly])
    if start <= earliest:
        return None
    moment = random.randrange(earliest, start)
    until = moment + occupation.encoding.tasks[costly].shortest
    sites = random.sample(admitted := occupation.admitted(costly), min(len(admitted), size.sites))
    own = [*occupation.sites_of(costly)]
    rivals = _on(occupation, sites, moment, until)
    random.shuffle(rivals)
    return _closed(occupation, [costly, *rivals], [*own, *sites], size)


def ejection(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose a costly task, and the least costly ones that must go for it to start at some earlier second."""
    costly = _costly(occupation, random)
    if costly is None:
        return None
    task = occupation.encoding.tasks[costly]
    earliest, start = int(task.earliest), int(occupation.starts[costly])
    if start <= earliest:
        return None
    moment = earliest if random.random() < 0.3 else random.randrange(earliest, start)
    until = moment + task.shortest
    admitted = [*occupation.admitted(costly)]
    random.shuffle(admitted)

    def rivals(site: int) -> list[int]:
        return _on(occupation, [site], moment, until)

    price = {site: sum(_price(occupation, number) for number in rivals(site)) for site in admitted}
    best = sorted(admitted, key=lambda site: price[site])[: max(size.sites - len([*occupation.sites_of(costly)]), 1)]
    found = [number for site in best for number in rivals(site)]
    return _closed(occupation, [costly, *dict.fromkeys(found)], [*best, *occupation.sites_of(costly)], size)


def time_slice(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose some nodes from some second on: the next tasks there."""
    costly = _costly(occupation, random)
    if costly is None:
        return None
    admitted = [*occupation.admitted(costly)]
    sites = random.sample(admitted, min(len(admitted), size.sites))
    moment = random.randrange(0, max(1, int(occupation.starts[costly]) + 1))
    later = _on(occupation, sites, moment, int(occupation.ends.max(initial=0)) + 1)
    later.sort(key=lambda number: (int(occupation.starts[number]), number))
    return _closed(occupation, later, sites, size)


def few_nodes(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose two to four nodes, deep in time: tasks that are on them alone, one after the other."""
    costly = _costly(occupation, random)
    if costly is None:
        return None
    admitted = [*occupation.admitted(costly)]
    sites = set(random.sample(admitted, min(len(admitted), random.randint(1, 3))))
    sites |= set([*occupation.sites_of(costly)][:1])
    inside = [
        number
        for number in _on(occupation, sites, 0, int(occupation.ends.max(initial=0)) + 1)
        if set(occupation.sites_of(number)) <= sites
    ]
    if not inside:
        return None
    inside.sort(key=lambda number: (int(occupation.starts[number]), number))
    first = random.randrange(max(1, len(inside) - size.tasks + 1))
    return _closed(occupation, inside[first:], sorted(sites), size)


#: The kinds by name.
KINDS: Mapping[str, Kind] = {
    "costly nodes": costly_nodes,
    "rivals": costly_rivals,
    "ejection": ejection,
    "slice": time_slice,
    "few nodes": few_nodes,
}


def _costly(occupation: Occupation, random: Random) -> int | None:
    """Return a task, drawn by what it costs; None, if none costs anything."""
    total = np.cumsum(occupation.costs)
    if not len(total) or total[-1] <= 0:
        return None
    return int(np.searchsorted(total, random.random() * total[-1], side="right"))


def _on(occupation: Occupation, sites: Iterable[int], since: int, until: int) -> list[int]:
    """Return the tasks that are on some sites at some time in [since, until), and may move; in order."""
    found = {number for site in sites for number in occupation.on_site[site]}
    return [
        number
        for number in sorted(found)
        if occupation.starts[number] < until
        and occupation.ends[number] > since
        and occupation.placed[number] is not None
    ]


def _price(occupation: Occupation, number: int) -> float:
    """Return how much a task costs in a second of delay."""
    return float(sum(rate.weight for rate in occupation.encoding.costs.rates[number]))


def _closed(occupation: Occupation, tasks: Sequence[int], sites: Iterable[int], size: Size) -> Choice | None:
    """Return as many of the tasks, the first ones first, as are allowed, with the sites on which they are."""
    kept: list[int] = []
    wanted = list(dict.fromkeys(sites))
    within = set(wanted)
    most = max(size.sites, len(wanted)) + 4
    for number in dict.fromkeys(tasks):
        if len(kept) == size.tasks:
            break
        more = [site for site in occupation.sites_of(number) if site not in within]
        if kept and len(within) + len(more) > most:
            continue
        kept.append(number)
        wanted += more
        within.update(more)
    return Choice(tuple(sorted(kept)), tuple(sorted(wanted))) if kept else None
