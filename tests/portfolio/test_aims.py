"""Aims in order: each is as small as the ones before it allow, within their tolerances."""

from __future__ import annotations

import json
import signal
import threading
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from cpsched.cli import main
from cpsched.domain import AimScore, FrozenMap, Instance, Objective, ObjectiveTerm, Plan, Queue
from cpsched.engine import Board, Budget, Outcome
from cpsched.formats import instance_to_document, parse_instance, read_plan, write_instance
from cpsched.lab.policies import make_engine_scheduler
from cpsched.lab.sim import simulate
from cpsched.metrics import objective_value, of_aim
from cpsched.planner import PlannerEngine
from cpsched.portfolio import Team, aims, solve, verify_plan
from cpsched.portfolio.scoring import bounded, plan_of, scored
from cpsched.search import Search
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.cp.trying_everything import best_plan
from tests.portfolio.fake_solver import Solver
from tests.sizes import seeds

#: Aims whose values are whole numbers.
WHOLE = (ObjectiveTerm.MAKESPAN, ObjectiveTerm.TARDINESS, ObjectiveTerm.WAIT, ObjectiveTerm.COMPLETION)


@pytest.fixture(autouse=True)
def _no_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the bounds of later aims, which would use up their share of the long budgets here."""
    monkeypatch.setattr(aims, "_PROOF", 0.0)


def in_order(*terms: str | ObjectiveTerm, tolerance: float = 0.0) -> Objective:
    """Return aims of one term each, of which the first has a tolerance."""
    found: Objective | None = None
    for place, term in reversed(list(enumerate(terms))):
        weights = FrozenMap({ObjectiveTerm(term): 1.0})
        found = Objective(weights=weights, tolerance=0.0 if place else tolerance, then=found)
    assert found is not None
    return found


def solved(instance: Instance, **options: object) -> Plan:
    """Return the plan of a search of a few steps, which the judge has passed."""
    team = Team(first=PlannerEngine(), lanes=((Search(max_steps=300),),))
    plan = solve(instance, engine="search", budget=600, team=team, **options)  # type: ignore[arg-type]  # as given
    assert verify_plan(instance, plan) == ()
    return plan


def values(instance: Instance, plan: Plan) -> list[float]:
    """Return the values of all aims, which are those that the plan states."""
    found = [objective_value(of_aim(instance, aim), plan.jobs) for aim in instance.objective.aims]
    assert [plan.objective.value, *(aim.value for aim in plan.objective.then)] == pytest.approx(found)
    return found


#: On one node in either order both end at 110; to begin with the short one costs a wait of 10 s in place of 100 s.
LONG_FIRST = window(
    [nodes("n1", cores=4)], waiting("long", 100, chunk(cores=4), priority=1), waiting("short", 10, chunk(cores=4))
)


def test_the_second_aim_chooses_among_equals() -> None:
    """Of plans with the same first aim the best in the second one is taken."""
    first = replace(LONG_FIRST, objective=in_order("makespan"))
    assert [job.start for job in solve(first, engine="planner").jobs] == [0, 100]
    both = replace(LONG_FIRST, objective=in_order("makespan", "wait"))
    plan = solved(both)
    assert values(both, plan) == [110, 10]
    assert plan.objective.name == "makespan > wait"
    assert [event.what.partition(":")[0] for event in plan.events] == ["wait"]


def test_the_order_of_the_aims_counts() -> None:
    """What the first aim gains is not given up for the second one; with a tolerance, as far as it says."""
    # 3 cores: wide (3 cores, 10 s) and three narrow ones of 9, 9 and 9 s; waits are least with the narrow ones first
    jobs = [waiting(f"n{n}", 9, chunk(cores=1)) for n in range(3)]
    instance = window([nodes("n1", cores=3)], waiting("wide", 10, chunk(cores=3), weight=4), *jobs)
    weighed = replace(instance, objective=in_order("wait", "tardiness"))
    best = values(weighed, solved(weighed))[0]
    # wide first: 3 * 10 = 30; the narrow ones first: 4 * 9 = 36, and wide is as late
    assert best == 30
    loose = replace(instance, objective=in_order("wait", "completion", tolerance=0.25))
    wait, completion = values(loose, solved(loose))
    assert wait <= 1.25 * 30
    strict = replace(instance, objective=in_order("wait", "completion"))
    assert completion <= values(strict, solved(strict))[1]


def test_a_tolerance_is_used_up() -> None:
    """By slowdown the last job ends at 500 in place of 490: a plan that every high price of the makespan hides."""
    asked = ((9, 10, 1, 1), (188, 50, 2, 1), (50, 200, 2, 1), (24, 30, 2, 1), (85, 10, 2, 1), (113, 200, 1, 2))
    jobs = [
        waiting(f"j{n}", walltime, chunk(count, cores=2), submit=-waited, weight=weight)
        for n, (waited, walltime, count, weight) in enumerate(asked)
    ]
    instance = window([nodes("n1 n2", cores=2)], *jobs)
    alone = replace(instance, objective=in_order("makespan"))
    assert values(alone, solved(alone)) == [490]
    loose = replace(instance, objective=in_order("makespan", "slowdown", tolerance=0.3))
    assert values(loose, solved(loose)) == [500, pytest.approx(27.50666, abs=1e-4)]


@pytest.mark.parametrize("seed", seeds(6))
def test_tiny_windows_against_brute_force(seed: int) -> None:
    """No aim is below what trying all plans finds, no bound is above it, and nearly always it is found (BRIDI-12)."""
    random = Random(seed)
    jobs = [
        waiting(f"j{n}", random.randint(1, 4), chunk(random.randint(1, 2), cores=random.randint(1, 3)), queue="q")
        for n in range(4)
    ]
    instance = replace(window([nodes("n1 n2", cores=3)], *jobs), queues=FrozenMap({"q": Queue(expected_wait=2)}))
    first, second = random.sample(WHOLE, 2)
    ordered = replace(instance, objective=in_order(first, second))
    plan = solved(ordered)
    found = values(ordered, plan)
    # whole numbers: the first aim counts more than any second one
    large = 1 + sum(job.walltime for job in ordered.elements()) * 100 * len(ordered.elements())
    weights = FrozenMap({first: float(large), second: 1.0})
    best = best_plan(replace(ordered, objective=Objective(weights=weights)))
    optimum = [objective_value(of_aim(ordered, aim), best) for aim in ordered.objective.aims]
    assert found >= optimum
    assert plan.objective.bound is None or plan.objective.bound <= optimum[0] + 1e-9
    if found[0] == optimum[0]:
        (later,) = plan.objective.then
        assert later.bound is None or later.bound <= optimum[1] + 1e-9


def test_an_aim_alone_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later aim is bounded over all plans of the same jobs, whatever the aims before it."""
    monkeypatch.setattr(aims, "_PROOF", 0.15)
    both = replace(LONG_FIRST, objective=in_order("makespan", "wait"))
    plan = solve(both, engine="portfolio", budget=1)
    assert verify_plan(both, plan) == ()
    (later,) = plan.objective.then
    assert later.bound is not None
    assert later.bound <= 10 <= later.value


def test_a_bound_that_says_nothing_is_none() -> None:
    """As of the first aim, a bound that leaves more than 99 % open is left out."""
    aim = AimScore(name="wait", value=100.0)
    assert bounded(aim, 0.5) == aim
    assert bounded(aim, 2.0) == replace(aim, bound=2.0, gap=0.98)


def test_an_interruption_while_a_later_aim_is_bounded_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is a lane as others are: Ctrl-C and the end of its time leave it behind."""

    def interrupt(board: Board) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        threading.Event().wait()

    monkeypatch.setattr(aims, "_PROOF", 0.15)
    monkeypatch.setattr(aims, "QuickBound", lambda share: Solver(interrupt))
    both = replace(LONG_FIRST, objective=in_order("makespan", "wait"))
    plan = solved(both)
    assert values(both, plan) == [110, 100]
    assert plan.engine.stopped == "interrupted"


def test_an_interruption_between_later_aims_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody works on it just then."""

    def interrupted(*arguments: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(aims, "_proven", interrupted)
    three = replace(LONG_FIRST, objective=in_order("makespan", "wait", "completion"))
    plan = solved(three)
    assert values(three, plan)[:2] == [110, 100]
    assert [aim.bound for aim in plan.objective.then] == [None, None]
    assert plan.engine.stopped == "interrupted"


def test_a_bound_of_other_jobs_is_none() -> None:
    """A later aim may plan other jobs, as many: what is proven of the first aim's jobs says nothing of these."""
    a, b, c = (waiting(name, 10, chunk(cores=4)) for name in "abc")
    instance = replace(window([nodes("n1", cores=4)], a, b, c), objective=in_order("wait", "makespan"))
    jobs = PlannerEngine().plan(instance, None).jobs
    board = Board(jobs[:2], by="planner", budget=Budget(60), value_of=lambda _: 10.0, judge=lambda _: [])
    board.prove(9.0, over=board.best.ids, how="by hand", by="test")
    plan = plan_of(instance, "cp", Outcome(jobs=jobs[:2], waiting_room=()), budget=1.0, elapsed=0.0)
    same = scored(instance, plan, board, jobs[:2], stopped="budget", elapsed=0.0)
    other = scored(instance, plan, board, [jobs[0], jobs[2]], stopped="budget", elapsed=0.0)
    assert (same.objective.bound, other.objective.bound) == (9.0, None)


def test_a_plan_that_is_given_is_kept_where_it_is_better_in_a_later_aim() -> None:
    """An earlier plan with the same first value and a better second one is the answer."""
    both = replace(LONG_FIRST, objective=in_order("makespan", "wait"))
    earlier = solved(both)
    plan = solve(both, engine="planner", budget=0, warm=earlier)
    assert values(both, plan) == [110, 10]


def test_strict_priorities_go_before_later_aims() -> None:
    """Where priorities are strict, the later aims are stated and move no job."""
    both = replace(LONG_FIRST, objective=in_order("makespan", "wait"), has_strict_priorities=True)
    assert values(both, solved(both)) == [110, 100]


def test_a_record_states_all_aims() -> None:
    """What a simulation did is judged by all aims."""
    jobs = tuple(replace(job, runtime=job.walltime) for job in LONG_FIRST.jobs)
    both = replace(LONG_FIRST, jobs=jobs, objective=in_order("makespan", "wait"))
    record = simulate(both, make_engine_scheduler("planner", budget=0)).record()
    assert verify_plan(both, record) == ()
    values(both, record)


def test_the_command_line_says_aims(tmp_path: Path) -> None:
    """``solve --objective`` plans by other aims; the window that the plan is of is written beside it."""
    source, changed, output = tmp_path / "window.json", tmp_path / "changed.json", tmp_path / "plan.json"
    write_instance(LONG_FIRST, source)
    words = ["solve", str(source), "--engine", "planner", "--objective", "makespan 5% > wait + 0.5*tardiness"]
    refused = CliRunner().invoke(main, [*words, "-o", str(output)])
    assert refused.exit_code == 2
    assert "--instance-output" in refused.stderr
    CliRunner().invoke(main, [*words, "-o", str(output), "--instance-output", str(changed)], catch_exceptions=False)
    document = json.loads(changed.read_text())
    assert document["objective"] == [{"makespan": 1, "tolerance": 0.05}, {"wait": 1, "tardiness": 0.5}]
    instance = parse_instance(document, source="changed")
    assert verify_plan(instance, read_plan(output)) == ()
    for wrong in ("wait > wait", "wait 5%", "wait + wait", "wait -5% > makespan", "tardines", "x*wait"):
        found = CliRunner().invoke(main, ["solve", str(source), "--engine", "planner", "--objective", wrong])
        assert found.exit_code == 2
    for missing in ("wait >", "> wait", "2* > wait", ""):
        found = CliRunner().invoke(main, ["solve", str(source), "--engine", "planner", "--objective", missing])
        assert found.exit_code == 2
        assert "TERM [N%] > TERM" in found.stderr


def test_documents_keep_aims() -> None:
    """Aims are written as they are read, each in its shortest form."""
    document = instance_to_document(LONG_FIRST)
    for objective in (
        ["tardiness", "wait"],
        [{"weighted_wait": 1, "tolerance": 0.02}, {"makespan": 2}, "waste"],
        [{"weighted_wait": 1, "makespan": 0.1}, "wait"],
    ):
        read = parse_instance(document | {"objective": objective}, source="aims")
        assert instance_to_document(read)["objective"] == objective
    aims = [["tardiness", "wait"], {"makespan": 1, "tolerance": 0}, ["slowdown"]]
    listed = parse_instance(document | {"objective": aims}, source="aims")
    assert [aim.name for aim in listed.objective.aims] == ["1*tardiness + 1*wait", "makespan", "slowdown"]
