"""Engines as on-line schedulers: what they start, in which order, and what they plan at the most."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.domain import (
    FrozenMap,
    Instance,
    Job,
    MaxWait,
    Plan,
    Preemptible,
    Queue,
    StopKind,
    WaitingJob,
    WaitingReason,
)
from cpsched.engine import Board, Outcome, Progress
from cpsched.errors import EngineError, UnsupportedError
from cpsched.formats import instance_to_document, plan_to_document, read_instance
from cpsched.lab.policies import make_engine_scheduler
from cpsched.lab.sim import Interrupted, Prediction, simulate
from cpsched.planner import PlannerEngine
from cpsched.portfolio import ENGINES, Team, WindowPlanner, solve, window_planner
from cpsched.rules import PolicyEngine
from cpsched.search import Search
from cpsched.verify import verify
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_malleable import malleable_windows
from tests.oracle.random_workloads import workloads
from tests.policies.test_smith import adversarial, longest_waits
from tests.portfolio.fake_solver import Solver
from tests.sim.played import played
from tests.sizes import examples

REAL = Path(__file__).parents[3] / "shared" / "data" / "eurora" / "workload-1000-7200.json.gz"

CASES = Path(__file__).parents[1] / "cases"


def core(job_id: str, submit: int, walltime: int, **options: Any) -> Job:
    """Return a job of one core that runs for its walltime."""
    return waiting(job_id, walltime, chunk(cores=1), submit=submit, runtime=walltime, **options)


def starts(instance: Instance, name: str, **parameters: Any) -> dict[str, int]:
    """Play a workload by an engine; the judge finds no fault with what happened. Return who started when."""
    record = simulate(instance, make_engine_scheduler(name, **parameters)).record()
    violations = verify(instance_to_document(instance), plan_to_document(record))
    assert not violations, "\n".join(map(str, violations))
    return {job.id: job.start for job in record.jobs}


def one_core(*jobs: Job, **options: Any) -> Instance:
    """Return a workload for a machine of one core."""
    return window([nodes("n", cores=1)], *jobs, **options)


def test_the_planner_keeps_its_word() -> None:
    """Planned afresh, d would come before b and c, for it is more important; but these have their starts.

    a 0-10, b 10-40, c 40-50; d, which comes at 5, finds 50.
    """
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 10), core("d", 5, 5, priority=9)
    assert starts(one_core(*jobs), "planner") == {"a": 0, "b": 10, "c": 40, "d": 50}


def test_solvers_begin_from_the_last_plan() -> None:
    """Without a budget nothing is improved, and no job loses its place: it is as if the planner had planned."""
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 10), core("d", 5, 5, priority=9)
    for name in ("search", "portfolio"):
        assert starts(one_core(*jobs), name, budget=0) == {"a": 0, "b": 10, "c": 40, "d": 50}


def test_solvers_make_more_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sum of waits the short ones come first: d 10-15, c 15-30, b 30-60. Steps end the search, and no clock."""
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=20),),))
    monkeypatch.setattr(window_planner, "team_of", lambda *_, **__: team)
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 15), core("d", 5, 5)
    assert starts(one_core(*jobs), "search", budget=600) == {"a": 0, "d": 10, "c": 15, "b": 30}


def test_an_interruption_in_a_window_ends_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a solver works is meant for all windows; what happened until then is told."""

    def interrupt(board: Board) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        threading.Event().wait()

    team = Team(first=PlannerEngine(), lanes=((Solver(interrupt),),))
    monkeypatch.setattr(window_planner, "team_of", lambda *_, **__: team)
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 10), core("d", 5, 5)
    with pytest.raises(Interrupted) as interrupted:
        simulate(one_core(*jobs), make_engine_scheduler("search", budget=600))
    assert not all(interrupted.value.history.runs.over)


def test_solvers_begin_from_a_better_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last plan is worth less than a list by Smith's rule, they begin from the list: d 10-15, c 15-30, b.

    With windows that the rule cannot plan they begin from the last plan.
    """
    monkeypatch.setattr(
        window_planner, "team_of", lambda *_, **__: Team(first=PlannerEngine(), lanes=((Solver(lambda _: None),),))
    )
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 15), core("d", 5, 5)
    assert starts(one_core(*jobs), "search", budget=1) == {"a": 0, "d": 10, "c": 15, "b": 30}
    monkeypatch.setattr(PolicyEngine, "unsupported", lambda *_: ("jobs[0]: anything",))
    assert starts(one_core(*jobs), "search", budget=1) == {"a": 0, "b": 10, "c": 40, "d": 55}


@pytest.mark.parametrize("is_usual", [True, False])
def test_solvers_begin_from_the_plan_of_more_jobs(is_usual: bool) -> None:
    """Of a plan with a job and one without it the first is the better one, though its value is larger."""
    instance = one_core(core("a", 0, 10))

    class Idle(PlannerEngine):
        """Plans nothing."""

        def plan(self, instance: Instance, progress: Progress | None) -> Outcome:
            """Put all jobs into the waiting room."""
            room = tuple(
                WaitingJob(id=job.id, reason=WaitingReason.NOT_MAPPED, detail="is left out") for job in instance.jobs
            )
            return Outcome(jobs=(), waiting_room=room)

    engines = (PlannerEngine(), Idle()) if is_usual else (Idle(), PlannerEngine())
    assert [job.id for job in window_planner._Better(*engines).plan(instance, None).jobs] == ["a"]


def test_rules_for_windows_play_too() -> None:
    """Smith's rule plans the window anew in each cycle; without a solver a budget means nothing."""
    jobs = core("a", 0, 10), core("b", 1, 30), core("c", 2, 15), core("d", 5, 5)
    assert starts(one_core(*jobs), "wspt_list", budget=100.0) == {"a": 0, "d": 10, "c": 15, "b": 30}


def stream(number: int) -> Instance:
    """Return a workload of two cores: short jobs of one core, one after the other, and one of both, which is worth
    less.
    """
    jobs = (waiting(f"s{place}", 4, chunk(cores=1), submit=2 * place, runtime=4) for place in range(number))
    big = waiting("big", 20, chunk(cores=2), submit=3, runtime=20)
    return window([nodes("n", cores=2)], *jobs, big)


def test_a_wide_job_starts_beside_a_stream_of_narrow_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is due when it has waited for a multiple of the longest wait under EASY, or of what the machine needs for the
    other jobs of the queue, however long the stream is; also where one job is planned at a time. If none is due it
    waits for the end of the stream.
    """
    assert starts(stream(14), "wspt_list")["big"] == starts(stream(18), "wspt_list")["big"] == 10
    assert starts(stream(14), "wspt_list", window=1)["big"] == 10
    monkeypatch.setattr(window_planner, "_DUE_AFTER", 1000)
    assert starts(stream(14), "wspt_list")["big"] >= 28


@pytest.mark.slow
def test_a_search_starves_no_wide_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that are worth more, but start the job later, are none; steps end the search, and no clock."""
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=5),),))
    monkeypatch.setattr(window_planner, "team_of", lambda *_, **__: team)
    assert starts(stream(14), "search", budget=600)["big"] == 10
    monkeypatch.setattr(window_planner, "_DUE_AFTER", 1000)
    assert starts(stream(14), "search", budget=600)["big"] >= 28


@pytest.mark.slow
def test_nobody_starves_in_rolling_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In adversarial streams nobody waits for more than 2.5 times what EASY makes the unluckiest wait, and until the
    machine is empty; where nobody is ever due one does.
    """

    def is_kept(seed: int) -> bool:
        instance = adversarial(seed, 150)
        most = 2.5 * longest_waits(instance, "easy")[1] + max(one.walltime for one in instance.jobs)
        return longest_waits(instance, "wspt_list")[1] <= most

    assert is_kept(0)
    assert is_kept(1)
    monkeypatch.setattr(window_planner, "_DUE_AFTER", 1000)
    assert not is_kept(0)


def test_jobs_that_are_due_come_first_in_their_turn() -> None:
    """What a job needs itself is no reason to wait; and in the window deadlines are those of all that are due, also of
    jobs that may be stopped.
    """
    engine = WindowPlanner(name="wspt_list", budget=0.0)
    jobs = replace(core("a", 0, 100), preemptible=Preemptible(by=StopKind.REQUEUE)), core("b", 1, 9), core("c", 2, 1)
    seen = one_core(*jobs)
    assert engine.promised(seen) is seen
    for now, due in ((12, {}), (13, {"a": 100}), (139, {"a": 100, "b": 109}), (149, {"a": 100, "b": 109, "c": 110})):
        later = replace(seen, now=now)
        found = {job.id: job.deadline - now for job in engine.promised(later).jobs if job.deadline is not None}
        assert found == due
        assert [job.id for job in engine.plan(later, None).jobs if job.start == now] == (["a"] if due else ["c"])
    strict = replace(seen, now=300, has_strict_priorities=True)
    assert engine.promised(strict) is strict


def test_no_more_jobs_are_planned_than_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of b, c and d are planned: those with the least work, c and d; but b as soon as it is overdue, from 7 on
    (BRIDI-18).

    The rule that plans them lets d and c go first all the same.
    """
    seen = []

    def solved(instance: Instance, **_: Any) -> Plan:
        seen.append((instance.now, [job.id for job in instance.jobs if job.running is None]))
        return solve(instance, engine="wspt_list", budget=0)

    monkeypatch.setattr(window_planner, "solve", solved)
    late = Queue(expected_wait=1800, max_wait=MaxWait(seconds=5))
    jobs = core("a", 0, 10), core("b", 1, 30, queue="late"), core("c", 2, 15), core("d", 5, 5)
    instance = one_core(*jobs, queues=FrozenMap({"late": late}))
    assert starts(instance, "wspt_list", window=2) == {"a": 0, "d": 10, "c": 15, "b": 30}
    assert seen == [
        (0, ["a"]),
        (1, ["b"]),
        (2, ["b", "c"]),
        (5, ["c", "d"]),
        (10, ["b", "d"]),
        (15, ["b", "c"]),
        (30, ["b"]),
    ]


@examples(40)
@given(
    workloads(), st.sampled_from(["planner", "wspt_list", "search"]), st.sampled_from([0, 60]), st.none() | st.just(2)
)
def test_the_judge_finds_no_fault(instance: Instance, name: str, min_interval: int, window: int | None) -> None:
    """Whatever comes, what happens keeps all rules; and it is the same a second time, where no clock decides."""
    parameters = {"budget": 0, "min_interval": min_interval, "window": window}
    assert starts(instance, name, **parameters) == starts(instance, name, **parameters)


#: What the planner makes of the cases: the jobs shrink for others, and expand again.
SHRUNK = {"20": {"h": (0, 105), "g": (5, 15)}, "21": {"h": (0, 110), "g": (5, 25)}}


@pytest.mark.parametrize("name", ["planner", "portfolio", "search", "cp", "wspt_list"])
@pytest.mark.parametrize("case", ["20", "21"])
def test_malleable_jobs_run(case: str, name: str) -> None:
    """A workload with malleable jobs is played by every engine: they shrink where the engine finds that better."""
    instance = read_instance(CASES / f"simulate-malleable-{case}.json")
    record = played(instance, make_engine_scheduler(name, budget=0.3)).record()
    found = {job.id: (job.start, job.end) for job in record.jobs}
    rigid = {"h": (0, 100), "g": (100, 110)}
    assert found == SHRUNK[case] if name == "planner" else found in (SHRUNK[case], rigid)


@examples(60, deadline=None)
@given(
    malleable_windows(),
    st.data(),
    st.sampled_from(["planner", "wspt_list", "search"]),
    st.sampled_from([0, 10]),
    st.sampled_from([None, *Prediction]),
)
def test_malleable_workloads_keep_the_rules(
    window_: Instance, data: st.DataObject, name: str, min_interval: int, predict: Prediction | None
) -> None:
    """Jobs that begin on shares, shrink and expand keep all rules, those of several kinds of chunks too."""
    jobs = [
        replace(
            job,
            runtime=data.draw(st.integers(1, job.walltime)),
            submit=window_.now + data.draw(st.integers(-5, 20)) if job.running is None else job.running.start,
        )
        for job in window_.jobs
    ]
    scheduler = make_engine_scheduler(name, budget=0, min_interval=min_interval)
    try:
        played(replace(window_, jobs=tuple(jobs)), scheduler, predicts=predict)
    except UnsupportedError:
        assume(False)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": -1}, "budget: Expected a number of seconds from 0 to 1000000, got -1"),
        ({"min_interval": -1}, "min_interval of 0 or more seconds, got -1"),
        ({"window": 0}, "window of 1 job or more, got 0"),
        ({"workers": 0}, "workers: Expected an integer from 1 to 256, got 0"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, int], message: str) -> None:
    """A figure that makes no sense is refused, with what was expected."""
    with pytest.raises(ValueError, match=message):
        make_engine_scheduler("search", **parameters)


def test_names_are_checked() -> None:
    """Every engine can be a scheduler; nothing else can."""
    assert [make_engine_scheduler(name).name for name in ENGINES] == list(ENGINES)
    with pytest.raises(EngineError, match="got 'oracle'"):
        make_engine_scheduler("oracle")


def test_a_real_workload() -> None:
    """The first 60 jobs of a day of Eurora, by the planner: everybody runs, and the judge finds no fault."""
    if not REAL.exists():
        pytest.skip(f"the workloads of Eurora are not here: {REAL}")
    whole = read_instance(REAL)
    instance = replace(whole, jobs=whole.jobs[:60])
    assert set(starts(instance, "planner")) == {job.id for job in instance.jobs}
