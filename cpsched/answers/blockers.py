"""Which jobs keep another one from starting at a second: a set of which none can be spared."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpsched.answers.counters import Counter, Gate
from cpsched.answers.occupation import Occupation, Uses
from cpsched.answers.queries import Block, Form, FreePlace
from cpsched.booking import WHOLE_REQUEST
from cpsched.domain import Request
from cpsched.problem import Rule
from cpsched.rusv import FOREVER

Ints = NDArray[np.int64]
Fits = Callable[[], bool]

#: How much dearer a job is that ends last, by what it holds at the second in question.
LATE = 0.01
#: Of more jobs than this it is not asked until when each of them is needed, but until when nothing changes.
MOST_TRIED = 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """A job whose start is in question."""

    #: What it needs of nodes.
    form: Form
    #: The first second, on the instance's clock, that its own times and its reservation leave it.
    earliest: int
    #: Licences, and rules that count what it takes; and what they count by each of its alternatives.
    counters: tuple[Counter, ...]
    by_alternatives: tuple[tuple[Counter, ...], ...] = ()

    @property
    def refusing(self) -> Rule | None:
        """The first rule of which there is never as much as the job takes; None: there is none."""
        return next((one.rule for one in self.counters if one.rule is not None and one.amount > one.total), None)

    def find(self, occupation: Occupation, earliest: int, latest: int = FOREVER) -> FreePlace | None:
        """Return the place with the first start in ``[earliest, latest]`` beside the jobs that are there."""
        gate = self.gate(occupation)
        # in a longer mode it starts later still
        if gate.counters and not gate.others and gate.first(earliest, self.form.duration) > latest:
            return None
        return self.form.find(occupation.timeline, earliest, latest, gate)

    def gate(self, occupation: Occupation | None) -> Gate:
        """Return the counters beside the jobs that are there; with None, beside no job."""
        others = tuple(Gate(counters=counters, occupation=occupation) for counters in self.by_alternatives)
        return Gate(counters=self.counters, occupation=occupation, others=others)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Held:
    """Jobs without which a job can start, for a time."""

    #: Their places in `Occupation.ids`; if any one of them is there, the job cannot start.
    jobs: tuple[int, ...]
    #: The second up to which the same is true at every second.
    until: int
    #: The numbers of the nodes that the job would get.
    nodes: frozenset[int]


def holders_at(occupation: Occupation, question: Question, start: int, until: int, *, is_promise: bool = False) -> Held:
    """Return a set of jobs, as small as is found, without which a job can start at a second.

    No job of the set can be spared: beside any one of them the job cannot start. There may be other such sets.

    `occupation`: the bookings, without those of the job itself. `question`: a job that cannot start at any second of
    ``[start, until)``, but could if no other job were there. `start`, `until`: seconds on the timeline's clock.
    `is_promise`: whether the job could start then, but not stay: it is jobs that begin later that are looked for.

    Notes
    -----
    The jobs are chosen as in the greedy cover of a set: of all nodes, next the one that gains most chunks at the least
    cost, where a job's cost is shared among the nodes that it would free. Of the jobs chosen, those are put back that
    can be, halves at a time: the result is irreducible, though another set may have fewer jobs.
    """
    end = start + question.form.duration

    def fits() -> bool:
        return question.find(occupation, start, start) is not None

    with occupation.without(()):
        before = occupation.away
        _drop(occupation, question, start, start if is_promise else -1, fits)
        if is_promise and not fits():
            _drop(occupation, question, start, -1, fits)
        if not fits():  # several kinds of chunks can fail to find each other's nodes: all jobs are taken away
            occupation.take_away(sorted(set(occupation.near(start, end).job.tolist()) - occupation.away))
        sure = _surely_needed(occupation, question.form, occupation.away - before, start, end)
        others = _by_weight(occupation, occupation.away - before - sure, start, end)
        needed = [*sorted(sure), *_settle(occupation, others, fits)]
        found = question.find(occupation, start, start)
        nodes = frozenset() if found is None else frozenset(found.nodes)
        return Held(jobs=tuple(needed), until=_same_until(occupation, question, needed, start, until), nodes=nodes)


def _surely_needed(occupation: Occupation, form: Form, jobs: Collection[int], start: int, end: int) -> frozenset[int]:
    """Return jobs, of some that are away, beside any one of which a job cannot start; others may be needed too.

    A job is tried on those of its nodes that no other job uses meanwhile, where exactly its amounts would be lacking.
    """
    if start >= end or len(form.asked) > 1 or (isinstance(form, Block) and len(form.modes) > 1):
        return frozenset()
    demands, ((demand, request),) = occupation.columns.demands, form.asked
    kinds = demands.kinds_of(demand)
    if len(kinds) > 1:
        return frozenset()
    kind = kinds[0][0]
    need = _need(occupation, kind, request)
    free = occupation.timeline.least_free(start, end)[0]
    present = occupation.near(start, end).but(occupation.away)
    is_alone = np.ones(demands.layout.num_nodes, dtype=bool)
    is_alone[present.used] = False
    units = demands.units_in(kind, free)
    if request.place.exclusive:
        units = np.where(occupation.timeline.idle_nodes(free), units, 0)
    spare = int(units.sum()) - need
    taken = demands.taken_by(kind)
    # the columns in which a job can take something of what is in question
    is_asked = (is_alone & (units > 0))[occupation.node_of] & (request.place.exclusive | (taken > 0))
    found = set()
    for job in jobs:
        booking = occupation.taken(job, start, end)
        if booking is None:
            continue
        here = np.flatnonzero(is_asked[booking.columns])
        columns = booking.columns[here]
        nodes = occupation.node_of[columns]
        beside = units.copy()
        if request.place.exclusive:
            beside[nodes] = 0
        else:
            left = (free[columns] - booking.amounts[here]) // taken[columns]
            np.minimum.at(beside, nodes, np.maximum(0, left))
        if int((units - beside).sum()) > spare:
            found.add(job)
    return frozenset(found)


def _need(occupation: Occupation, kind: int, request: Request) -> int:
    """Return how many units of a kind of a demand for a request are needed."""
    place = occupation.columns.kind_of(kind)
    return 1 if place == WHOLE_REQUEST else request.chunks[place].count


def _settle(occupation: Occupation, jobs: Sequence[int], fits: Fits) -> list[int]:
    """Put back those of some jobs that are away which can be; return the others, none of which can be spared."""
    if not jobs:
        return []
    occupation.put_back(jobs)
    if fits():
        return []
    occupation.take_away(jobs)
    if len(jobs) == 1:
        return list(jobs)
    half = len(jobs) // 2
    return [*_settle(occupation, jobs[:half], fits), *_settle(occupation, jobs[half:], fits)]


def _drop(occupation: Occupation, question: Question, start: int, after: int, fits: Fits) -> None:
    """Take jobs that begin later than `after` away until enough is left, as far as they can help."""
    _drop_counted(occupation, question, start, after)
    _drop_nodes(occupation, question, start, after, fits)


def _drop_counted(occupation: Occupation, question: Question, start: int, after: int) -> None:
    """Take jobs away until enough is left of what is counted: those with most first, of equals the first to end."""
    duration = question.form.duration
    for counter in question.counters:
        short = [span for span in counter.lacking(occupation) if span[1] > start and span[0] < start + duration]
        if not short:
            continue
        first, last = max(start, short[0][0]), min(start + duration, short[-1][1])
        uses = counter.uses.during(first, last, after=after)
        overlap = np.minimum(uses.end, last) - np.maximum(uses.start, first)
        for place in np.lexsort((uses.end, -np.minimum(uses.used, counter.amount) * overlap)).tolist():
            if counter.first(occupation, start, duration) == start:
                break
            if (job := int(uses.job[place])) not in occupation.away:
                occupation.take_away([job])


def _drop_nodes(occupation: Occupation, question: Question, start: int, after: int, fits: Fits) -> None:
    """Take jobs that begin later than `after` away from one node after the other, until the job fits."""
    end = start + question.form.duration
    with occupation.without(()):  # on the timeline without what is counted: most questions take the same of that away
        gains, lacking = _gains(occupation, question.form, start, end, is_later=after >= start)
    uses = occupation.near(start, end).during(start, end, after=after).but(occupation.away)
    worth = gains.sum(axis=0)
    by_job, nodes_by_job = _pairs(uses, len(worth), worth > 0)
    first_by = _firsts(by_job, len(occupation.ids))
    # 16 bits are sorted in a tenth of the time
    order = np.argsort(nodes_by_job.astype(np.uint16 if len(worth) <= 1 << 16 else np.int64), kind="stable")
    nodes, jobs = nodes_by_job[order], by_job[order]
    first_of = _firsts(nodes, len(worth))
    cost = 1 / np.maximum(1e-9, np.minimum(1, np.bincount(jobs, weights=worth[nodes], minlength=len(occupation.ids))))
    cost *= 1 + LATE * _ends(occupation, start, end) / end  # of equals those that end first
    price = np.bincount(nodes, weights=cost[jobs], minlength=len(worth))
    is_open = worth > 0
    surplus, next_try = 0, 1  # where enough seems free and is not, it is tried again after twice as many nodes
    while is_open.any():
        if (lacking <= 1e-9).all():
            surplus += 1
            if surplus == next_try:
                if fits():
                    return
                next_try *= 2
        node = int(np.where(is_open, worth / np.maximum(price, 1e-12), -1.0).argmax())
        away = [job for job in jobs[first_of[node] : first_of[node + 1]].tolist() if not occupation.is_away[job]]
        occupation.take_away(away)
        for job in away:
            price[nodes_by_job[first_by[job] : first_by[job + 1]]] -= cost[job]
        free = is_open & (price <= 1e-9)
        free[node] = True
        lacking = lacking - gains[:, free].sum(axis=1)
        is_open &= ~free


def _pairs(uses: Uses, num_nodes: int, is_worth: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return each job with each of its nodes that are worth something, once and in this order."""
    pairs = uses.job * num_nodes + uses.used
    if (np.diff(pairs) <= 0).any():  # several segments, or kinds of chunks
        pairs = np.unique(pairs)
    jobs, nodes = np.divmod(pairs, num_nodes)
    kept = np.flatnonzero(is_worth[nodes])
    return jobs[kept], nodes[kept]


def _firsts(numbers: Ints, count: int) -> list[int]:
    """Return where each of so many numbers begins in sorted ones, and where the last one ends."""
    return [0, *np.cumsum(np.bincount(numbers, minlength=count)).tolist()]


def _gains(
    occupation: Occupation, form: Form, start: int, end: int, *, is_later: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the chunks that a job would gain on nodes without other jobs, or without those that begin later than it,
    and the chunks that it lacks: both as parts of each kind of its chunks.

    Returns the gains, float64 (kinds, nodes), and what is lacking, float64 (kinds,).
    """
    demands = occupation.columns.demands
    least = occupation.timeline.least_free(start, end)[0]
    free = occupation.timeline.free_at(start)[0] if is_later else occupation.bare.least_free(start, end)[0]
    is_idle = occupation.timeline.idle_nodes(least)
    gains, lacking = [], []
    for demand, request in form.asked:
        for kind, _ in demands.kinds_of(demand):
            need = _need(occupation, kind, request)
            most = np.minimum(demands.units_in(kind, free), need)
            now = np.minimum(demands.units_in(kind, least), need)
            if request.place.exclusive:
                now = np.where(is_idle, now, 0)
            gains.append(np.maximum(0, most - now) / need)
            lacking.append(1 - now.sum() / need)
    return np.array(gains), np.array(lacking)


def _by_weight(occupation: Occupation, jobs: Collection[int], start: int, end: int) -> list[int]:
    """Order jobs so that those are spared first which are on few nodes, and of these the ones that end last."""
    uses = occupation.near(start, end)
    nodes = np.bincount(uses.job, minlength=len(occupation.ids))
    ends = _ends(occupation, start, end)
    return sorted(jobs, key=lambda job: (int(nodes[job]), -int(ends[job]), job))


def _ends(occupation: Occupation, start: int, end: int) -> Ints:
    """Return when each job ends that holds nodes in ``[start, end)``; 0 for the others."""
    uses = occupation.near(start, end)
    ends: Ints = np.zeros(len(occupation.ids), dtype=np.int64)
    np.maximum.at(ends, uses.job, uses.end)
    return ends


def _same_until(occupation: Occupation, question: Question, jobs: Sequence[int], start: int, until: int) -> int:
    """Return the second, at most `until`, up to which exactly these jobs, which are away, keep a job from starting."""
    if len(jobs) > MOST_TRIED:
        return min(until, _unchanged_until(occupation, start, start + question.form.duration))
    end = start + question.form.duration
    ends = _ends(occupation, start, end)
    rest, screened = sorted(jobs, key=lambda job: (int(ends[job]), job)), FOREVER
    while rest:
        if until < screened:
            # what lacks at seconds that all of these starts have in common lacks at each of them
            sure, screened = _surely_needed(occupation, question.form, rest, until - 1, end), until
            rest = [job for job in rest if job not in sure]
            continue
        job = rest.pop(0)
        occupation.put_back([job])
        beside = question.find(occupation, start, until - 1)
        occupation.take_away([job])
        if beside is not None:
            until = beside.start
    return fits_until(occupation, question.form, question.gate(occupation), start, until)


def _unchanged_until(occupation: Occupation, start: int, end: int) -> int:
    """Return the first later start for which something else is free in a window as long as ``[start, end)``."""
    times = occupation.timeline.breakpoints()
    first, last = np.searchsorted(times, [start, end - 1], side="right").tolist()
    steps = [int(times[first]) - start] if first < len(times) else []
    steps += [int(times[last]) - end + 1] if last < len(times) else []
    return start + min(steps, default=FOREVER - end)


def fits_until(occupation: Occupation, form: Form, gate: Gate, start: int, until: int) -> int:
    """Return the first second of ``[start, until)`` at which a job cannot start; `until` if it can at all of them."""
    second = start
    while second < until:
        found = form.find(occupation.timeline, second, second, gate)
        if found is None:
            return second
        second = found.last_start(occupation.timeline, until - 1, gate) + 1
    return until
