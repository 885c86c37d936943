"""The search for jobs that evolve over whole nodes: its counts are right, and its plans never worse than a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from cpsched.domain import Amounts, FrozenMap, Instance, Job, Objective, ObjectiveTerm
from cpsched.lab.workloads import evolving_window
from cpsched.metrics import objective_value
from cpsched.portfolio import solve
from cpsched.problem import Machine, application_of, beyond_whole_nodes, places_of
from cpsched.rules import POLICIES
from cpsched.rusv import FOREVER, NOWHERE
from cpsched.search import Search, count_kernels
from cpsched.search.arrays import Counted
from cpsched.search.chain import Chain
from cpsched.search.counted import CountedChain
from tests.booking.small_windows import FREE, SCATTER, chunk, cores_for_gpus, nodes, running, waiting, window
from tests.oracle.dense_counts import DenseCounts, Pieces
from tests.rules.listed import listed
from tests.rusv.calendars import UNITS, Happening, assert_keeps_contract, histories
from tests.search.searched import FEW, planned, searched
from tests.sizes import LARGE, examples, seeds

EXCLUSIVE = replace(SCATTER, exclusive=True)
CORES = 2


def evolving(job_id: str, steps: list[tuple[int, int]], **options: Any) -> Job:
    """Return a job that has so many whole nodes for so many seconds in each of its steps."""
    asked = [waiting(job_id, seconds, chunk(count, cores=CORES), place=EXCLUSIVE).steps[0] for seconds, count in steps]
    return replace(waiting(job_id, 1, **options), steps=tuple(asked))


def random_window(seed: int, *, most_jobs: int = 6) -> Instance:
    """Draw a small window: at least one of the jobs evolves, some nodes are held, some jobs come later."""
    draw = Random(seed)
    names = "abcdef"[: draw.randint(2, 6)]
    jobs = [
        evolving(
            f"job{number}",
            [
                (draw.randint(1, 9), draw.randint(1, len(names)))
                for _ in range(draw.randint(1, 4) if number else draw.randint(2, 4))
            ],
            not_before=draw.choice([0, 0, draw.randint(1, 20)]),
            priority=draw.choice([0, 1]),
        )
        for number in range(draw.randint(1, most_jobs))
    ]
    amounts: dict[str, Any] = {name: {"cores": CORES} for name in names}
    held = [running(f"held-{name}", draw.randint(1, 12), **{name: amounts[name]}) for name in names]
    held = draw.sample(held, draw.randint(0, len(names)))
    weights = {draw.choice(list(ObjectiveTerm)): draw.choice([0.5, 1.0]) for _ in range(2)}
    objective = Objective(weights=FrozenMap(weights))
    return window([nodes(" ".join(names), cores=CORES)], *jobs, *held, objective=objective)


def waiting_of(instance: Instance) -> list[Job]:
    """Return the jobs to be planned."""
    return [job for job in instance.elements() if job.running is None]


# ---- what the kernels count ----


@pytest.mark.slow
@pytest.mark.kernels
def test_lists_are_those_of_the_rule() -> None:
    """In hundreds of windows a list in any order starts each job when the published rule does."""
    for seed in range(3000 if LARGE else 400):
        instance = random_window(seed)
        jobs = waiting_of(instance)
        chain = CountedChain(instance, jobs, Machine.of(instance), seed=0)
        order = Random(seed).sample(range(len(jobs)), len(jobs))
        assert chain.plan_list(np.argsort(order).astype(np.float64)) is not None
        assert [int(chain.starts[row]) for row in order] == listed(instance, [jobs[row] for row in order])


class OnCounted:
    """The nodes in use as the search counts them, behind the contract of calendars."""

    def __init__(self) -> None:
        self._profile = np.zeros(60, dtype=np.int64), np.zeros(60, dtype=np.int64), np.ones(1, dtype=np.int64)

    def _job(self, amount: int, seconds: int) -> Counted:
        return counted([(0, seconds, amount)], UNITS, self._profile)

    def add(self, start: int, end: int, amount: int) -> None:
        """Count a job of one piece."""
        count_kernels.count_in(0, start, 1, self._job(amount, end - start))

    def remove(self, start: int, end: int, amount: int) -> None:
        """Remove a job of one piece."""
        count_kernels.count_out(0, start, self._job(amount, end - start))

    def earliest_fit(self, amount: int, seconds: int, earliest: int) -> int:
        """Find the start of a job of one piece."""
        return int(count_kernels.earliest_start(0, earliest, FOREVER, self._job(amount, seconds)))

    def free_in(self, start: int, end: int) -> int:
        """Look at the breakpoints that overlap."""
        times, used, size = self._profile
        first, behind = np.searchsorted(times[: size[0]], [start, end - 1], side="right").tolist()
        return UNITS - int(used[first - 1 : behind].max())

    def next_change(self, after: int) -> int | None:
        """Return the next breakpoint."""
        times, _, size = self._profile
        return next((at for at in times[: size[0]].tolist() if at > after), None)


@pytest.mark.kernels
@given(history=histories)
@examples(50, deadline=None)
def test_counts_keep_the_contract_of_calendars(history: list[Happening]) -> None:
    """The counts say after each job what their twin says second by second, and nothing is left."""
    assert_keeps_contract(OnCounted, history)


def counted(pieces: Pieces, capacity: int, profile: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Counted:
    """Return a job as the kernels see it when it is the only one, and a profile of nodes in use."""
    since, until, amounts = np.array(pieces).T.copy()
    return Counted(np.array([0, len(pieces)]), since, until, amounts, np.array([capacity]), *profile, *profile)


@pytest.mark.kernels
def test_profiles_are_counted_second_by_second() -> None:
    """Jobs that come and go in any order leave the counts of the naive twin, fit where it says, and leave nothing."""
    for seed in range(60):
        draw = Random(seed)
        capacity, twin = draw.randint(2, 6), DenseCounts(600)
        times, used, size = np.zeros(40, dtype=np.int64), np.zeros(40, dtype=np.int64), np.ones(1, dtype=np.int64)
        profile = times, used, size
        present: list[tuple[Pieces, int]] = []
        for _ in range(40):
            if present and (len(present) == 6 or draw.random() < 0.4):
                pieces, start = present.pop(draw.randrange(len(present)))
                twin.add(pieces, start, -1)
                count_kernels.count_out(0, start, counted(pieces, capacity, profile))
            else:
                borders = sorted(draw.sample(range(1, 15), draw.randint(1, 4)))
                pieces = [
                    (since, until, draw.randint(1, capacity))
                    for since, until in zip([0, *borders], borders, strict=False)
                ]
                earliest, job = draw.randint(0, 10), counted(pieces, capacity, profile)
                expected = twin.earliest_start(pieces, earliest, capacity)
                found = [
                    count_kernels.earliest_start(0, earliest, latest, job)
                    for latest in (FOREVER, expected, expected - 1)
                ]
                assert found == [expected, expected, NOWHERE]
                count_kernels.count_in(0, expected, 1, job)
                twin.add(pieces, expected)
                present.append((pieces, expected))
            held = np.repeat(used[: size[0]], np.diff([*times[: size[0]], len(twin.held)]))
            assert held.tolist() == twin.held
            assert size[0] <= 1 + sum(len(pieces) + 1 for pieces, _ in present)
        for pieces, start in present:
            count_kernels.count_out(0, start, counted(pieces, capacity, profile))
        assert (size[0], times[0], used[0]) == (1, 0, 0)


@pytest.mark.kernels
def test_steps_leave_a_plan() -> None:
    """After steps at any temperature each job stands where it has room, and what the chain says is what that costs."""
    for seed in range(100):
        instance = random_window(seed)
        jobs = waiting_of(instance)
        chain = CountedChain(instance, jobs, Machine.of(instance), seed=seed)
        chain.run(30, 1.0)
        chain.run(30, 0.02)
        twin = DenseCounts(2000)
        machine = Machine.of(instance)
        for end in machine.free_from:
            twin.add([(0, end, 1)], 0)
        for job, start in zip(jobs, chain.starts.tolist(), strict=True):
            assert start >= instance.earliest_start(job)
            for seconds, count in application_of(instance, job).steps:
                twin.add([(0, seconds, count)], start)
                start += seconds
        assert max(twin.held) <= len(machine.names)
        assert chain.best_value + chain.offset() == pytest.approx(objective_value(instance, chain.best()))


# ---- chunks of one kind ----

NODES_OF_KINDS = [("a", 3, "fast"), ("b", 8, "slow"), ("c", 12, "fast"), ("d", 7, "fast")]


def window_of_chunks(seed: int) -> Instance:
    """Draw a small window whose jobs ask for equal chunks, beside running jobs that hold other parts of the nodes."""
    draw = Random(seed)
    asked = {name: draw.randint(1, 4) for name in draw.choice([("cores",), ("cores", "mem"), ("mem",)])}
    names = "abcd"[: draw.randint(1, 4)]
    amounts = {name: draw.choice([{"cores": 6, "mem": 8}, {"cores": 4, "mem": 9}]) for name in names}
    places = sum(min(has[name] // amount for name, amount in asked.items()) for has in amounts.values())
    jobs = [
        waiting(
            f"job{number}",
            draw.randint(1, 9),
            chunk(draw.randint(1, places), None, **asked),
            not_before=draw.choice([0, 0, draw.randint(1, 20)]),
            priority=draw.choice([0, 1]),
        )
        for number in range(draw.randint(1, 7))
    ]
    held = [
        running(
            f"held{number}-{name}",
            draw.randint(1, 12),
            place=EXCLUSIVE if alone else FREE,
            **{name: {"cores": draw.randint(1, 2), "mem": draw.randint(1, 4)}},
        )
        for name in names
        for alone in [draw.random() < 0.2]
        for number in range(draw.randint(0, 1 if alone else 2))
    ]
    return window([nodes(name, **has) for name, has in amounts.items()], *jobs, *held)


def earliest_by_counting(instance: Instance, jobs: Sequence[Job]) -> list[int]:
    """Return the starts of a list of rigid jobs with equal chunks, found second by second on all nodes."""
    asked = jobs[0].request.chunks[0].resources
    used = DenseCounts(400)
    held = [
        (placement.node, job.walltime, placement.resources, job.request.place.exclusive)
        for job in instance.jobs
        if job.running is not None
        for placement in job.running.segments[0].allocation
    ]

    def places(second: int) -> int:
        """Count the chunks for which there is room at a second."""
        found = 0
        for one in instance.cluster.classes:
            there = [(amounts, alone) for name, end, amounts, alone in held if name in one.names and end > second]
            left = {name: one.resources[name] - sum(amounts.get(name, 0) for amounts, _ in there) for name in asked}
            found += 0 if any(alone for _, alone in there) else min(left[name] // asked[name] for name in asked)
        return found

    starts = []
    for job in jobs:
        count, start = job.request.chunks[0].count, instance.earliest_start(job)
        while any(used.held[at] + count > places(at) for at in range(start, start + job.walltime)):
            start += 1
        used.add([(0, job.walltime, count)], start)
        starts.append(start)
    return starts


@pytest.mark.kernels
def test_equal_chunks_start_as_soon_as_enough_have_room() -> None:
    """In hundreds of windows a list in any order starts each job at the first second from which on enough chunks have
    room on all nodes together, and there is room on the nodes that are named at the end.
    """
    for seed in range(3000 if LARGE else 300):
        instance = window_of_chunks(seed)
        jobs, machine = waiting_of(instance), places_of(instance)
        assert machine is not None
        chain, order = CountedChain(instance, jobs, machine, seed=0), Random(seed).sample(range(len(jobs)), len(jobs))
        assert chain.plan_list(np.argsort(order).astype(np.float64)) is not None
        starts = chain.starts.tolist()
        assert [starts[row] for row in order] == earliest_by_counting(instance, [jobs[row] for row in order])
        assert Chain(instance, jobs, seed=0).adopt(chain.best())  # the ledger books each place that it names


@pytest.mark.kernels
@pytest.mark.parametrize("seed", seeds(20))
def test_counted_chunks_are_searched(seed: int) -> None:
    """The plan of a search that counts verifies, plans all jobs, and is never worse than the planner's."""
    instance = window_of_chunks(seed)
    plan = solve(instance, engine="search", budget=100.0, steps=300)
    assert not plan.waiting_room
    assert not plan.events
    assert plan.objective.value <= (plan.objective.planner or 0.0) + 1e-9


@pytest.mark.parametrize(
    "change",
    [
        {"jobs": [waiting("other", 5, chunk(1, cores=2))]},
        {"jobs": [waiting("two", 5, chunk(1, cores=1), chunk(1, cores=1, mem=1))]},
        {"jobs": [waiting("alone", 5, chunk(1, cores=1), place=replace(FREE, exclusive=True))]},
        {"jobs": [waiting("apart", 5, chunk(2, cores=1), place=SCATTER)]},
        {"jobs": [waiting("licensed", 5, chunk(1, cores=1), licenses=Amounts({"matlab": 1}))]},
        {"jobs": [waiting("late", 5, chunk(1, cores=1), deadline=50)]},
        {"classes": [nodes("z", cores=4, keep_free=cores_for_gpus(2))]},
    ],
    ids=lambda change: str(change["jobs"][0].id if "jobs" in change else "classes"),
)
def test_places_are_counted_only_where_nothing_else_matters(change: dict[str, Any]) -> None:
    """One more job, or node, that asks for more than the number of equal chunks: then all nodes are looked at."""
    job = waiting("first", 9, chunk(3, cores=1))
    assert places_of(window([nodes("a b", cores=2)], job)) is not None
    classes = [nodes("a b", cores=2), *change.get("classes", [])]
    assert places_of(window(classes, job, *change.get("jobs", []), licenses={"matlab": 1})) is None


def test_places_open_when_running_jobs_end() -> None:
    """A node of six cores has a place for two of them at once, the next when a job ends, and the last after both."""
    held = [running("long", 9, a={"cores": 3}), running("short", 4, a={"cores": 1})]
    machine = places_of(window([nodes("a b", cores=6)], waiting("job", 5, chunk(4, cores=2)), *held))
    assert machine is not None
    assert machine.names == ("a", "a", "a", "b", "b", "b")
    assert machine.free_from == (0, 9, 9, 0, 0, 0)


def test_nodes_of_several_kinds_have_places_for_equal_chunks() -> None:
    """A node has as many places as it holds of the chunk, if it has its properties."""
    classes = [nodes(name, cores=cores, properties=FrozenMap({"disk": disk})) for name, cores, disk in NODES_OF_KINDS]
    machine = places_of(window(classes, waiting("job", 5, chunk(3, {"disk": "fast"}, cores=4))))
    assert machine is not None
    assert machine.names == ("c", "c", "c", "d")


# ---- what the search finds ----


@pytest.mark.parametrize("seed", seeds(40))
def test_never_worse_than_the_rule(seed: int) -> None:
    """For any objective the plan verifies, plans all jobs, and is worth no more than the published rule's."""
    instance = random_window(seed)
    board = searched(instance, FEW)
    rule = POLICIES["ep_nox"].plan(instance, None)
    assert [job.id for job in board.best.jobs] == [job.id for job in rule.jobs]
    assert board.best.value <= objective_value(instance, rule.jobs) + 1e-9


@pytest.mark.parametrize("seed", seeds(25))
def test_finds_the_best_list(seed: int) -> None:
    """Of a few jobs the plan is worth no more than that of any order."""
    instance = random_window(seed, most_jobs=5)
    jobs = waiting_of(instance)
    chain = CountedChain(instance, jobs, Machine.of(instance), seed=0)
    values = [chain.plan_list(np.array(keys)) for keys in permutations(range(len(jobs)))]
    best = min(value for value in values if value is not None) + chain.offset()
    assert searched(instance, max_steps=3000).best.value <= best + 1e-6


def test_a_plan_that_holds_steps_is_adopted_without() -> None:
    """Where a plan holds the second of three steps for 4 s, the chain begins that much later; the other job stays."""
    instance = window(
        [nodes("a b c", cores=CORES)],
        replace(evolving("grows", [(2, 1), (2, 2), (3, 3)], priority=1), expand_limit=None),
        evolving("last", [(5, 2)], not_before=20),
        running("r", 8, a={"cores": CORES}),
    )
    held = POLICIES["ep_infx"].plan(instance, None).jobs
    assert [job.start for job in held] == [0, 20, 0]
    chain = CountedChain(instance, waiting_of(instance), Machine.of(instance), seed=0)
    assert chain.adopt(held)
    assert chain.starts.tolist() == [4, 20]


def test_windows_of_the_experiment_get_much_better() -> None:
    """In a case of the published experiment one plan completes and ends earlier than the rule's by far."""
    instance = evolving_window(1)
    objective = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0, ObjectiveTerm.MAKESPAN: 4.0}))
    found = searched(replace(instance, objective=objective), max_steps=20_000).best.jobs
    rule = POLICIES["ep_nox"].plan(instance, None).jobs
    assert sum(job.end for job in found) < 0.85 * sum(job.end for job in rule)
    assert max(job.end for job in found) < 0.95 * max(job.end for job in rule)
    for job, placed in product(instance.jobs, found):
        if job.id == placed.id:
            assert placed.end - placed.start == job.walltime


@pytest.mark.slow
def test_same_seed_same_plan() -> None:
    """With a limit of steps the plan depends on nothing but instance and seed."""
    instance = evolving_window(2)
    first, second, other = (searched(instance, max_steps=2000, seed=seed).best.jobs for seed in (3, 3, 4))
    assert first == second
    assert first != other


def test_other_nodes_are_searched_on_the_ledger() -> None:
    """Jobs that evolve over parts of nodes are not for numbers of nodes, but for the search."""
    steps = [waiting("x", seconds, chunk(1, cores=1)).steps[0] for seconds in (3, 4)]
    instance = window([nodes("a", cores=CORES)], replace(waiting("x", 1), steps=tuple(steps)))
    assert beyond_whole_nodes(instance)
    assert Search().unsupported(instance) == ()
    assert searched(instance).best.jobs == planned(instance).jobs
