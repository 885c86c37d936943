"""The figures of a plan, against worked examples and a literal twin in fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    Cluster,
    EngineReport,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    MaxWait,
    NodeClass,
    NodeState,
    Objective,
    ObjectiveTerm,
    Placement,
    Plan,
    PlannedJob,
    PromisedStart,
    Queue,
    Request,
    Running,
    Score,
    Segment,
    Step,
    WaitingJob,
    WaitingReason,
)
from cpsched.metrics import (
    Delays,
    delay_rates,
    end_rate,
    honest_gap,
    least_running_cost,
    objective_value,
    suffered,
    summarise,
    usage_over_time,
)
from tests.sizes import examples

QUEUES = FrozenMap(
    {"debug": Queue(expected_wait=1800), "parallel": Queue(expected_wait=21600), "longpar": Queue(expected_wait=86400)}
)
CLUSTER = Cluster(
    classes=(
        NodeClass(names=("n1", "n2"), resources=Amounts({"cores": 8, "gpus": 2})),
        NodeClass(names=("n3",), resources=Amounts({"cores": 8}), state=NodeState.DRAIN),
    ),
    licenses=Amounts({"abaqus": 4}),
)


def step(walltime: int, cores: int = 1) -> Step:
    """Make a step of one chunk."""
    return Step(walltime=walltime, request=Request(chunks=(Chunk(count=1, resources=Amounts({"cores": cores})),)))


def a_job(id: str, submit: int, walltime: int, queue: str | None = None, **more: Any) -> Job:
    """Make a rigid job."""
    return Job(id=id, submit=submit, steps=(step(walltime),), queue=queue, **more)


def planned(id: str, start: int, end: int, node: str = "n1", **resources: int) -> PlannedJob:
    """Make a planned job of one segment on one node."""
    placement = Placement(node=node, resources=Amounts(resources or {"cores": 1}), chunk=0, count=1)
    return PlannedJob(id=id, start=start, end=end, segments=(Segment(start=start, end=end, allocation=(placement,)),))


def an_instance(*jobs: Job, now: int = 0, objective: dict[str, float] | None = None) -> Instance:
    """Make an instance of three queues and three nodes."""
    weights = FrozenMap({ObjectiveTerm(name): weight for name, weight in (objective or {"weighted_wait": 1}).items()})
    return Instance(name="i", now=now, cluster=CLUSTER, queues=QUEUES, jobs=jobs, objective=Objective(weights=weights))


def a_plan(*jobs: PlannedJob, now: int = 0, waiting_room: tuple[WaitingJob, ...] = ()) -> Plan:
    """Make a plan around jobs; its score is of no interest here."""
    return Plan(
        instance="i",
        now=now,
        objective=Score(name="weighted_wait", value=0, planner=0, suffered=0),
        engine=EngineReport(name="hand", version="0", budget=1, elapsed=0, stopped="done"),
        jobs=jobs,
        waiting_room=waiting_room,
    )


def bridi_19() -> tuple[Instance, Plan]:
    """Make waits of 600 (debug), 30,000 s (parallel) and 90,000 s (longpar), and a running job."""
    running = Running(start=-10, segments=planned("r", -10, 100).segments)
    instance = an_instance(
        a_job("d", 0, 1000, "debug"),
        a_job("p", 0, 1000, "parallel"),
        a_job("l", 0, 1000, "longpar"),
        a_job("r", -(10**6), 110, "debug", running=running),
    )
    jobs = (
        planned("d", 600, 1600),
        planned("p", 30_000, 31_000),
        planned("l", 90_000, 91_000),
        planned("r", -10, 100),
    )
    return instance, a_plan(*jobs, waiting_room=(WaitingJob(id="x", reason=WaitingReason.WALLTIME, detail=""),))


def test_worked_example_of_the_paper() -> None:
    """WQT, NL and TR are those of the worked example of BRIDI-19; running jobs do not count."""
    instance, plan = bridi_19()
    summary = summarise(instance, plan)
    assert summary.wqt == pytest.approx(2.764, abs=5e-4)  # 600/1800 + 30000/21600 + 90000/86400
    assert summary.late == 2
    assert summary.tardiness == 12_000  # 8,400 + 3,600
    assert (summary.planned, summary.running, summary.waiting_room) == (3, 1, 1)
    assert summary.makespan == summary.horizon == 91_000
    assert objective_value(instance, plan.jobs) == summary.wqt


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        ({"weighted_wait": 1}, 600 / 1800 + 30_000 / 21_600 + 90_000 / 86_400),
        ({"wait": 1}, 120_600),
        ({"slowdown": 1}, 1.6 + 31 + 91),
        ({"completion": 1}, 123_600),
        ({"makespan": 1}, 91_000),
        ({"tardiness": 1}, 12_000),
        ({"wait": 2, "makespan": 0.5}, 241_200 + 45_500),
    ],
)
def test_each_term_by_hand(objective: dict[str, float], expected: float) -> None:
    """Each term, and a weighted sum, gives the value worked out by hand."""
    example, plan = bridi_19()
    instance = an_instance(*example.jobs, objective=objective)
    assert objective_value(instance, plan.jobs) == pytest.approx(expected, rel=1e-15)


def test_without_jobs_everything_is_zero() -> None:
    """A plan without waiting jobs has value 0, no waits and a horizon of 0."""
    for term in ObjectiveTerm:
        assert objective_value(an_instance(objective={term: 1}), ()) == 0
    summary = summarise(an_instance(now=50), a_plan(now=50))
    assert (summary.makespan, summary.horizon, summary.waits, summary.utilisation["cores"]) == (0, 0, (), 0)


def test_short_jobs_have_bounded_slowdown() -> None:
    """A job of 2 s that waited 28 s has slowdown 30/10, and one that waited 1 s counts as 1."""
    jobs = (a_job("a", 0, 2), a_job("b", 0, 2))
    instance = an_instance(*jobs, objective={"slowdown": 1})
    assert objective_value(instance, (planned("a", 28, 30), planned("b", 1, 3))) == 3 + 1


def test_array_elements_and_missing_queue() -> None:
    """Elements count with the submission of their entry, jobs without queue with a wait of 1800 s (BRIDI-3)."""
    instance = an_instance(a_job("a", 100, 10, array=(3, 7)))
    jobs = (planned("a[3]", 1000, 1010), planned("a[7]", 1900, 1910))
    assert objective_value(instance, jobs) == (900 + 1800) / 1800
    assert summarise(instance, a_plan(*jobs)).waits[0].queue is None


def test_a_foreign_job_is_refused() -> None:
    """A job that the instance does not know is a mistake, not a zero."""
    with pytest.raises(ValueError, match="'zzz' is not in the instance"):
        objective_value(an_instance(), (planned("zzz", 0, 1),))


def test_suffered_is_the_wait_until_now() -> None:
    """What was waited at now counts; a job that arrives later has suffered nothing; not_before changes nothing."""
    jobs = (a_job("a", -900, 60, "debug", not_before=5000), a_job("b", 100, 60, "debug"))
    instance = an_instance(*jobs)
    plan = (planned("a", 5000, 5060), planned("b", 9000, 9060))
    assert suffered(instance, plan) == 0.5
    assert suffered(instance, plan[1:]) == 0


def test_waits_per_queue_come_in_document_order() -> None:
    """Count, mean, median and maximum of each queue, with jobs without queue last."""
    instance = an_instance(
        *(a_job(name, 0, 10, queue) for name, queue in zip("abcd", ["parallel"] * 3 + [None], strict=True))
    )
    summary = summarise(instance, a_plan(*(planned(n, s, s + 10) for n, s in zip("abcd", (0, 10, 80, 5), strict=True))))
    parallel, without = summary.waits
    assert (parallel.queue, parallel.count, parallel.mean, parallel.median, parallel.max) == ("parallel", 3, 30, 10, 80)
    assert (without.queue, without.count) == (None, 1)


def test_utilisation_is_of_what_is_up_from_now_on() -> None:
    """Work before now and on drained nodes does not count, licences are held from start to end."""
    running = Running(start=-100, segments=planned("r", -100, 50, cores=8).segments)
    drained = Running(start=-100, segments=planned("q", -100, 100, "n3", cores=8).segments)
    instance = an_instance(
        a_job("r", -200, 150, running=running),
        a_job("q", -200, 200, running=drained),
        a_job("w", 0, 50, licenses=Amounts({"abaqus": 2})),
    )
    plan = a_plan(
        planned("r", -100, 50, cores=8), planned("q", -100, 100, "n3", cores=8), planned("w", 50, 100, cores=4, gpus=2)
    )
    utilisation = summarise(instance, plan).utilisation
    assert utilisation == {
        "cores": (8 * 50 + 4 * 50) / (16 * 100),
        "gpus": (2 * 50) / (4 * 100),
        "abaqus": (2 * 50) / (4 * 100),
    }


def test_usage_is_a_step_function() -> None:
    """Usage starts at now, changes only where amounts change, and ends at 0."""
    instance = an_instance(*(a_job(name, 0, 10) for name in "abc"), a_job("l", 0, 30, licenses=Amounts({"abaqus": 3})))
    jobs = (
        planned("a", -5, 10, cores=4),
        planned("b", 10, 20, cores=4),
        planned("c", 15, 40, cores=2),
        planned("l", 5, 35),
    )
    assert usage_over_time(instance, a_plan(*jobs[:3]), "cores") == ((0, 15, 20, 40), (4, 6, 2, 0))
    assert usage_over_time(instance, a_plan(*jobs), "abaqus") == ((0, 5, 35), (0, 3, 0))
    assert usage_over_time(instance, a_plan(*jobs), "gpus") == ((0,), (0,))


@pytest.mark.parametrize(
    ("value", "bound", "expected"), [(41.27, 40.02, 1.25 / 28.77), (5, None, None), (0, 0, 0), (12.5, 12.5, 0)]
)
def test_honest_gap(value: float, bound: float | None, expected: float | None) -> None:
    """The gap leaves out what was already waited, and is 0 where nothing is left to win."""
    score = Score(name="weighted_wait", value=value, bound=bound, planner=value, suffered=12.5 if value else 0)
    assert honest_gap(score) == (None if expected is None else pytest.approx(expected))


times = st.integers(0, 10**6)
job_weights = st.none() | st.sampled_from([2, 0.1, 1e-3, 1e6])


@examples(60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(times, times, st.integers(1, 10**5), st.sampled_from([*QUEUES, None]), job_weights), max_size=12
    ),
    weights=st.dictionaries(st.sampled_from(list(ObjectiveTerm)), st.floats(0.001, 1000), min_size=1),
    now=times,
)
def test_value_is_that_of_exact_fractions(
    rows: list[tuple[int, int, int, str | None, float | None]], weights: dict[str, float], now: int
) -> None:
    """Any plan has exactly the value that the formulas give when computed job by job in fractions."""
    jobs = [
        a_job(str(i), submit, walltime, queue, weight=weight)
        for i, (submit, _, walltime, queue, weight) in enumerate(rows)
    ]
    plans = [planned(str(i), s + wait, s + wait + walltime) for i, (s, wait, walltime, *_) in enumerate(rows)]
    queues = FrozenMap({**QUEUES, "parallel": replace(QUEUES["parallel"], weight=0.3)})
    instance = replace(an_instance(*jobs, now=now, objective=weights), queues=queues)
    assert_nearest(objective_value(instance, plans), naive_value(instance, jobs, plans))


prices = st.sampled_from([0, 10, 0.1]) | st.floats(0.001, 1000)  # sums keep 128 binary digits behind the point


@examples(60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(times, times, st.none() | st.builds(PromisedStart, start=times, price=prices)), max_size=12
    ),
    max_wait=st.builds(MaxWait, seconds=st.integers(1, 10**6), price=prices, is_hard=st.booleans()),
    term=st.sampled_from(list(ObjectiveTerm)),
    now=times,
)
def test_surcharges_are_those_of_exact_fractions(
    rows: list[tuple[int, int, PromisedStart | None]], max_wait: MaxWait, term: ObjectiveTerm, now: int
) -> None:
    """With limits of waiting and told starts, too, value and suffered part are those of the formulas."""
    jobs = [
        a_job(str(i), submit, 60, ["debug", "parallel", None][i % 3], told=told)
        for i, (submit, _, told) in enumerate(rows)
    ]
    plans = [planned(str(i), submit + wait, submit + wait + 60) for i, (submit, wait, _) in enumerate(rows)]
    queues = FrozenMap({**QUEUES, "debug": replace(QUEUES["debug"], max_wait=max_wait)})
    instance = replace(an_instance(*jobs, now=now, objective={term: 1}), queues=queues)
    assert_nearest(objective_value(instance, plans), naive_value(instance, jobs, plans))
    at_once = [planned(job.id, max(now, job.submit), max(now, job.submit) + 60) for job in jobs]
    assert_nearest(suffered(instance, plans), naive_value(instance, jobs, at_once))


def test_who_is_overdue_and_who_is_postponed() -> None:
    """Of three jobs that should wait for 100 s at most two wait for 130 and 101; of two told starts one is kept."""
    max_wait = MaxWait(seconds=100)
    queues = FrozenMap({"debug": Queue(expected_wait=1800, max_wait=max_wait), "free": Queue(expected_wait=1800)})
    told = [PromisedStart(start=30), None, PromisedStart(start=130), None, None]
    running = Running(start=-10, segments=planned("r", -10, 100).segments)
    jobs = [
        *(a_job(name, -30, 60, "debug", told=one) for name, one in zip("abc", told, strict=False)),
        a_job("d", -500, 60, "free"),
        a_job("r", -500, 110, "debug", running=running),
    ]
    instance = replace(an_instance(*jobs), queues=queues)
    plan = a_plan(
        planned("a", 100, 160),
        planned("b", 71, 131),
        planned("c", 70, 130),
        planned("d", 0, 60),
        planned("r", -10, 100),
    )
    summary = summarise(instance, plan)
    assert summary.overdue == Delays(count=3, late=2, total=31, max=30)
    assert summary.postponed == Delays(count=2, late=1, total=70, max=70)
    assert summary.postponed_price == 70 / 1800


def test_delays_are_told_where_there_are_limits_only() -> None:
    """Without max_wait and told starts a summary says nothing of them."""
    summary = summarise(*bridi_19())
    assert (summary.overdue, summary.postponed, summary.postponed_price) == (None, None, 0)


def naive_weight(instance: Instance, job: Job) -> Fraction:
    """Return the weight of a job, as its decimals say, or else that of its queue, or 1."""
    queue = 1 if job.queue is None else instance.queues[job.queue].weight
    return Fraction(str(queue if job.weight is None else job.weight))


def assert_nearest(value: float, exact: Fraction) -> None:
    """Check that no float is nearer; half-way between two, where the last cut-off digits decide, it may be either."""
    assert abs(Fraction(value) - exact) <= Fraction(math.ulp(value)) / 2 + Fraction(1, 1 << 100)


def naive_value(instance: Instance, jobs: list[Job], plans: list[PlannedJob]) -> Fraction:
    """Compute the objective of rigid waiting jobs word by word as ``docs/formats.md`` has it."""
    total = Fraction(0)
    for term, weight in instance.objective.weights.items():
        terms = [Fraction(0)]
        for job, plan in zip(jobs, plans, strict=True):
            wait, expected = plan.start - job.submit, instance.expected_wait(job)
            bounded = Fraction(plan.end - job.submit, max(10, plan.end - plan.start))
            terms.append(
                naive_weight(instance, job)
                * {
                    "weighted_wait": Fraction(wait, expected),
                    "wait": Fraction(wait),
                    "slowdown": max(Fraction(1), bounded),
                    "completion": Fraction(plan.end - job.submit),
                    "makespan": Fraction(0),
                    "tardiness": Fraction(max(0, wait - expected)),
                    "waste": Fraction(0),
                }[term]
            )
        if term == "makespan" and plans:
            terms.append(Fraction(max(plan.end for plan in plans) - instance.now))
        total += Fraction(weight) * sum(terms)
    for job, plan in zip(jobs, plans, strict=True):
        max_wait = None if job.queue is None else instance.queues[job.queue].max_wait
        expected, factor = instance.expected_wait(job), naive_weight(instance, job)
        if max_wait is not None:
            late = Fraction(max(0, plan.start - job.submit - max_wait.seconds), expected)
            total += factor * Fraction(max_wait.price) * late
        if job.told is not None:
            total += factor * Fraction(job.told.price) * Fraction(max(0, plan.start - job.told.start), expected)
    return total


def test_ten_thousand_jobs_of_different_lengths() -> None:
    """The slowdown of 10,000 jobs, which as one fraction would have ten thousand denominators, is right."""
    jobs = [a_job(str(i), 0, 5_000 + 7 * i) for i in range(10_000)]
    plans = [planned(str(i), 3 * i, 10 * i + 5_000) for i in range(10_000)]
    instance = an_instance(*jobs, objective={"slowdown": 1, "weighted_wait": 1})
    slowdown = math.fsum((10 * i + 5_000) / (7 * i + 5_000) for i in range(10_000))
    waits = sum(3 * i for i in range(10_000)) / 1800
    assert objective_value(instance, plans) == pytest.approx(slowdown + waits, rel=1e-12)


def test_waste_is_what_evolving_jobs_hold_in_vain() -> None:
    """A step of 3 cores that is held for 20 s more than it asks for wastes 60; a rigid job wastes nothing (EVO-12)."""
    job = Job(id="e", submit=0, steps=(step(10, 3), step(5, 4)), expand_limit=None)
    segments = (Segment(start=0, end=30, allocation=()), Segment(start=30, end=35, allocation=()))
    evolved = PlannedJob(id="e", start=0, end=35, segments=segments)
    instance = an_instance(job, a_job("a", 0, 60), objective={"waste": 0.5})
    assert objective_value(instance, [evolved, planned("a", 100, 160)]) == 30
    assert suffered(instance, [evolved, planned("a", 100, 160)]) == 0
    assert list(delay_rates(instance, job)) == []


def running_shrunk() -> Job:
    """Return a malleable job of 100 s and 4 cores that has run on 2 of them for 40 s, and would end at 160."""
    held = (Placement(node="n1", resources=Amounts({"cores": 2}), chunk=0, count=1),)
    running = Running(start=-40, segments=(Segment(start=-40, end=160, allocation=held),))
    malleability = Malleability(shares=(0.5,))
    return Job(id="r", submit=-90, steps=(step(100, 4),), queue="debug", malleability=malleability, running=running)


@pytest.mark.parametrize(
    ("objective", "rate"),
    [
        ({"weighted_wait": 1}, Fraction(1, 1800)),
        ({"wait": 1}, Fraction(1)),
        ({"completion": 2}, Fraction(2)),
        ({"slowdown": 1}, Fraction(1, 100)),
        ({"tardiness": 1, "makespan": 1, "waste": 1}, Fraction(0)),
        ({"wait": 0.5, "slowdown": 3}, Fraction(1, 2) + Fraction(3, 100)),
    ],
)
def test_a_running_job_that_ends_later_costs(objective: dict[str, float], rate: Fraction) -> None:
    """Each second of delay behind the instance's end costs the same, and each second before it is worth that much."""
    job = running_shrunk()
    instance = an_instance(job, objective=objective)
    assert end_rate(instance, job) == rate
    for end in (160, 100, 80, 200):
        assert objective_value(instance, [planned("r", -40, end)]) == pytest.approx(float((end - 160) * rate))
        assert suffered(instance, [planned("r", -40, end)]) == 0
    assert float(least_running_cost(instance)) == pytest.approx(float(-80 * rate))
    assert objective_value(instance, []) == 0


#: A job of 100 s that was submitted at -40 and starts at 20 ends at 320, 200 s later than at full share.
STRETCHED = [
    ({"weighted_wait": 1}, Fraction(60 + 200, 1800)),
    ({"wait": 1}, Fraction(60 + 200)),
    ({"completion": 1}, Fraction(360)),
    ({"slowdown": 1}, Fraction(160 + 200, 100)),
    ({"makespan": 1}, Fraction(320)),
    ({"tardiness": 1, "waste": 1}, Fraction(0)),
    ({"wait": 0.5, "slowdown": 3}, Fraction(130) + Fraction(3 * 360, 100)),
]


@pytest.mark.parametrize(("objective", "value"), STRETCHED)
def test_a_waiting_job_that_is_stretched_costs(objective: dict[str, float], value: Fraction) -> None:
    """Each second that a malleable job takes longer than at full share costs as much as one of a running job's."""
    job = replace(a_job("m", -40, 100, "debug"), malleability=Malleability(shares=(0.5,)))
    instance = an_instance(job, objective=objective)
    assert objective_value(instance, [planned("m", 20, 320)]) == pytest.approx(float(value))
    assert objective_value(instance, [planned("m", 20, 320)]) - objective_value(
        instance, [planned("m", 20, 120)]
    ) == pytest.approx(float(200 * (end_rate(instance, job) + Fraction(objective.get("makespan", 0)))))
    assert suffered(instance, [planned("m", 20, 320)]) == suffered(instance, [planned("m", 20, 120)])


def test_a_short_job_that_is_stretched_has_a_bounded_slowdown() -> None:
    """A job of 4 s counts as one of 10 s: waiting 3 s costs nothing, a stretch of 4 s is 0.4 more."""
    job = replace(a_job("m", 0, 4, "debug"), malleability=Malleability(shares=(0.5,)))
    instance = an_instance(job, objective={"slowdown": 1})
    assert objective_value(instance, [planned("m", 3, 7)]) == 1
    assert objective_value(instance, [planned("m", 3, 11)]) == pytest.approx(1.4)


def test_in_a_record_the_stretch_is_beyond_the_runtime() -> None:
    """Of a record, a job of 100 s that really takes 40 is stretched by 40 s if it takes 80; in a plan by nothing."""
    job = replace(a_job("m", -40, 100, "debug"), malleability=Malleability(shares=(0.5,)), runtime=40)
    instance = an_instance(job, objective={"slowdown": 1, "wait": 1})
    assert objective_value(instance, [planned("m", 0, 80)], is_record=True) == 80 / 40 + 40 / 40 + 40 + 40
    assert objective_value(instance, [planned("m", 0, 100)]) == 140 / 100 + 40


def test_facts_gain_nothing() -> None:
    """A running job that no plan may change has no part in the least cost."""
    rigid = replace(running_shrunk(), malleability=None)
    assert least_running_cost(an_instance(rigid, objective={"wait": 1})) == 0


@pytest.mark.parametrize(
    ("value", "suffered_part", "gap"), [(50.0, 30.0, 0.5), (40.0, 40.0, 0.0), (30.0, 40.0, None), (40.0, 50.0, 0.0)]
)
def test_honest_gap_needs_something_that_can_be_changed(value: float, suffered_part: float, gap: float | None) -> None:
    """Where running jobs gain more than all the others wait there is no honest gap, unless it is closed."""
    bound = value if gap == 0 else value - 10
    score = Score(name="wait", value=value, bound=bound, gap=0, planner=value, suffered=suffered_part)
    assert honest_gap(score) == gap
