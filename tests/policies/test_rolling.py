"""Rolling windows: when they are planned, what planners see, and that what is planned happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Chunk,
    FrozenMap,
    Instance,
    Job,
    Malleability,
    MaxWait,
    NodeState,
    Objective,
    ObjectiveTerm,
    Outage,
    Place,
    Plan,
    PlannedJob,
    Queue,
)
from cpsched.engine import Outcome
from cpsched.errors import EngineError
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.lab.policies import Rolling
from cpsched.lab.policies.engine_scheduler import Cycles
from cpsched.lab.sim import BackfillRule, Prediction, QueueRule, simulate
from cpsched.planner import PlannerEngine, replanned
from cpsched.portfolio import plan_of
from cpsched.verify import verify
from tests.booking.small_windows import EXCLUSIVE, FREE, chunk, nodes, running, waiting, window
from tests.oracle.random_workloads import workloads
from tests.sim.played import played
from tests.sizes import examples

CASES = Path(__file__).parents[1] / "cases"


@dataclass
class Told(Cycles):
    """Plans as the planner does, and remembers what it was asked."""

    name: str = "told"
    #: What becomes of a plan before it is answered.
    change: Callable[[Outcome], Outcome] = lambda outcome: outcome
    cycles: list[Instance] = field(default_factory=list)
    followed: list[Instance] = field(default_factory=list)
    planned: Plan | None = None

    def prepare(self) -> None:
        """Need nothing that is not there."""

    def begin(self) -> None:
        """Forget the plan."""
        self.planned = None

    def plan(self, window: Instance) -> Plan:
        """Plan the window anew."""
        self.cycles.append(window)
        return self._answer(window, PlannerEngine().plan(window, None))

    def follow(self, window: Instance) -> Plan:
        """Keep the start and nodes of all jobs."""
        self.followed.append(window)
        assert self.planned is not None
        return self._answer(window, replanned(window, self.planned))

    def _answer(self, window: Instance, outcome: Outcome) -> Plan:
        self.planned = plan_of(window, self.name, self.change(outcome), budget=0, elapsed=0)
        return self.planned


def core(job_id: str, submit: int, walltime: int, runtime: int, cores: int = 1, **options: Any) -> Job:
    """Return a job of some cores of one node."""
    return waiting(job_id, walltime, chunk(cores=cores), submit=submit, runtime=runtime, **options)


def starts(
    instance: Instance, told: Told, *, min_interval: int = 0, predicts: Prediction | None = None
) -> dict[str, int]:
    """Play a workload; return who started when."""
    record = played(instance, Rolling(told, min_interval=min_interval), predicts=predicts).record()
    return {job.id: job.start for job in record.jobs}


def moments(windows: list[Instance]) -> list[int]:
    """Return the seconds of some windows."""
    return [one.now for one in windows]


def test_a_cycle_comes_whenever_jobs_have_come_or_gone() -> None:
    """Two cores: a (0-30, gone at 20) and b (0-20) are planned at once; c waits for a's core, which comes early."""
    jobs = core("a", 0, 30, 20), core("b", 5, 40, 40), core("c", 8, 10, 10)
    told = Told()
    assert starts(window([nodes("n", cores=2)], *jobs), told) == {"a": 0, "b": 5, "c": 20}
    assert (moments(told.cycles), told.followed) == ([0, 5, 8, 20], [])


def test_between_two_cycles_the_plan_is_followed() -> None:
    """At most one cycle in 15 s: who comes at 5 is planned beside the others at once, and a cycle is made up for."""
    jobs = core("a", 0, 30, 20), core("b", 5, 40, 40), core("c", 8, 10, 10)
    told = Told()
    assert starts(window([nodes("n", cores=2)], *jobs), told, min_interval=15) == {"a": 0, "b": 5, "c": 20}
    assert moments(told.cycles) == [0, 15]
    assert moments(told.followed) == [5, 8, 20]


def test_a_planned_start_is_no_reason_to_plan_anew() -> None:
    """All that happens at 7 is that the start comes which was planned for then (BRIDI-13)."""

    def later(outcome: Outcome) -> Outcome:
        moved = [replace(job, start=max(job.start, 7), end=max(job.start, 7) + 10) for job in outcome.jobs]
        return replace(outcome, jobs=tuple(moved))

    told = Told(change=later)
    assert starts(window([nodes("n", cores=1)], core("a", 0, 10, 10)), told) == {"a": 7}
    assert (moments(told.cycles), moments(told.followed)) == ([0], [7])


def test_planners_see_no_runtimes() -> None:
    """The runtime of what runs and of what waits is hidden, its shares are not; waiting counts from the submission."""
    half = Malleability(shares=(0.5,))
    jobs = [core(name, 3, 10, 4, malleability=half) for name in "ab"]
    told = Told()
    starts(window([nodes("n", cores=1)], *jobs), told)
    seen = [job for one in told.cycles for job in one.jobs]
    assert [(job.id, job.running is not None) for job in seen] == [("a", False), ("b", False), ("b", False)]
    assert {(job.runtime, job.submit, job.walltime, job.malleability) for job in seen} == {(None, 3, 10, half)}


def test_running_jobs_shrink_and_expand_as_planned() -> None:
    """Job h gives half of its cores to g, which comes at 5, and has them back at 15; its chunks are always stated."""
    instance = read_instance(CASES / "simulate-malleable-20.json")
    told = Told()
    record = played(instance, Rolling(told)).record()
    segments = {job.id: [(one.start, one.end, one.allocation) for one in job.segments] for job in record.jobs}
    cores = {name: [(a, b, on[0].resources["cores"]) for a, b, on in held] for name, held in segments.items()}
    assert cores == {"h": [(0, 5, 4), (5, 15, 2), (15, 105, 4)], "g": [(5, 15, 2)]}
    seen = [job.running for one in told.cycles + told.followed for job in one.jobs if job.running is not None]
    assert {(held.chunk, held.count) for one in seen for part in one.segments for held in part.allocation} == {(0, 1)}


def test_a_plan_of_cores_that_a_job_cannot_have_is_an_error() -> None:
    """Three of four cores are no share of h."""

    def three_cores(outcome: Outcome) -> Outcome:
        return replace(outcome, jobs=tuple(map(with_three, outcome.jobs)))

    def with_three(planned: PlannedJob) -> PlannedJob:
        segments = [
            replace(one, allocation=tuple(replace(held, resources=Amounts({"cores": 3})) for held in one.allocation))
            for one in planned.segments
        ]
        return replace(planned, segments=tuple(segments))

    instance = read_instance(CASES / "simulate-malleable-20.json")
    with pytest.raises(EngineError, match="where it may not run"):
        played(replace(instance, jobs=instance.jobs[:1]), Rolling(Told(change=three_cores)))
    with pytest.raises(EngineError, match="no such shares"):
        played(instance, Rolling(Told(change=lambda found: three_cores(found) if len(found.jobs) > 1 else found)))


@pytest.mark.parametrize(
    ("small", "place", "asked"),
    [(2, FREE, [chunk(cores=4)]), (4, EXCLUSIVE, [chunk(cores=1), chunk(2, cores=2)])],
    ids=["one chunk", "exclusive, several kinds"],
)
def test_a_job_starts_where_it_fits_on_a_share_only(small: int, place: Place, asked: list[Chunk]) -> None:
    """At full share the job needs more than the node that is left; the planner starts it there on half of its cores."""
    job = waiting("w", 10, *asked, place=place, malleability=Malleability(shares=(0.5,)))
    large = waiting("x", 100, chunk(cores=4))
    completion = Objective(weights=FrozenMap({ObjectiveTerm.COMPLETION: 1.0}))
    instance = window([nodes("b", cores=small), nodes("a", cores=4)], large, job, objective=completion)
    record = played(instance, Rolling(Told())).record()
    taken = {one.id: (one.start, {held.node for held in one.segments[0].allocation}) for one in record.jobs}
    assert sorted(taken) == ["w", "x"]
    assert all(start == 0 and len(on) == 1 for start, on in taken.values())


def test_nodes_that_are_out_are_down_until_they_return() -> None:
    """The second node is away in 10-50: b, which finds no room on the first, waits until it returns."""
    jobs = core("a", 0, 100, 100), core("b", 20, 30, 30)
    instance = window([nodes("n m", cores=1)], *jobs, outages=(Outage(nodes=("m",), start=10, end=50),))
    told = Told()
    assert starts(instance, told) == {"a": 0, "b": 50}
    states = [{one.names: one.state for one in cycle.cluster.classes} for cycle in told.cycles]
    assert moments(told.cycles) == [0, 20, 50]
    assert states[1] == {("n",): NodeState.UP, ("m",): NodeState.DOWN}
    assert states[0] == states[2] == {("n", "m"): NodeState.UP}


def test_predicted_runtimes_are_planned_with() -> None:
    """The user's jobs took 5 s of 100 twice: the third is planned with 5 s, as long as it does not run longer."""
    jobs = [core(name, submit, 100, 5, user="ann") for name, submit in (("a", 0), ("b", 0), ("c", 6), ("d", 6))]
    told = Told()
    starts(window([nodes("n", cores=1)], *jobs), told, predicts=Prediction.ALL)
    seen = {(one.now, job.id): job.walltime for one in told.cycles for job in one.jobs if job.running is None}
    assert seen[(0, "b")] == 100
    assert seen[(10, "d")] == 5


def test_a_plan_that_cannot_be_is_no_decision() -> None:
    """A planner that plans a job on nodes where it may not run is refused."""

    def elsewhere(outcome: Outcome) -> Outcome:
        (job,) = outcome.jobs
        (segment,) = job.segments
        (held,) = segment.allocation
        segment = replace(segment, allocation=(replace(held, node="nowhere"),))
        return replace(outcome, jobs=(replace(job, segments=(segment,)),))

    instance = window([nodes("n", cores=1)], core("a", 0, 10, 10))
    with pytest.raises(EngineError, match="told plans job a at 0 on nodes where it may not run"):
        played(instance, Rolling(Told(change=elsewhere)))


def test_who_is_too_late_for_a_hard_max_wait_is_planned_at_once_all_the_same() -> None:
    """The job b can start at 100 only, long after its 50 s: once that is seen it is planned for then, before c and
    d, once for all: who follows the plan finds it in the same queue.
    """
    queues = FrozenMap({"short": Queue(expected_wait=10, max_wait=MaxWait(seconds=50, is_hard=True))})
    jobs = [core(name, 0, 10, 10, queue=queue) for name, queue in (("b", "short"), ("c", None))]
    instance = window(
        [nodes("n", cores=1)], running("a", 100, n={"cores": 1}), *jobs, core("d", 10, 10, 10), queues=queues
    )
    told = Told()
    history = simulate(instance, Rolling(told, min_interval=200))
    assert {job.id: job.start for job in history.record().jobs} == {"a": 0, "b": 100, "c": 110, "d": 120}
    assert moments(told.cycles) == [0, 0]
    queued = [next(job.queue for job in one.jobs if job.id == "b") for one in (*told.cycles, *told.followed[:1])]
    assert queued == ["short", "late 0", "late 0"]
    violations = verify(instance_to_document(instance), plan_to_document(history.record()))
    assert [(violation.rule, violation.subject) for violation in violations] == [("max_wait", "b")]


def test_a_hard_max_wait_is_kept_where_it_can() -> None:
    """A job that has to start within 50 s precedes jobs that arrived before it."""
    queues = FrozenMap({"short": Queue(expected_wait=10, max_wait=MaxWait(seconds=50, is_hard=True))})
    jobs = core("a", 0, 40, 40), core("b", 0, 40, 40), core("c", 1, 40, 40, queue="short")
    instance = window([nodes("n", cores=1)], *jobs, queues=queues)
    assert starts(instance, Told()) == {"a": 0, "c": 40, "b": 80}


def test_the_interval_is_checked() -> None:
    """An interval is 0 or more."""
    with pytest.raises(ValueError, match="min_interval of 0 or more seconds, got -1"):
        Rolling(Told(), min_interval=-1)


@examples(60)
@given(workloads(), st.sampled_from([0, 0, 7, 300]), st.sampled_from([None, *Prediction]))
def test_everybody_has_his_turn(instance: Instance, min_interval: int, predicts: Prediction | None) -> None:
    """The jobs that end, are killed or never start are the same as under a rule that starts every job that fits; the
    judge finds no fault with what happened.
    """
    rule = QueueRule(name="first-fit", backfill=BackfillRule.ANYBODY)
    expected = played(instance, rule, predicts=predicts).runs.ending.tolist()
    rolling = Rolling(Told(), min_interval=min_interval)
    assert played(instance, rolling, predicts=predicts).runs.ending.tolist() == expected
