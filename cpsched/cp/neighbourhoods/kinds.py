"""Kinds of neighbourhoods: which tasks are planned anew together, and on which nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from cpsched.cp.encoding import Encoding
from cpsched.cp.neighbourhoods.occupation import Occupation

#: How many pairs of a task and a second are rated before one is chosen.
_RATED = (4, 16, 48)
#: A neighbourhood is filled from so many times as many tasks as it can have; those behind are far from its first.
_LOOKED_AT = 8
#: The most tasks that are moved for a task without a start.
_MOST_IN_WAY = 24
#: How often only those are moved that are in its way at one second.
_AT_ONE_SECOND = 0.5


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


def _about_costly(choose: Callable[[Occupation, Size, Random, int], Choice | None]) -> Kind:
    """Return a kind that begins with a costly task; nothing is chosen where there is none."""

    @wraps(choose)
    def kind(occupation: Occupation, size: Size, random: Random) -> Choice | None:
        costly = _costly(occupation, random)
        return None if costly is None else choose(occupation, size, random, costly)

    return kind


@_about_costly
def costly_nodes(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose the nodes of a costly task, deep in time: it, and what is on them before it and while it runs."""
    sites = [*occupation.sites_of(costly)]
    random.shuffle(sites)
    others = [site for site in occupation.admitted(costly) if site not in set(sites)]
    sites += random.sample(others, min(len(others), max(0, size.sites - len(sites))))
    since = int(occupation.encoding.tasks[costly].earliest)
    near = _on(occupation, sites, since, int(occupation.ends[costly]))
    near.sort(key=lambda number: (abs(int(occupation.starts[number]) - int(occupation.starts[costly])), number))
    return _closed(occupation, [costly, *near], sites, size)


@_about_costly
def costly_rivals(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and those that run at some earlier second on nodes where it could."""
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


@_about_costly
def ejection(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and the least costly ones that must go for it to start at some earlier second."""
    task = occupation.encoding.tasks[costly]
    earliest, start = int(task.earliest), int(occupation.starts[costly])
    if start <= earliest:
        return None
    moment = earliest if random.random() < 0.3 else random.randrange(earliest, start)
    until = moment + task.shortest
    admitted = [*occupation.admitted(costly)]
    random.shuffle(admitted)

    is_rival = (occupation.starts < until) & (occupation.ends > moment)
    rivals = np.flatnonzero(is_rival)
    price = occupation.is_on[:, rivals][admitted] @ occupation.prices[rivals]
    order = np.argsort(price, kind="stable")[: max(size.sites - len([*occupation.sites_of(costly)]), 1)]
    best = [admitted[place] for place in order.tolist()]
    found = [number for site in best for number in _on(occupation, [site], moment, until)]
    return _closed(occupation, [costly, *dict.fromkeys(found)], [*best, *occupation.sites_of(costly)], size)


def best_ejection(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose a costly task, an earlier second, and those in its way: of many such choices the one at which the task
    gains most, less what the others lose if they start after it.
    """
    best: tuple[float, int, int, list[int]] | None = None
    count = random.choice(_RATED)
    for _ in range(count):
        costly = _costly(occupation, random)
        if costly is None:
            return None
        task = occupation.encoding.tasks[costly]
        earliest, start = int(task.earliest), int(occupation.starts[costly])
        if start <= earliest:
            continue
        admitted = np.array(occupation.admitted(costly))
        moment = earliest
        ends = occupation.ends[occupation.is_on[admitted].any(axis=0)]
        ends = ends[(ends > earliest) & (ends < start)]
        if len(ends) and random.random() < 0.9:
            moment = int(ends[random.randrange(len(ends))])
        loss = _losses(occupation, admitted, costly, moment)
        order = np.argsort(loss, kind="stable")
        needed = len([*occupation.sites_of(costly)])
        gain = float(occupation.prices[costly]) * (start - moment) - float(loss[order[:needed]].sum())
        if best is None or gain > best[0]:
            best = gain, costly, moment, admitted[order].tolist()
    if best is None:
        return None
    _, costly, moment, ordered = best
    own = [*occupation.sites_of(costly)]
    sites = ordered[: max(size.sites - len(own), len(own), 1)]
    until = moment + occupation.encoding.tasks[costly].shortest
    found = [number for site in sites for number in _on(occupation, [site], moment, until)]
    return _closed(occupation, [costly, *dict.fromkeys(found)], [*sites, *own], size)


def _losses(occupation: Occupation, sites: NDArray[np.int64], number: int, moment: int) -> NDArray[np.float64]:
    """Return for each site what those there lose that must wait for a task that starts at a second."""
    until = moment + occupation.encoding.tasks[number].shortest
    is_there = (occupation.starts < until) & (occupation.ends > moment)
    is_there[number] = False
    there = np.flatnonzero(is_there)
    waits = occupation.prices[there] * (until - occupation.starts[there])
    losses: NDArray[np.float64] = occupation.is_on[:, there][sites] @ waits
    return losses


@_about_costly
def exchange(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task and one before it on nodes where it could be, such that it pays to swap them as long as they
    are alone (Smith's rule), and what is beside them on their nodes.
    """
    start, admitted = int(occupation.starts[costly]), np.array(occupation.admitted(costly))
    lengths = occupation.ends - occupation.starts
    gains = occupation.prices[costly] * lengths - occupation.prices * lengths[costly]
    is_before = (occupation.starts < start) & (occupation.ends > start - lengths[costly])
    is_before &= occupation.is_on[admitted].any(axis=0) & (occupation.starts >= 0)
    gains = np.where(is_before, np.maximum(gains, 0.0), 0.0)
    total = np.cumsum(gains)
    if total[-1] <= 0:
        return None
    other = int(np.searchsorted(total, random.random() * total[-1], side="right"))
    if occupation.placed[other] is None:
        return None
    sites = list(dict.fromkeys([*occupation.sites_of(other), *occupation.sites_of(costly)]))
    since = int(occupation.starts[other])
    near = _on(occupation, sites, since, start + int(lengths[costly]))
    near.sort(key=lambda number: (abs(int(occupation.starts[number]) - since), number))
    return _closed(occupation, [costly, other, *near], sites, size)


@_about_costly
def time_slice(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose some nodes from some second on: the next tasks there."""
    admitted = [*occupation.admitted(costly)]
    sites = random.sample(admitted, min(len(admitted), size.sites))
    moment = random.randrange(0, max(1, int(occupation.starts[costly]) + 1))
    later = _on(occupation, sites, moment, int(occupation.ends.max(initial=0)) + 1)
    later.sort(key=lambda number: (int(occupation.starts[number]), number))
    return _closed(occupation, later, sites, size)


@_about_costly
def few_nodes(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose two to four nodes, deep in time: tasks that are on them alone, one after the other."""
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


@_about_costly
def followers(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and those that end last before it can start on some nodes, with what follows them there."""
    start, admitted = int(occupation.starts[costly]), occupation.admitted(costly)
    since = max(0, start - int(random.expovariate(1 / max(1, occupation.encoding.tasks[costly].shortest))))
    sites = random.sample(admitted, min(len(admitted), size.sites))
    near = _on(occupation, sites, since, start + 1)
    near.sort(key=lambda number: (-int(occupation.starts[number]), number))
    return _closed(occupation, [costly, *near], [*occupation.sites_of(costly), *sites], size)


@_about_costly
def ancestors(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, those for which it waits, directly or not, and what is beside them on their nodes."""
    family, number = [costly], 0
    while number < len(family) and len(family) < size.tasks - 1:
        before = occupation.awaited(family[number])
        family += [one for one in before if one not in family and occupation.placed[one] is not None]
        number += 1
    if len(family) == 1:
        return None
    sites = [site for one in family for site in occupation.sites_of(one)]
    first = family[random.randrange(1, len(family))]
    earliest, start = int(occupation.encoding.tasks[first].earliest), int(occupation.starts[first])
    moment = random.randint(min(earliest, start), start)
    others = random.sample(admitted := occupation.admitted(first), min(len(admitted), 2))
    beside = _on(occupation, [*occupation.sites_of(first), *others], moment, int(occupation.ends[first]))
    random.shuffle(beside)
    return _closed(occupation, [*family, *beside], [*sites, *others], size)


@_about_costly
def changing(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and tasks that change, or can, on nodes where it could be, up to its start."""
    earliest, start = int(occupation.encoding.tasks[costly].earliest), int(occupation.starts[costly])
    moment = random.randint(min(earliest, start), start)
    sites = [*occupation.admitted(costly)]
    tasks = occupation.encoding.tasks
    near = [
        number
        for number in _on(occupation, sites, moment, start + 1)
        if len(tasks[number].modes) > 1 or len(tasks[number].modes[0].spans) > 1
    ]
    random.shuffle(near)
    some = random.sample(sites, min(len(sites), 2))
    return _closed(occupation, [costly, *near], [*occupation.sites_of(costly), *some], size)


@_about_costly
def one_queue(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and those of its queue that begin at nearly the same time."""
    tasks, start = occupation.encoding.tasks, int(occupation.starts[costly])
    near = [
        number
        for number, task in enumerate(tasks)
        if task.job.queue == tasks[costly].job.queue and occupation.placed[number] is not None and number != costly
    ]
    near.sort(key=lambda number: (abs(int(occupation.starts[number]) - start), number))
    return _closed(occupation, [costly, *near], occupation.sites_of(costly), size)


@_about_costly
def holders(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task that needs licences, and others that hold them before it."""
    if not occupation.encoding.tasks[costly].job.licenses:
        return None
    wanted, start = occupation.encoding.tasks[costly].job.licenses, int(occupation.starts[costly])
    near = [
        number
        for number, task in enumerate(occupation.encoding.tasks)
        if occupation.placed[number] is not None
        and number != costly
        and occupation.starts[number] <= start
        and any(name in task.job.licenses for name in wanted)
    ]
    near.sort(key=lambda number: (-int(occupation.ends[number]) + random.randrange(3600), number))
    return _closed(occupation, [costly, *near], occupation.sites_of(costly), size)


def lost(occupation: Occupation, size: Size, random: Random) -> Choice | None:
    """Choose a task without a start, all that it waits for and that has none either, and what is in their way.

    There all are free to move as far back as they may: more jobs beat fewer.
    """
    without = [
        number
        for number, task in enumerate(occupation.encoding.tasks)
        if not occupation.is_placed(number) and not task.is_running
    ]
    if not without:
        return None
    family, number = [random.choice(without)], 0
    while number < len(family):
        before = occupation.awaited(family[number])
        family += [one for one in before if one not in family and not occupation.is_placed(one)]
        number += 1
    found, sites = [*family], list[int]()
    for one in family:
        if occupation.encoding.tasks[one].earliest > occupation.encoding.tasks[one].latest:
            return None
        its_sites, in_way = _room(occupation, one, random) or _some_room(occupation, one, random)
        sites += its_sites
        found += in_way
    return _closed(occupation, found, sites, Size(_MOST_IN_WAY + len(family), _MOST_IN_WAY))


def _room(occupation: Occupation, number: int, random: Random) -> tuple[list[int], list[int]] | None:
    """Return sites on which a task could start in time if tasks were not there that can be moved back for ever, and
    these tasks; None if there are no such sites, or the task has several kinds of chunks or segments.
    """
    task, admitted = occupation.encoding.tasks[number], occupation.admitted(number)
    if len(task.parts) != 1 or len(task.parts[0].units) != 1:
        return None
    (part,) = task.parts
    there = _on(occupation, admitted, 0, int(occupation.ends.max(initial=0)) + 1)
    movable = {other for other in there if not _is_bound(occupation, other)}
    free = occupation.free_beside(admitted, movable)
    units = np.zeros((len(admitted), len(free.times)), np.int64)
    for row, site in enumerate(admitted):
        alternative = occupation.alternatives(part, number, site)
        if alternative is not None:
            one, all_times = replace(alternative, site=row), (0, len(free.times))
            units[row] = free.units((one,), (alternative.takes[0],), all_times)[0]
    first = int(np.searchsorted(free.times, task.earliest, side="right")) - 1
    starts = np.maximum(free.times[first : np.searchsorted(free.times, task.latest, side="right")], task.earliest)
    found = []
    for start in starts.tolist():
        begin, end = np.searchsorted(free.times, [start, start + task.shortest])
        begin = begin if begin < len(free.times) and free.times[begin] == start else begin - 1
        possible = units[:, begin:end].min(axis=1)
        if np.maximum(possible, 0).sum() >= part.need:
            found.append((start, possible))
    if not found:
        return None
    start, possible = random.choice(found)
    rows = [row for row in range(len(admitted)) if possible[row] > 0]
    random.shuffle(rows)
    in_way = {
        row: [o for o in _on(occupation, [admitted[row]], start, start + task.shortest) if o in movable] for row in rows
    }
    rows.sort(key=lambda row: len(in_way[row]))
    chosen, units_of = [], 0
    while units_of < part.need:
        chosen.append(rows.pop(0))
        units_of += int(possible[chosen[-1]])
    return [admitted[row] for row in chosen], list(dict.fromkeys(o for row in chosen for o in in_way[row]))


def _some_room(occupation: Occupation, number: int, random: Random) -> tuple[list[int], list[int]]:
    """Return some sites for a task, and all that is there in the time in which it has to run, or at one second of it;
    as many sites as one model can have.
    """
    task = occupation.encoding.tasks[number]
    sites, found = list[int](), dict[int, None]()
    most = random.randint(_MOST_IN_WAY // 3, _MOST_IN_WAY)
    admitted = [*occupation.admitted(number)]
    random.shuffle(admitted)
    since, last = task.earliest, min(task.latest, max(task.earliest, int(occupation.ends.max(initial=0))))
    if random.random() < _AT_ONE_SECOND:
        since = last = random.randint(since, last)
    for site in admitted:
        in_way = _on(occupation, [site], since, last + task.shortest)
        if sites and len(found) + len(in_way) > most:
            break
        sites.append(site)
        found.update(dict.fromkeys(in_way))
    return sites, list(found)


#: The kinds by name; `lost` is apart, since more jobs beat all that the others gain.
KINDS: Mapping[str, Kind] = {
    "costly nodes": costly_nodes,
    "rivals": costly_rivals,
    "ejection": ejection,
    "best ejection": best_ejection,
    "exchange": exchange,
    "slice": time_slice,
    "few nodes": few_nodes,
    "followers": followers,
    "ancestors": ancestors,
    "changing": changing,
    "queue": one_queue,
    "holders": holders,
}


def kinds_for(encoding: Encoding) -> tuple[tuple[str, Kind], ...]:
    """Return the kinds that a window can have, with their names."""
    left_out = set()
    if not encoding.milestones:
        left_out.add("ancestors")
    if not encoding.has_changes:
        left_out.add("changing")
    if not encoding.licenses:
        left_out.add("holders")
    if len({task.job.queue for task in encoding.tasks}) < 2:
        left_out.add("queue")
    if encoding.machine is not None:  # no job has nodes of its own there
        named = {"queue": one_queue, "ancestors": ancestors, "moment": around_a_start}
        return tuple((name, kind) for name, kind in named.items() if name not in left_out)
    return tuple((name, kind) for name, kind in KINDS.items() if name not in left_out)


@_about_costly
def around_a_start(occupation: Occupation, size: Size, random: Random, costly: int) -> Choice | None:
    """Choose a costly task, and those that begin or end nearest to a second before its start, wherever they are."""
    moment = random.randint(0, int(occupation.starts[costly]))
    near = [number for number, one in enumerate(occupation.placed) if one is not None and number != costly]
    near.sort(key=lambda n: (min(abs(int(occupation.starts[n]) - moment), abs(int(occupation.ends[n]) - moment)), n))
    return _closed(occupation, [costly, *near], occupation.sites_of(costly), size)


def _is_bound(occupation: Occupation, number: int) -> bool:
    """Return whether a task has a last start of its own, or others wait for it: it is no good to move."""
    task = occupation.encoding.tasks[number]
    return task.end_by < occupation.encoding.horizon or bool(occupation.leads_of(number))


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


def _closed(occupation: Occupation, tasks: Sequence[int], sites: Iterable[int], size: Size) -> Choice | None:
    """Return as many of the tasks, the first ones first, as are allowed, with the sites on which they are."""
    kept: list[int] = []
    wanted = list(dict.fromkeys(sites))
    within = set(wanted)
    most = max(size.sites, len(wanted)) + 4
    for number in islice(dict.fromkeys(tasks), _LOOKED_AT * size.tasks):
        if len(kept) == size.tasks:
            break
        more = [site for site in occupation.sites_of(number) if site not in within]
        if kept and len(within) + len(more) > most:
            continue
        kept.append(number)
        wanted += more
        within.update(more)
    return Choice(tuple(sorted(kept)), tuple(sorted(wanted))) if kept else None
