"""Jobs that change: the models find the optimum that trying everything finds, and that of the constraint program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest

from cpsched.domain import FrozenMap, Instance, Objective, ObjectiveTerm, PlannedJob
from cpsched.engine import Board, Outcome
from cpsched.metrics import objective_value
from cpsched.mzn import MiniZinc
from tests.cp.fixed_plans import Piece, Stand, planned_jobs
from tests.cp.test_changing_jobs import CASES, HALF, evolving, evolving_tiny, malleable_tiny, queued, running, window
from tests.cp.test_constraints import ONE, TWO, job
from tests.cp.test_model import ALL, optimum_of
from tests.cp.trying_everything import best_plan
from tests.mzn.modelled import needs_minizinc
from tests.search.searched import board_of

WHOLE = {"names": "n1", "resources": {"cores": 4}}


def best_of(instance: Instance, plan: Sequence[PlannedJob], model: str) -> Board:
    """Return the board on which the solver has finished with a model that it began with a plan.

    The verifier has judged all plans; nothing is proven, since the model has not all plans that there are.
    """
    assert MiniZinc().unsupported(instance) == ()
    board = board_of(instance, Outcome(jobs=tuple(plan), waiting_room=()), seconds=30.0)
    MiniZinc().improve(instance, board, seed=0)
    assert [event.what for event in board.events] == [
        f"its best plan is optimal in {model}.mzn, which does not have all plans: there may be better ones"
    ]
    assert board.proof is None
    return board


def times_of(board: Board, name: str) -> tuple[int, ...]:
    """Return when a job starts, and when each of its segments ends."""
    (found,) = (one for one in board.best.jobs if one.id == name)
    return (found.start, *(segment.end for segment in found.segments))


def drawn(draw: Callable[[Random], Instance], count: int) -> list[Instance]:
    """Draw some tiny windows with jobs that change, always the same ones."""
    windows = (draw(Random(seed)) for seed in itertools.count(100))
    changing = (
        one for one in windows if any(entry.is_evolving or entry.malleability is not None for entry in one.jobs)
    )
    return list(itertools.islice(changing, count))


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize(
    ("instance", "model"),
    [
        *((instance, "evolving") for instance in drawn(evolving_tiny, 12)),
        *((instance, "malleable") for instance in drawn(malleable_tiny, 12)),
    ],
)
def test_the_optimum_is_that_of_trying_everything(instance: Instance, model: str) -> None:
    """On random tiny windows the best plan has the value that trying all starts, holds, shares and nodes finds."""
    board = best_of(instance, queued(instance), model)
    assert board.best.value == pytest.approx(objective_value(instance, best_plan(instance, keeps_share=True)), abs=1e-9)


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("name", CASES)
def test_each_rule_is_that_of_the_constraint_program(name: str) -> None:
    """Where one rule is what matters (nodes, places, licences, deadlines, shares, ...), both models agree."""
    instance = CASES[name].instance
    weights = {ObjectiveTerm.COMPLETION: 1.0, ObjectiveTerm.MAKESPAN: 0.5, ObjectiveTerm.WASTE: 0.25}
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    plan = planned_jobs(instance, CASES[name].allowed)
    best, _ = optimum_of(instance, plan, ALL)
    model = "evolving" if any(entry.is_evolving for entry in instance.jobs) else "malleable"
    board = best_of(instance, plan, model)
    assert board.best.value == pytest.approx(objective_value(instance, best), abs=1e-9)


@needs_minizinc
@pytest.mark.parametrize(("limit", "times"), [(1, (12, 14, 16, 19)), (2, (12, 14, 16, 19)), (None, (4, 6, 12, 15))])
def test_worked_example_of_evolving_jobs(limit: int | None, times: tuple[int, ...]) -> None:
    """EVO-10: 3 of 5 nodes are busy until 2 and from 6 to 12; only without a limit the job is held in between, and it
    starts at 4 then, since to start at 2 would waste 12 node seconds rather than 8.
    """
    steps = (2, "4:ncpus=1"), (2, "2:ncpus=1"), (3, "4:ncpus=1")
    busy = [job("b", "3:ncpus=1", walltime=2, start_at=0), job("c", "3:ncpus=1", walltime=6, start_at=6)]
    nodes = [{"names": "n[1-5]", "resources": {"cores": 1}}]
    objective = {"completion": 1.0, "waste": 0.25}
    instance = window(nodes, *busy, evolving("e", *steps, expand_limit=limit), objective=objective)
    at = [Stand(f"n{number}") for number in range(1, 6)]
    late = [Piece(14, at[:4]), Piece(16, at[:2]), Piece(19, at[:4])]
    plan = planned_jobs(instance, {"b": (0, at[:3]), "c": (6, at[:3]), "e": (12, late)})
    board = best_of(instance, plan, "evolving")
    assert times_of(board, "e") == times
    assert board.best.value == 2 + 12 + times[-1] + (0.25 * 8 if limit is None else 0)


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("limit", [1, 2, None])
def test_nobody_blocks_another(limit: int | None) -> None:
    """EVO-18: two jobs that would block each other step by step run one after the other, at 0 and at 10."""
    jobs = [evolving(name, (5, "2:ncpus=1"), (5, "3:ncpus=1"), expand_limit=limit) for name in "ab"]
    instance = window([{"names": "n[1-4]", "resources": {"cores": 1}}], *jobs, objective="completion")
    board = best_of(instance, queued(instance), "evolving")
    assert sorted((one.start, one.end) for one in board.best.jobs) == [(0, 10), (10, 20)]


@needs_minizinc
@pytest.mark.parametrize(("model", "left"), [("ideal", 1800), ("worst", 3600)])
def test_worked_example_of_malleable_jobs(model: str, left: int) -> None:
    """SD-3: two hours with 24 and 48 of 48 cores are 1.5 h of work, or 1 h in the worst case; what is left of 2 h is
    done with all cores, but for the 10 minutes for which a guest has a half of them.
    """
    shrunk = [(-7200, 0, {"n1": 24, "n2": 48}), (0, 2 * left, {"n1": 24, "n2": 24})]
    entry = running("r", "2:ncpus=48", shrunk, walltime=7200, malleable=HALF | {"model": model})
    guest = job("g", "2:ncpus=24,place=scatter", walltime=600)
    instance = window([{"names": "n[1-2]", "resources": {"cores": 48}}], entry, guest, objective="completion")
    board = best_of(instance, queued(instance), "malleable")
    assert times_of(board, "r") == (-7200, 0, 600, left + 300)
    assert times_of(board, "g") == (0, 600)
    assert board.best.value == 600 + 300 - left


@needs_minizinc
def test_who_cannot_lend_goes_on_as_ever() -> None:
    """A running job for whose end another waits keeps its cores, though a third one could start on them."""
    entry = running("r", "ncpus=4", [(-1, 9, {"n1": 4})], walltime=10)
    last = job("z", "ncpus=1", walltime=1, after=[{"job": "r", "type": "afterany", "delay": 2}])
    third = job("a", "ncpus=2", walltime=1)
    instance = window([WHOLE], entry, last, third, objective="wait")
    board = best_of(instance, planned_jobs(instance, {"a": (12, [ONE]), "z": (13, [ONE])}), "malleable")
    assert [times_of(board, name) for name in "raz"] == [(-1, 9), (9, 10), (11, 12)]
    alone = window([WHOLE], entry, third, objective="wait")
    assert best_of(alone, queued(alone), "malleable").best.value == 1  # r lends for a second, and ends a second later


def test_running_allocations_that_no_model_has() -> None:
    """What runs may change over time only in the way in which a plan may change it: on a share, then on all cores."""
    twice = [(-1, 2, {"n1": 4}), (2, 4, {"n1": 2}), (4, 10, {"n1": 4})]
    entry = running("r", "ncpus=4", twice, walltime=10)
    instance = window([WHOLE], entry, job("a", "ncpus=2", walltime=1))
    assert MiniZinc().unsupported(instance) == ("job r: its running allocation changes over time",)
    once = window([WHOLE], running("r", "ncpus=4", [(-1, 4, {"n1": 2}), (4, 12, {"n1": 4})], walltime=10))
    assert MiniZinc().unsupported(once) == ()


@needs_minizinc
def test_a_known_plan_of_another_kind() -> None:
    """A known plan in which a unit leaves that was there first can be better than all that the model has: it stays."""
    nodes = [{"names": name, "resources": {"cores": 1}, "properties": {"at": name}} for name in ("n1", "n2")]
    first = job("f", "ncpus=1:at=n2", walltime=2, start_at=0)
    last = job("l", "ncpus=1:at=n1", walltime=2, start_at=4)
    steps = evolving("a", (2, "ncpus=1"), (2, "2:ncpus=1"), (2, "ncpus=1"))
    instance = window(nodes, first, last, steps, objective="completion")
    pieces = [Piece(2, [ONE]), Piece(4, [ONE, TWO]), Piece(6, [TWO])]
    plan = planned_jobs(instance, {"f": (0, [TWO]), "l": (4, [ONE]), "a": (0, pieces)})
    board = board_of(instance, Outcome(jobs=tuple(plan), waiting_room=()), seconds=30.0)
    MiniZinc().improve(instance, board, seed=0)
    assert [event.what for event in board.events] == ["no plan of evolving.mzn is as good as the best known plan"]
    assert board.best.jobs == tuple(plan)
