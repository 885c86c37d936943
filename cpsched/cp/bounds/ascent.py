"""Climbing the dual: from Smith's rule on one surrogate to good prices on all of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cpsched.cp.bounds.cuts import Separation
from cpsched.cp.bounds.dual import Dual
from cpsched.cp.bounds.surrogates import Floats, Ints, Profile
from cpsched.cp.bounds.tasks import Relaxation, Tasks

#: Intervals of the first grid, for each of its three parts; a grid of this many cells (groups x intervals) is not
#: refined.
_FIRST_INTERVALS = 32
_MOST_CELLS = 1_500_000
#: The number of surrogates that are tried as the start, by the closed form of Smith's rule.
_MOST_STARTS = 4
#: Part of the former direction that is kept (deflection).
_DEFLECTION = 0.75
#: Part of the mean solution that stays at each step.
_MEMORY = 0.97
#: Steps without progress before the target comes nearer.
_PATIENCE = 15
#: Intervals in which overloads are looked for at a time, and rounds without looking after rounds without finding.
_CUTS = 12
_LONGEST_PAUSE = 15
#: Intervals that are enough as long as overloads are found.
_ENOUGH_INTERVALS = 120
#: Rounds without any gain after which a climb ends.
_MOST_IDLE = 8
#: A climb ends when the target is less than this part above the best value.
_NEAR = 0.001


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices on some surrogates, the dual function that they belong to, and its value there (not rounded safely)."""

    dual: Dual
    prices: Floats
    value: float


@dataclass(frozen=True, slots=True)
class _SmithPrice:
    """The price of one surrogate over time: linear between `times`, ending with 0; and about what it proves."""

    times: Floats
    price: Floats
    value: float


def smith(relaxation: Relaxation, seed: int, *, is_late: Callable[[], bool]) -> Prices | None:
    """Return the prices of Smith's rule on the surrogate where it proves most, or None if nothing takes any.

    On one divisible resource the least sum of weight times mean busy time comes from serving by falling weight per
    area; its dual price falls, while a job is served, by that ratio each second. Here the prices are cut into steps.

    `seed`: chooses the first breakpoints. `is_late`: returns whether time is short, so that one surrogate must be
    enough.
    """
    tasks, profiles = relaxation.tasks, relaxation.profiles
    rules: dict[int, _SmithPrice] = {}
    for row, profile in enumerate(profiles):
        rule = _smith_price(tasks, profile, row)
        if rule is not None:
            rules[row] = rule
            if is_late():
                break
    if not rules:
        return None
    grid = _first_grid(list(rules.values()), np.random.default_rng(seed))
    middle = (grid[1:] + grid[:-1]) / 2
    dual = Dual(tasks, profiles, grid)
    best = Prices(dual, np.zeros((len(profiles), len(middle))), 0.0)
    for row in sorted(rules, key=lambda row: -rules[row].value)[:_MOST_STARTS]:
        prices = np.zeros((len(profiles), len(middle)))
        prices[row] = np.interp(middle, rules[row].times, rules[row].price)
        value, _, _ = dual.evaluate(prices)
        if value > best.value:
            best = Prices(dual, prices, value)
            if is_late():
                break
    return best


def _smith_price(tasks: Tasks, profile: Profile, row: int) -> _SmithPrice | None:
    usage = tasks.usage[tasks.kinds, row].astype(np.float64)
    members = np.flatnonzero(usage)
    if not len(members) or not profile.amounts[-1]:
        return None
    weights = np.array([float(sum(tasks.rates[member])) for member in members])
    area = usage[members] * tasks.durations[members]
    order = np.lexsort((members, -weights / area))
    ratio = (weights / area)[order]
    filled = np.cumsum((area * tasks.counts[members])[order])
    knots = profile.area(profile.times).astype(np.float64)
    piece = np.searchsorted(knots, filled, side="left") - 1
    ends = profile.times[piece] + (filled - knots[piece]) / np.maximum(1, profile.amounts[piece])
    # while a job is served the price falls by its ratio each second
    price = np.cumsum((ratio * np.diff(ends, prepend=0.0))[::-1])[::-1]
    waits = (ends + np.concatenate([[0.0], ends[:-1]]) - tasks.durations[members][order]) / 2
    value = float(weights[order] * tasks.counts[members][order] @ waits)
    return _SmithPrice(np.concatenate([[0.0], ends]), np.concatenate([price, [0.0]]), value)


def _first_grid(rules: list[_SmithPrice], rng: np.random.Generator) -> Ints:
    """Return breakpoints: evenly spread ones, some dense near now, and where Smith's rule serves many jobs."""
    horizon = 1.1 * max(float(rule.times[-1]) for rule in rules)
    busiest = max(rules, key=lambda rule: float(rule.times[-1]))
    parts = np.linspace(0.0, 1.0, _FIRST_INTERVALS)
    shifted = np.clip(parts + rng.uniform(-0.2, 0.2, len(parts)) / _FIRST_INTERVALS, 0.0, 1.0)
    points = [shifted * horizon, horizon * 1000.0 ** (parts - 1.0), np.quantile(busiest.times, parts)]
    return np.unique(np.concatenate([[0, max(1, int(horizon))], *(np.ceil(part) for part in points)]).astype(np.int64))


def climb(
    begin: Prices, relaxation: Relaxation, seed: int, *, enough: float, is_over: Callable[[int], bool]
) -> tuple[Prices, int]:
    """Return better prices, and after how many evaluations.

    Rounds of deflected subgradient steps towards a target slightly above the best value. Between the rounds surrogates
    without a price are given up, new ones are made where the jobs overload the nodes, and the intervals are halved
    where prices change most. No round loses what the one before has.

    `seed`: chooses the times at which overloads are searched. `enough`: a value that needs no better. `is_over`: called
    with the number of evaluations so far; returns whether to stop.
    """
    rng = np.random.default_rng(seed)
    separation = Separation(relaxation.instance.cluster, relaxation.units, relaxation.counts)
    best, evaluations, ambition = begin, 0, 0.15
    idle, pause, wait = 0, 0, 0
    while idle < _MOST_IDLE and best.value < enough and not is_over(evaluations):
        former = best.value
        best, seconds, evaluations = _round(best, ambition, evaluations, enough, is_over)
        demand = relaxation.held.T @ seconds / best.dual.widths
        best, cuts = _without_idle(best), np.zeros((0, len(demand)), dtype=np.int64)
        if pause:
            pause -= 1
        else:
            cuts = separation.cuts(demand[:, _busy(best, rng)].T, partial(is_over, evaluations))
            wait = 0 if len(cuts) else min(2 * wait + 1, _LONGEST_PAUSE)
            pause = wait
        if len(cuts):
            best = _with_cuts(best, relaxation, cuts)
        if not len(cuts) or len(best.dual.widths) < _ENOUGH_INTERVALS:
            best = _finer(best)
        idle = 0 if len(cuts) or best.value > former * (1 + 1e-6) else idle + 1
        ambition = 0.04
    return best, evaluations


def _busy(current: Prices, rng: np.random.Generator) -> Ints:
    """Draw some intervals, by what is paid for the capacity in them."""
    paid = (current.prices * current.dual.areas).sum(axis=0)
    if not paid.any():
        return np.zeros(0, dtype=np.int64)
    share = np.cumsum(paid) / float(paid.sum())
    draws = (np.arange(_CUTS) + rng.uniform(0.0, 1.0, _CUTS)) / _CUTS
    return np.unique(np.searchsorted(share, draws).clip(max=len(paid) - 1))


def _with_cuts(current: Prices, relaxation: Relaxation, sizes: Ints) -> Prices:
    """Add surrogates, without a price yet."""
    dual = current.dual
    usage, profiles = relaxation.surrogates(sizes)
    tasks = replace(dual.tasks, usage=np.concatenate([dual.tasks.usage, usage], axis=1))
    prices = np.concatenate([current.prices, np.zeros((len(sizes), current.prices.shape[1]))])
    return Prices(Dual(tasks, [*dual.profiles, *profiles], dual.grid), prices, current.value)


def _round(
    begin: Prices, ambition: float, evaluations: int, enough: float, is_over: Callable[[int], bool]
) -> tuple[Prices, Floats, int]:
    """Climb on one grid until the target is near.

    Returns the best prices, how long jobs of each kind run in each interval, and the evaluations. The second is
    the mean over the last steps: close to an optimal solution of the relaxation.
    """
    dual = begin.dual
    # in shares of a capacity over time, so that all surrogates and intervals count alike
    most = np.array([max(1, int(profile.amounts[-1])) for profile in dual.profiles], dtype=np.float64)
    metric = 1.0 / (dual.widths[None, :] * most[:, None] ** 2)
    at, direction = begin.prices, np.zeros_like(begin.prices)
    best, best_value = begin.prices, begin.value
    worth = float(dual.tasks.counts @ dual.last_rates) * float(dual.widths.sum()) / 1000.0
    mean, weight = np.zeros((len(dual.tasks.usage), len(dual.widths))), 0.0
    mark, stale, target = best_value, 0, max(ambition * best_value, ambition * worth if not best_value else 0.0)
    while best_value < enough and not is_over(evaluations):
        value, slope, seconds = dual.evaluate(at)
        evaluations += 1
        mean, weight = _MEMORY * mean + (1 - _MEMORY) * seconds, _MEMORY * weight + (1 - _MEMORY)
        if value > best_value:
            best_value, best = value, at
        stale += 1
        if value > mark + 0.05 * target:
            mark, stale = value, 0
        if stale > _PATIENCE:
            target, stale, mark = target / 2, 0, best_value
            if target <= _NEAR * best_value or target < 1e-9 * worth:
                break
        direction = slope + _DEFLECTION * direction
        open_direction = np.where((at <= 0) & (direction < 0), 0.0, direction)
        length = float((open_direction**2 * metric).sum())
        if length <= 0:
            break
        step = max(0.0, best_value + target - value) / length / 2
        at = np.maximum(0.0, at + step * open_direction * metric)
    return Prices(dual, best, best_value), mean / max(weight, 1e-9), evaluations


def _without_idle(current: Prices) -> Prices:
    """Give up the surrogates that have no price, if any has one."""
    used = np.flatnonzero(current.prices.any(axis=1))
    dual = current.dual
    if not len(used) or len(used) == len(dual.profiles):
        return current
    tasks = replace(dual.tasks, usage=dual.tasks.usage[:, used])
    return Prices(Dual(tasks, [dual.profiles[row] for row in used], dual.grid), current.prices[used], current.value)


def _finer(current: Prices) -> Prices:
    """Halve a quarter of the intervals, those where the prices change most; the prices stay, and so does the value."""
    dual, prices = current.dual, current.prices
    if len(dual.tasks.counts) * len(dual.widths) * 2 > _MOST_CELLS:
        return current
    worth = prices * np.array([profile.amounts[-1] for profile in dual.profiles])[:, None]
    jumps = np.abs(np.diff(worth, axis=1)).sum(axis=0)
    score = (np.append(jumps, 0.0) + np.insert(jumps, 0, 0.0)) * dual.widths
    score[dual.widths < 2] = 0.0
    chosen = np.argsort(-score, kind="stable")[: max(1, len(score) // 4)]
    chosen = chosen[score[chosen] > 0]
    if not len(chosen):
        return current
    grid = np.union1d(dual.grid, dual.grid[chosen] + dual.widths[chosen] // 2)
    within = np.searchsorted(dual.grid, grid[:-1], side="right") - 1
    return Prices(Dual(dual.tasks, dual.profiles, grid), prices[:, within], current.value)
