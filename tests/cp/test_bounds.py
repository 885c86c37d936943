"""Lower bounds: never above a plan, tight where theory says so, on time, the same each time."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.booking import Ledger
from cpsched.cp import lower_bound
from cpsched.cp.bounds.costs import job_cost
from cpsched.cp.bounds.packing import Knapsack, Shape, Unit
from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    NodeClass,
    NodeState,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.formats import read_instance
from cpsched.metrics import objective_value
from cpsched.planner import Planner
from cpsched.problem import refusal
from tests.oracle.random_instances import instances, pressed
from tests.sizes import examples
from tests.workloads.brute_force import least_weighted_wait
from tests.workloads.tiny import TinyCase, tiny_cases

#: Evaluations of the dual function in tests: enough to climb, the same on every machine.
FEW = 40
#: Seconds that no test needs; they decide how many surrogates are tried.
LONG = 4.0
DATA = Path(__file__).parents[3] / "shared" / "data" / "eurora"

OBJECTIVES = [
    *({term: 1.0} for term in ObjectiveTerm),
    {ObjectiveTerm.WEIGHTED_WAIT: 1.0, ObjectiveTerm.MAKESPAN: 0.001},
    {ObjectiveTerm.SLOWDOWN: 0.3, ObjectiveTerm.TARDINESS: 2.5, ObjectiveTerm.COMPLETION: 1e-4},
]


def small_job(job_id: str, cores: int, walltime: int, **more: Any) -> Job:
    """Return a job of one chunk, submitted at 0."""
    request = Request(chunks=(Chunk(count=1, resources=Amounts({"cores": cores})),))
    return replace(Job(id=job_id, submit=0, steps=(Step(walltime=walltime, request=request),)), **more)


def small_instance(jobs: list[Job], *, num_nodes: int = 1, cores: int = 4, term: str = "wait") -> Instance:
    """Return an instance on a few equal nodes."""
    names = tuple(f"n{number}" for number in range(num_nodes))
    return Instance(
        name="small",
        cluster=Cluster(classes=(NodeClass(names=names, resources=Amounts({"cores": cores})),)),
        queues=FrozenMap({"hasty": Queue(expected_wait=10), "patient": Queue(expected_wait=100)}),
        jobs=tuple(jobs),
        objective=Objective(weights=FrozenMap({ObjectiveTerm(term): 1.0})),
    )


def running(job_id: str, cores: int, end: int, node: str = "n0") -> Job:
    """Return a job that holds cores of a node until `end`."""
    segment = Segment(start=-1, end=end, allocation=(Placement(node=node, resources=Amounts({"cores": cores})),))
    return small_job(job_id, cores, end + 1, running=Running(start=-1, segments=(segment,)))


def bound_of(instance: Instance) -> float:
    """Return the bound over all waiting jobs."""
    ids = [job.id for job in instance.elements() if job.running is None]
    found = lower_bound(instance, ids, seconds=LONG, evaluations=FEW)
    assert found is not None
    return found.value


def plans_of(instance: Instance, rng: random.Random, count: int) -> list[list[PlannedJob]]:
    """Return plans by serial insertion in random orders, the planner's own first."""
    planner = Planner(instance)
    planner.plan()
    plans = [[job for job in planner.outcome().jobs if job.id in {j.id for j in waiting_of(instance)}]]
    admitted = [job for job in waiting_of(instance) if refusal(instance, job) is None]
    for _ in range(count):
        ledger = Ledger(instance, admitted)
        order = [job.id for job in admitted]
        rng.shuffle(order)
        ledger.plan(order)
        plans.append([placed for job in order if (placed := ledger.planned(job)) is not None])
    return plans


def waiting_of(instance: Instance) -> list[Job]:
    """Return the waiting jobs, arrays by element."""
    return [job for job in instance.elements() if job.running is None]


@pytest.mark.slow
@examples(150, deadline=None)
@given(instances().flatmap(pressed), st.sampled_from(OBJECTIVES), st.integers(0, 25), st.integers(0, 40))
def test_costs_are_the_objective(
    instance: Instance, weights: dict[ObjectiveTerm, float], first: int, delay: int
) -> None:
    """What a job costs by its value and rates is, without the makespan, the objective of a plan of that job alone."""
    weights = {term: weight for term, weight in weights.items() if term is not ObjectiveTerm.MAKESPAN}
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    for job in waiting_of(instance):
        begin = instance.earliest_start(job) + first
        cost = job_cost(instance, job, begin, job.walltime)
        start = begin + delay
        plan = PlannedJob(id=job.id, start=start, end=start + job.walltime, segments=())
        rates = sum((rate * (max(start, kink) - max(begin, kink)) for kink, rate in cost.rates), Fraction(0))
        assert float(cost.value + rates) == pytest.approx(objective_value(instance, [plan]), rel=1e-12)


@examples(100, deadline=None)
@given(instances() | instances().flatmap(pressed), st.sampled_from(OBJECTIVES), st.integers(0, 10**6))
def test_no_plan_of_a_random_instance_is_below_the_bound(
    instance: Instance, weights: dict[ObjectiveTerm, float], seed: int
) -> None:
    """In whatever order jobs are inserted, and whatever the objective, the plan costs at least the bound."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    bounds: dict[frozenset[str], float] = {}
    for plan in plans_of(instance, random.Random(seed), 6):
        ids = frozenset(job.id for job in plan)
        if ids not in bounds:
            found = lower_bound(instance, ids, seconds=LONG, seed=seed, evaluations=FEW)
            assert found is not None
            bounds[ids] = found.value
        assert bounds[ids] <= objective_value(instance, plan)


@examples(60, deadline=None)
@given(
    instances(max_nodes=2, max_jobs=3, max_running=2).flatmap(
        lambda one: st.just(one) | pressed(one, can_be_hard=False)
    )
)
def test_the_optimum_of_a_random_instance_is_not_below_the_bound(instance: Instance) -> None:
    """The brute-force optimum of tiny instances without fixed times is at least the bound of the jobs it places. It
    knows no dependencies: `scripts/random_judges bounds` does.
    """
    free = [replace(job, start_at=None, deadline=None, after=()) for job in instance.jobs]
    instance = replace(instance, jobs=tuple(free))
    instance = replace(instance, jobs=instance.elements())
    if sum(chunk.count for job in waiting_of(instance) for chunk in job.request.chunks) > 7:
        return
    best = least_weighted_wait(instance)
    bound = lower_bound(instance, list(best.starts), seconds=LONG, evaluations=FEW)
    assert bound is not None
    assert bound.value <= best.value + 1e-9


@pytest.mark.parametrize("case", tiny_cases(), ids=lambda case: case.instance.name)
def test_known_optima_are_not_below_the_bound(case: TinyCase) -> None:
    """Each tiny instance with a known optimum: the bound is no higher."""
    bound = lower_bound(case.instance, list(case.starts), seconds=LONG, evaluations=200)
    assert bound is not None
    assert bound.value <= case.optimum * (1 + 1e-12)


@pytest.mark.large
def test_random_single_nodes_in_bulk() -> None:
    """On hundreds of random queues no random order beats the bound, and the bound is often positive."""
    rng = random.Random(7)
    positive = 0
    for _ in range(400):
        jobs = [
            small_job(f"j{n}", rng.randint(1, 4), rng.randint(1, 20), queue=rng.choice(["hasty", "patient", None]))
            for n in range(rng.randint(2, 6))
        ]
        if rng.random() < 0.3:
            jobs.append(running("r", rng.randint(1, 4), rng.randint(1, 9)))
        instance = small_instance(jobs, num_nodes=rng.randint(1, 2), term=rng.choice(["wait", "weighted_wait"]))
        waiting = waiting_of(instance)
        bound = lower_bound(instance, [job.id for job in waiting], seconds=LONG, evaluations=10)
        assert bound is not None
        ledger = Ledger(instance, waiting)
        rng.shuffle(waiting)
        ledger.plan([job.id for job in waiting])
        plan = [placed for job in waiting if (placed := ledger.planned(job.id)) is not None]
        assert bound.value <= objective_value(instance, plan)
        positive += bound.value > 0
    assert positive > 100


def random_window(rng: random.Random) -> Instance:
    """Return a window of up to four jobs on up to three nodes of two classes, beside up to one running job."""
    small = NodeClass(names=("s0", "s1")[: rng.randint(1, 2)], resources=Amounts({"cores": 4, "mem": 4}))
    large = NodeClass(names=("l0",), resources=Amounts({"cores": 6, "mem": 8, "gpus": 1}))
    classes = rng.choice([(small,), (small, large), (large,)])
    most = classes[-1].resources
    jobs = []
    for number in range(rng.randint(2, 4)):
        asked = {name: rng.randint(0 if name != "cores" else 1, amount) for name, amount in most.items()}
        chunk = Chunk(
            count=1 if rng.random() < 0.8 else 2,
            resources=Amounts({name: amount for name, amount in asked.items() if amount}),
        )
        step = Step(walltime=rng.randint(1, 12), request=Request(chunks=(chunk,)))
        queue = rng.choice(["hasty", "patient", None])
        jobs.append(Job(id=f"j{number}", submit=-rng.randint(0, 9), steps=(step,), queue=queue))
    if rng.random() < 0.4:
        jobs.append(running("r", rng.randint(1, 4), rng.randint(1, 9), classes[0].names[0]))
    base = small_instance(jobs, term="weighted_wait")
    return replace(base, cluster=Cluster(classes=classes))


@pytest.mark.slow
@pytest.mark.parametrize("count", [250, pytest.param(2000, marks=pytest.mark.large)])
def test_thousands_of_optima_are_not_below_the_bound(count: int) -> None:
    """On random windows, where all can be tried, no bound is above the optimum; with work many come near it."""
    rng = random.Random(11)
    worked, near = 0, 0
    for number in range(count):
        instance = random_window(rng)
        best = least_weighted_wait(instance)
        evaluations = 60 if number % 10 == 0 else 0
        bound = lower_bound(instance, list(best.starts), seconds=0.5, evaluations=evaluations)
        assert bound is not None
        assert bound.value <= best.value + 1e-9
        waited = sum(-job.submit / instance.expected_wait(job) for job in waiting_of(instance) if job.id in best.starts)
        if evaluations and best.value > waited + 1e-9:
            worked += 1
            near += bound.value - waited >= 0.5 * (best.value - waited)
    assert near > 0.5 * worked > count / 200


def test_the_best_packing_fits_and_measures_what_the_table_says() -> None:
    """For random sizes the proposed packing of a node respects resources and copies, and its value is the table's."""
    rng = random.Random(5)
    for _ in range(200):
        units = [
            Unit(Amounts({"cores": rng.randint(1, 8), "mem": rng.randint(1, 9)}), frozenset({0}))
            for _ in range(rng.randint(1, 5))
        ]
        counts = [rng.randint(1, 3) for _ in units]
        resources = Amounts({"cores": 8, "mem": 9})
        knapsack = Knapsack(Shape(resources, tuple(range(len(units)))), units, counts)
        sizes = np.array([[rng.randint(0, 50) for _ in units] for _ in range(4)])
        packings = knapsack.packings(sizes.astype(np.float64))
        assert ((packings * sizes).sum(axis=1) == knapsack.table(sizes)[knapsack.idle]).all()
        assert (packings <= counts).all()
        for name, amount in resources.items():
            assert (packings @ [unit.amounts[name] for unit in units] <= amount).all()


def test_nodes_that_are_down_hold_nothing() -> None:
    """Where no node is up there is nothing to share, and the bound is what has been waited."""
    instance = small_instance([small_job("a", 1, 10, submit=-5)])
    (node_class,) = instance.cluster.classes
    cluster = Cluster(classes=(replace(node_class, state=NodeState.DOWN),))
    assert bound_of(replace(instance, cluster=cluster)) == 5


def test_equal_jobs_on_one_node_are_proven() -> None:
    """Jobs that fill the node run one after the other: 100 + 200 + ... + 900 s of waiting."""
    jobs = [small_job(f"j{n}", 4, 100) for n in range(10)]
    instance = small_instance(jobs)
    bound = lower_bound(instance, [job.id for job in jobs], seconds=LONG, evaluations=2000)
    assert bound is not None
    assert 0.99 * 4500 <= bound.value <= 4500


def test_smiths_order_is_proven() -> None:
    """With weights 1/10 and 1/100 per second the short hasty job goes first: 30/100 is the least."""
    jobs = [small_job("a", 4, 30, queue="hasty"), small_job("b", 4, 60, queue="patient")]
    instance = small_instance(jobs, term="weighted_wait")
    bound = lower_bound(instance, ["a", "b"], seconds=LONG, evaluations=2000)
    assert bound is not None
    assert 0.95 * 0.3 <= bound.value <= 0.3


def test_units_of_more_than_half_a_node_take_a_node() -> None:
    """Four jobs of 3 of 4 cores on two nodes, 100 s each: two of them wait, 200 s together."""
    jobs = [small_job(f"j{n}", 3, 100) for n in range(4)]
    instance = small_instance(jobs, num_nodes=2)
    bound = lower_bound(instance, [job.id for job in jobs], seconds=LONG, evaluations=2000)
    assert bound is not None
    assert 0.97 * 200 <= bound.value <= 200


def test_running_jobs_hold_back_what_does_not_fit_beside_them() -> None:
    """Two cores are taken until 50: the job of 4 waits 50 s, that of 2 not at all."""
    jobs = [running("r", 2, 50), small_job("large", 4, 10), small_job("small", 2, 10)]
    assert bound_of(small_instance(jobs)) == 50
    found = lower_bound(small_instance(jobs), ["small"], seconds=0.0)
    assert found is not None
    assert found.value == 0


def test_makespan_is_bounded_by_area_and_by_the_longest_job() -> None:
    """Five jobs of a whole node are 500 node seconds, on two nodes 250; a long one ends at 470 at the earliest."""
    jobs = [small_job(f"j{n}", 4, 100) for n in range(5)]
    assert bound_of(small_instance(jobs, num_nodes=2, term="makespan")) == 250
    late = small_job("late", 1, 400, not_before=70)
    assert bound_of(small_instance([*jobs, late], num_nodes=2, term="makespan")) == 470


def test_what_is_suffered_counts() -> None:
    """A job that fits at once has as its bound what it has waited: 75 s of 100 expected."""
    job = small_job("a", 1, 10, queue="patient", submit=-75)
    found = lower_bound(small_instance([job], term="weighted_wait"), ["a"], seconds=0.0)
    assert found is not None
    assert found.value == 0.75
    assert found.how == "each job at its own earliest start"


def test_values_are_rounded_down() -> None:
    """The float is never above the exact value: 1/3 + 1/7 of expected waits in thirds and sevenths."""
    queues = FrozenMap({"three": Queue(expected_wait=3), "seven": Queue(expected_wait=7)})
    jobs = [small_job("a", 1, 1, queue="three", submit=-1), small_job("b", 1, 1, queue="seven", submit=-1)]
    instance = replace(small_instance(jobs, term="weighted_wait"), queues=queues)
    found = lower_bound(instance, ["a", "b"], seconds=0.0)
    assert found is not None
    assert Fraction(found.value) <= Fraction(10, 21)
    assert found.value == pytest.approx(10 / 21, abs=1e-15)


def test_huge_numbers_stay_proven() -> None:
    """Walltimes of 10^10 s and a very small weight: the bound is no higher than the only sensible plan."""
    jobs = [small_job(f"j{n}", 4, 10**10) for n in range(4)]
    instance = replace(small_instance(jobs), objective=Objective(weights=FrozenMap({ObjectiveTerm.WAIT: 1e-12})))
    assert 0 <= bound_of(instance) <= 1e-12 * 6 * 10**10


def test_malleable_evolving_and_dependent_jobs_get_weaker_bounds() -> None:
    """What cannot be relaxed well counts less: a malleable job takes nothing, an evolving one its first step."""
    jobs = [small_job(f"j{n}", 4, 100) for n in range(2)]
    rigid = bound_of(small_instance(jobs))
    elastic = [replace(jobs[0], malleability=Malleability(shares=(0.5,))), jobs[1]]
    assert bound_of(small_instance(elastic)) == 0
    evolving = [
        replace(job, steps=(Step(walltime=50, request=job.request), Step(walltime=50, request=job.request)))
        for job in jobs
    ]
    assert 0 < bound_of(small_instance(evolving)) < 0.6 * rigid
    chained = [jobs[0], replace(jobs[1], after=(Dependency(job="j0", type=DependencyType.AFTEROK),))]
    assert bound_of(small_instance(chained)) <= 100


def test_jobs_that_wait_for_each_other_start_no_earlier_than_that_allows() -> None:
    """A chain of jobs behind one that runs, on a machine with room for all, is proven optimal without a solver."""
    kinds = [("r", DependencyType.AFTERANY, 5), ("a", DependencyType.AFTEROK, 0), ("b", DependencyType.AFTER, 7)]
    chain = [
        small_job(name, 1, 100, after=(Dependency(job=awaited, type=kind, delay=delay),))
        for name, (awaited, kind, delay) in zip("abc", kinds, strict=True)
    ]
    assert bound_of(small_instance([running("r", 1, 40), *reversed(chain)])) == 45 + 145 + 152


def test_the_same_again() -> None:
    """Same instance, seed and number of evaluations: the same bound, to the last digit."""
    jobs = [small_job(f"j{n}", 1 + n % 4, 10 + n) for n in range(12)]
    instance = small_instance(jobs, num_nodes=2)
    ids = [job.id for job in jobs]
    first, second = (lower_bound(instance, ids, seconds=LONG, seed=3, evaluations=100) for _ in range(2))
    assert first == second


def test_more_evaluations_prove_no_less() -> None:
    """Climbing longer from the same start never loses."""
    jobs = [small_job(f"j{n}", 1 + n % 3, 10 + 7 * n % 30) for n in range(12)]
    instance = small_instance(jobs, num_nodes=2)
    ids = [job.id for job in jobs]
    values = []
    for evaluations in (0, 30, 300):
        found = lower_bound(instance, ids, seconds=LONG, evaluations=evaluations)
        assert found is not None
        values.append(found.value)
    assert values[0] <= values[1] + 1e-6 <= values[2] + 2e-6


def test_a_bound_that_meets_a_plan_needs_no_better() -> None:
    """It stops with what is proven then, and would have gone on with any evaluation that was left."""
    jobs = [small_job(f"j{n}", 1 + n % 3, 10 + 7 * n % 30) for n in range(12)]
    instance = small_instance(jobs, num_nodes=2)
    ids = [job.id for job in jobs]
    few, many = (lower_bound(instance, ids, seconds=LONG, evaluations=number) for number in (30, 300))
    assert few is not None
    met = lower_bound(instance, ids, seconds=LONG, evaluations=300, enough=few.value)
    assert met is not None
    assert many is not None
    assert met.value == pytest.approx(few.value, rel=0.05)
    assert met.how != many.how


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.05, 0.4])
def test_the_time_limit_is_kept(seconds: float) -> None:
    """By a clock that goes on at each look the answer is there at its time, or at once where there is hardly any."""
    ticks = count()
    jobs = [small_job(f"j{n}", 1 + n % 4, 10 + n) for n in range(300)]
    instance = small_instance(jobs, num_nodes=4)
    ids = [job.id for job in jobs]
    assert lower_bound(instance, ids, seconds=seconds, clock=lambda: next(ticks) * 0.01) is not None
    assert next(ticks) * 0.01 < max(0.0, seconds) + 0.2


def test_unknown_and_running_jobs_are_refused() -> None:
    """Only waiting jobs of the instance can be bounded."""
    instance = small_instance([running("r", 1, 5), small_job("a", 1, 1)])
    for ids in (["r"], ["a", "nobody"]):
        with pytest.raises(ValueError, match="not among the waiting jobs"):
            lower_bound(instance, ids, seconds=0.0)


def test_rewards_for_delay_have_no_bound() -> None:
    """An objective with a negative weight gets no bound; no jobs at all cost nothing."""
    instance = small_instance([small_job("a", 1, 1)])
    rewarding = replace(instance, objective=Objective(weights=FrozenMap({ObjectiveTerm.WAIT: -1.0})))
    assert lower_bound(rewarding, ["a"], seconds=1.0) is None
    empty = lower_bound(instance, [], seconds=1.0)
    assert empty is not None
    assert empty.value == 0


def test_a_real_window() -> None:
    """On a window of 400 jobs two seconds prove 80 % of the best known plan, of what a plan can change."""
    path = DATA / "window-0400-0.json.gz"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    instance = read_instance(path, on_warning=lambda _: None)
    ids = [job.id for job in instance.jobs]
    found = lower_bound(instance, ids, seconds=LONG, evaluations=120)
    assert found is not None
    waited = sum((instance.now - job.submit) / instance.expected_wait(job) for job in instance.jobs)
    assert 0.80 * 379 <= found.value - waited <= 379
