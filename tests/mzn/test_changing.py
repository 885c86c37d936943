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
from tests.cp.test_changing_jobs import CASES, evolving, evolving_tiny, queued, running, window
from tests.cp.test_constraints import ONE, TWO, job
from tests.cp.test_model import ALL, optimum_of
from tests.cp.trying_everything import best_plan
from tests.mzn.modelled import needs_minizinc
from tests.search.searched import board_of

#: The fixed plans of windows without jobs that can run on a share.
EVOLVING = [name for name, case in CASES.items() if not any(one.malleability for one in case.instance.jobs)]
WHOLE = {"names": "n1", "resources": {"cores": 4}}


def best_of(instance: Instance, plan: Sequence[PlannedJob]) -> Board:
    """Return the board on which the solver has finished with a plan.

    The verifier has judged all plans; nothing is proven, since the model has not all plans that there are.
    """
    assert MiniZinc().unsupported(instance) == ()
    board = board_of(instance, Outcome(jobs=tuple(plan), waiting_room=()), seconds=30.0)
    MiniZinc().improve(instance, board, seed=0)
    assert [event.what for event in board.events] == [
        "its best plan is optimal in evolving.mzn, which does not have all plans: there may be better ones"
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
    changing = (one for one in windows if any(entry.is_evolving for entry in one.jobs))
    return list(itertools.islice(changing, count))


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("instance", drawn(evolving_tiny, 12))
def test_the_optimum_is_that_of_trying_everything(instance: Instance) -> None:
    """On random tiny windows the best plan has the value that trying all starts, holds and nodes finds."""
    board = best_of(instance, queued(instance))
    assert board.best.value == pytest.approx(objective_value(instance, best_plan(instance, keeps_share=True)), abs=1e-9)


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("name", EVOLVING)
def test_each_rule_is_that_of_the_constraint_program(name: str) -> None:
    """Where one rule is what matters (nodes, places, licences, deadlines, ...), both models agree."""
    instance = CASES[name].instance
    weights = {ObjectiveTerm.COMPLETION: 1.0, ObjectiveTerm.MAKESPAN: 0.5, ObjectiveTerm.WASTE: 0.25}
    instance = replace(instance, objective=Objective(weights=FrozenMap(weights)))
    plan = planned_jobs(instance, CASES[name].allowed)
    best, _ = optimum_of(instance, plan, ALL)
    board = best_of(instance, plan)
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
    board = best_of(instance, plan)
    assert times_of(board, "e") == times
    assert board.best.value == 2 + 12 + times[-1] + (0.25 * 8 if limit is None else 0)


@pytest.mark.slow
@needs_minizinc
@pytest.mark.parametrize("limit", [1, 2, None])
def test_nobody_blocks_another(limit: int | None) -> None:
    """EVO-18: two jobs that would block each other step by step run one after the other, at 0 and at 10."""
    jobs = [evolving(name, (5, "2:ncpus=1"), (5, "3:ncpus=1"), expand_limit=limit) for name in "ab"]
    instance = window([{"names": "n[1-4]", "resources": {"cores": 1}}], *jobs, objective="completion")
    board = best_of(instance, queued(instance))
    assert sorted((one.start, one.end) for one in board.best.jobs) == [(0, 10), (10, 20)]


def test_jobs_on_a_share_are_refused() -> None:
    """The models have jobs on all their cores: one that can run, or continue, on fewer is refused."""
    shares = {"shares": [0.5]}
    waiting = window([WHOLE], job("a", "ncpus=2", walltime=1, malleable=shares))
    assert MiniZinc().unsupported(waiting) == ("job a: can run on fewer cores",)
    once = [(-1, 4, {"n1": 2}), (4, 12, {"n1": 4})]
    entry = running("r", "ncpus=4", once, walltime=10, malleable=shares)
    assert MiniZinc().unsupported(window([WHOLE], entry, job("a", "ncpus=2", walltime=1))) == (
        "job r: its running allocation changes over time",
        "job r: can run on fewer cores",
    )


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
