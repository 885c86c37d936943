"""Malleable jobs in the planner: they begin or go on with less where that is worth more, and never else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    Objective,
    ObjectiveTerm,
    Placement,
    PlannedJob,
    Request,
    Running,
    RuntimeModel,
    Segment,
    Step,
)
from cpsched.engine import Outcome
from cpsched.metrics import objective_value
from cpsched.planner import Planner, PlannerEngine, Values, replanned, shrink
from cpsched.portfolio import plan_of
from tests.booking.small_windows import EXCLUSIVE, chunk, cores_for_gpus, nodes, running, waiting, window
from tests.oracle.random_malleable import malleable_windows
from tests.portfolio.judged import assert_judged
from tests.sizes import examples
from tests.workloads.changing import made_rigid

HALF = Malleability(shares=(0.5,))
COMPLETION = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0}))
WAIT = Objective(weights=FrozenMap({ObjectiveTerm.WAIT: 1.0}))

weights = st.dictionaries(st.sampled_from(ObjectiveTerm), st.sampled_from([0.001, 1.0, 2.5]), min_size=1, max_size=3)


def on(node: str, cores: int, count: int = 1, kind: int = 0, **more: int) -> Placement:
    """Return chunks of a running job on a node."""
    return Placement(node=node, chunk=kind, count=count, resources=Amounts({"cores": cores, **more}))


def mate(job_id: str, walltime: int, *held: Placement, start: int = 0, **options: Any) -> Job:
    """Return a malleable job that runs on all its cores, each of its chunks on a node of its own."""
    request = Request(chunks=(Chunk(count=len(held), resources=held[0].resources),))
    segments = (Segment(start=start, end=start + walltime, allocation=held),)
    job = Job(
        id=job_id,
        submit=start,
        steps=(Step(walltime=walltime, request=request),),
        malleability=HALF,
        running=Running(start=start, segments=segments),
    )
    return replace(job, **options)


def plan(instance: Instance) -> dict[str, PlannedJob]:
    """Plan a window; the judge finds no fault."""
    outcome = PlannerEngine().plan(instance, None)
    assert_judged(instance, outcome)
    return {job.id: job for job in outcome.jobs}


def cores_of(planned: PlannedJob) -> list[tuple[int, int, dict[str, int]]]:
    """Return (start, end, cores by node) of each segment."""
    return [
        (one.start, one.end, {held.node: held.resources["cores"] for held in one.allocation})
        for one in planned.segments
    ]


def in_order(instance: Instance) -> tuple[Planner, Outcome]:
    """Return the planner after all jobs had their turn, none of them with less."""
    planner = Planner(instance)
    planner.ledger.plan([job.id for job in planner.ledger.jobs])
    return planner, planner.outcome()


# --- properties -------------------------------------------------------------------------------------------------


@examples(120)
@given(malleable_windows(), weights)
def test_never_worse_than_rigid(instance: Instance, of_terms: dict[ObjectiveTerm, float]) -> None:
    """The plan verifies, plans all jobs that the plan of rigid jobs does, and is worth no more if it plans no more."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(of_terms)))
    found, rigid = plan(instance), PlannerEngine().plan(made_rigid(instance), None)
    assert found.keys() >= {job.id for job in rigid.jobs}
    if len(found) == len(rigid.jobs):
        value = objective_value(instance, found.values())
        assert value <= objective_value(instance, rigid.jobs) + 1e-9 * abs(value)


@examples(120)
@given(malleable_windows(), weights)
def test_values_are_the_objective_but_for_a_constant(instance: Instance, of_terms: dict[ObjectiveTerm, float]) -> None:
    """What a ledger's plan costs grows as the objective does, shrunk or not, for any sum of terms."""
    instance = replace(instance, objective=Objective(weights=FrozenMap(of_terms)))
    plain, outcome = in_order(instance)
    shrunk = Planner(instance)
    shrunk.plan()
    if {job.id for job in outcome.jobs} == {job.id for job in shrunk.outcome().jobs}:
        for planner in (plain, shrunk):
            values = Values(instance, planner.ledger)
            distance = objective_value(instance, planner.outcome().jobs) - values.of_plan()
            first = objective_value(instance, outcome.jobs) - Values(instance, plain.ledger).of_plan()
            assert distance == pytest.approx(first, rel=1e-9, abs=1e-6)
            if not planner.outcome().waiting_room:
                assert distance == pytest.approx(values.offset(), rel=1e-9, abs=1e-6)


@examples(60)
@given(malleable_windows(), st.data())
def test_after_a_cancellation_and_from_an_earlier_plan(instance: Instance, data: st.DataObject) -> None:
    """A plan without one of its jobs verifies; so does one that begins from it, which is worth no more."""
    instance = replace(instance, objective=COMPLETION)
    planner = Planner(instance)
    planner.plan()
    booked = [job.id for job in planner.ledger.jobs if planner.ledger.is_booked(job.id) and "[" not in job.id]
    before = planner.outcome()
    again = replanned(instance, plan_of(instance, "planner", before, budget=0, elapsed=0))
    assert_judged(instance, again)
    if {job.id for job in again.jobs} == {job.id for job in before.jobs}:
        assert objective_value(instance, again.jobs) <= objective_value(instance, before.jobs)
    awaited = {dependency.job for job in instance.jobs for dependency in job.after}
    if free := [name for name in booked if name not in awaited]:
        name = data.draw(st.sampled_from(free))
        planner.cancel(name)
        without = replace(instance, jobs=tuple(job for job in instance.jobs if job.id != name))
        assert_judged(without, planner.outcome())


# --- by hand ------------------------------------------------------------------------------------------------------


def test_a_mate_lets_a_guest_in_and_gets_its_cores_back() -> None:
    """A mate of 100 s on 4 cores gives a guest of 10 s 2 of them: it has lost 5 s of work when it has them back at 10,
    and ends at 105; the guest waits 0 s, not 100.
    """
    found = plan(window([nodes("a", cores=4)], mate("m", 100, on("a", 4)), waiting("g", 10, chunk(cores=2))))
    assert cores_of(found["m"]) == [(0, 10, {"a": 2}), (10, 105, {"a": 4})]
    assert cores_of(found["g"]) == [(0, 10, {"a": 2})]


def test_several_guests_on_one_mate() -> None:
    """Guests of 10 and 20 s take a core each: the mate has lost 10 s when the longer one ends at 20."""
    guests = waiting("g", 10, chunk(cores=1)), waiting("h", 20, chunk(cores=1))
    found = plan(window([nodes("a", cores=4)], mate("m", 100, on("a", 4)), *guests))
    assert cores_of(found["m"]) == [(0, 20, {"a": 2}), (20, 110, {"a": 4})]
    assert (found["g"].start, found["h"].start) == (0, 0)


def test_a_guest_on_a_mates_node_and_a_free_one() -> None:
    """A guest of two nodes takes 2 cores of the mate's and 2 of a free one."""
    guest = waiting("g", 10, chunk(2, cores=2), place=replace(waiting("x", 1, chunk()).request.place))
    found = plan(window([nodes("a", cores=4), nodes("b", cores=2)], mate("m", 100, on("a", 4)), guest))
    assert cores_of(found["g"]) == [(0, 10, {"a": 2, "b": 2})]
    assert found["m"].end == 105


def test_an_exclusive_job_grows_only_into_nodes_that_are_large_enough() -> None:
    """At full share a core and twice two cores are more than the node that the job has for itself at half share."""
    alone = waiting("w", 2, chunk(cores=1), chunk(2, cores=2), place=EXCLUSIVE, malleability=HALF)
    evolving = (Step(walltime=3, request=Request(chunks=(chunk(cores=1),))),)
    others = [Job(id=name, submit=-3, steps=(*evolving, *evolving), expand_limit=2) for name in ("e", "f")]
    found = plan(replace(window([nodes("a b", cores=4)], alone, *others), objective=WAIT))
    assert cores_of(found["w"]) == [(0, 4, {"b": 2})]
    assert {held.node for held in found["w"].segments[0].allocation} == {"b"}


@pytest.mark.parametrize("held", [{"gpus": 2}, {"mem": 8}])
def test_a_mate_gives_up_nothing_but_cores(held: dict[str, Any]) -> None:
    """GPUs and memory stay with the mate: a job that needs them waits, and no job is shrunk in vain."""
    guest = waiting("g", 10, Chunk(count=1, resources=Amounts({"cores": 2} | dict.fromkeys(held, 1))))
    found = plan(window([nodes("a", cores=4, gpus=2, mem=8)], mate("m", 100, on("a", 4, **held)), guest))
    assert found["g"].start == 100
    assert cores_of(found["m"]) == [(0, 100, {"a": 4})]


def test_a_mate_for_whose_end_others_wait_is_not_shrunk() -> None:
    """Its end is a promise. One for whose start they wait may be: for 11 s here, of which it loses 5.5."""
    guest, small = waiting("g", 10, chunk(cores=2)), waiting("s", 1, chunk(cores=1))
    ends = {}
    for kind in (DependencyType.AFTEROK, DependencyType.AFTER):
        follower = replace(small, after=(Dependency(job="m", type=kind),))
        ends[kind] = plan(window([nodes("a", cores=4)], mate("m", 100, on("a", 4)), guest, follower))["m"].end
    assert ends == {DependencyType.AFTEROK: 100, DependencyType.AFTER: 106}


def test_a_mate_that_costs_more_than_its_guest_gains_is_not_shrunk() -> None:
    """To wait 4 s costs less than 5 s of delay."""
    found = plan(
        window([nodes("a", cores=4)], mate("m", 10, on("a", 4), start=-6), waiting("g", 10, chunk(cores=2)),
               objective=COMPLETION)
    )  # fmt: skip
    assert (found["m"].end, found["g"].start) == (4, 4)


def test_a_mate_gives_cores_until_its_deadline_asks_for_them() -> None:
    """With 100 s of work and a deadline at 110 it may have half its cores for 20 s: a guest of 15 s comes, one of 30 s
    does not; and one that is late in the instance may not get later.
    """
    for guest, deadline, start in ((15, 110, 0), (30, 110, 100), (15, 50, 100)):
        runs = mate("m", 100, on("a", 4), deadline=deadline)
        found = plan(window([nodes("a", cores=4)], runs, waiting("g", guest, chunk(cores=2)), objective=WAIT))
        assert found["g"].start == start
        assert found["m"].end == (100 + guest // 2 + guest % 2 if start == 0 else 100)


def test_a_mate_that_runs_shrunk_has_its_cores_back_as_soon_as_they_are_free() -> None:
    """Shrunk since 0 for a job that ends at 30, it has 90 s of 100 left at 20: 5 s done at 30, the rest by 115."""
    segments = (
        Segment(start=0, end=20, allocation=(on("a", 2),)),
        Segment(start=20, end=200, allocation=(on("a", 2),)),
    )
    runs = mate("m", 100, on("a", 4), running=Running(start=0, segments=segments))
    other = running("o", 30, a={"cores": 2})
    found = plan(window([nodes("a", cores=4)], runs, other, now=20))
    assert [(one[0], one[1]) for one in cores_of(found["m"])][-1] == (30, 115)
    assert cores_of(found["m"])[-1][2] == {"a": 4}


@pytest.mark.parametrize(("model", "end"), [(RuntimeModel.IDEAL, 44), (RuntimeModel.WORST, 45)])
def test_numbers_of_the_runtime_models(model: RuntimeModel, end: int) -> None:
    """Two chunks of 5 cores and one of 6, halved to 2, 2 and 3, have 7 of 16 cores, and of one chunk 2 of 5. In 24 s
    they do 10.5 s of work, or 9.6: of 30 s 20 are left, or 21, each begun second counted (SD-3).
    """
    chunks = (chunk(2, cores=5), chunk(cores=6))
    held = (on("a", 10, 2), on("b", 6, 1, 1))
    runs = Job(
        id="m",
        submit=0,
        steps=(Step(walltime=30, request=Request(chunks=chunks)),),
        malleability=Malleability(shares=(0.5,), model=model),
        running=Running(start=0, segments=(Segment(start=0, end=30, allocation=held),)),
    )
    guest = waiting("g", 24, chunk(2, cores=3), chunk(cores=3))
    found = plan(window([nodes("a", cores=10), nodes("b", cores=6)], runs, guest, objective=WAIT))
    assert cores_of(found["m"]) == [(0, 24, {"a": 4, "b": 3}), (24, end, {"a": 10, "b": 6})]
    assert found["g"].start == 0


def test_a_job_that_has_no_place_but_a_small_one_is_planned() -> None:
    """By its deadline at 50 there are never all its cores, and half of them suffice."""
    other = running("o", 100, a={"cores": 2})
    late = waiting("w", 10, chunk(cores=4), malleability=HALF, deadline=50)
    assert cores_of(plan(window([nodes("a", cores=4)], other, late))["w"]) == [(0, 20, {"a": 2})]


def test_a_shrunk_job_pays_for_its_stretch() -> None:
    """Having waited 90 s, a job of 10 s has a slowdown of 10 on all of its cores, and of 11 on half of them: it is not
    shrunk, though the wait is a smaller part of 20 s. It is beside a job that leaves half of the cores for 30 s more.
    """
    slowdown = Objective(weights=FrozenMap({ObjectiveTerm.SLOWDOWN: 1.0}))
    job = replace(waiting("w", 10, chunk(cores=4), malleability=HALF), submit=-90)
    alone = window([nodes("a", cores=4)], job, objective=slowdown)
    assert objective_value(alone, PlannerEngine().plan(alone, None).jobs) == 10
    assert cores_of(plan(alone)["w"]) == [(0, 10, {"a": 4})]
    beside = window([nodes("a", cores=4)], running("o", 30, a={"cores": 2}), job, objective=slowdown)
    assert objective_value(beside, PlannerEngine().plan(beside, None).jobs) == 11
    assert cores_of(plan(beside)["w"]) == [(0, 20, {"a": 2})]


def test_what_running_work_holds_beyond_a_rule_is_not_free_when_one_of_them_shrinks() -> None:
    """On 10 cores of which 4 are kept free two jobs have 4 each, 2 beyond the rule: what one gives up is nobody's. On
    12 cores they keep to the rule, and a guest gets it.
    """
    for cores, start in ((10, 100), (12, 0)):
        runs = mate("m", 100, on("a", 4)), running("o", 100, a={"cores": 4})
        node = nodes("a", cores=cores, gpus=1, keep_free=cores_for_gpus(4))
        assert plan(window([node], *runs, waiting("g", 10, chunk(cores=2))))["g"].start == start


def test_nothing_is_free_of_what_is_kept_free_as_a_whole() -> None:
    """Where all cores are kept free, a job that runs there shrunk has no more of them later: there are none."""
    held = on("a", 2)
    segments = Segment(start=0, end=20, allocation=(held,)), Segment(start=20, end=200, allocation=(held,))
    runs = mate("m", 100, on("a", 4), running=Running(start=0, segments=segments))
    node = nodes("a", cores=4, gpus=1, keep_free=cores_for_gpus(4))
    assert cores_of(plan(window([node], runs, now=20))["m"])[-1][2] == {"a": 2}


def test_who_leaves_gives_the_mate_its_cores_back() -> None:
    """When its guest is cancelled the mate goes on as ever; in a plan made anew it keeps its guest."""
    instance = window([nodes("a", cores=4)], mate("m", 100, on("a", 4)), waiting("g", 10, chunk(cores=2)))
    planner = Planner(instance)
    planner.plan()
    before = planner.outcome()
    assert replanned(instance, plan_of(instance, "planner", before, budget=0, elapsed=0)).jobs == before.jobs
    planner.cancel("g")
    assert [job.end for job in planner.outcome().jobs] == [100]


def test_many_jobs_are_not_planned_anew_for_each_that_may_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many jobs no further try does so: the planner's time grows no faster than the number of jobs."""
    jobs = [waiting(f"j{number:02}", 10 + number, chunk(cores=4), malleability=HALF) for number in range(12)]
    counts = []
    for most in (10, 1000):
        monkeypatch.setattr(shrink, "_MOST_PLACED", most)
        with mock.patch.object(shrink, "place_cheaply", wraps=shrink.place_cheaply) as place:
            assert len(plan(window([nodes("a b", cores=4)], *jobs))) == 12
        counts.append(place.call_count)
    assert counts[0] <= 10 + 4 * 12 < counts[1]
