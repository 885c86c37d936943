"""Jobs with alternatives in the planner: the kernel chooses as trying each does; no plan is worse than without them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cpsched.booking import Ledger
from cpsched.domain import Request, Step
from cpsched.planner import LivePlanner, Planner, Values
from cpsched.problem import planning_order
from cpsched.rusv import Choices, kernels
from tests.booking.small_windows import chunk, nodes, waiting, window
from tests.oracle.random_alternatives import window_with_alternatives
from tests.search.searched import planned, searched
from tests.workloads.changing import made_rigid, with_alternatives
from tests.workloads.eurora_windows import eurora_window


def chosen_one_by_one(ledger: Ledger, order: Sequence[int], choices: Choices) -> None:
    """Book jobs in an order, each in the mode whose earliest place costs least, of equal ones that which ends first:
    the naive twin of the kernel.
    """
    for row in order:
        name, found = ledger.jobs[row].id, list[tuple[float, int, int, int]]()
        first, behind = choices.first[row : row + 2].tolist()
        turns = {tuple(mode): turn for turn, mode in enumerate(choices.modes[first:behind].tolist(), start=first)}
        for number, mode in enumerate(ledger.modes[row]):
            ledger.take_mode(name, number)
            ledger.plan([name])
            if ledger.is_booked(name):
                place = ledger.place_of(name)
                turn = turns[mode[1:]]
                cost = kernels.cost_of(turn, place.start, choices.costs)
                found.append((round(cost, 9), place.end, turn, number))
                ledger.release(name)
        ledger.take_mode(name, min(found)[-1] if found else 0)
        ledger.plan([name])


@pytest.mark.kernels
def test_the_kernel_chooses_as_trying_each_mode_does() -> None:
    """Whatever is charged, each job gets a place that costs as much, and ends when it does if all modes are tried."""
    is_chosen = False
    for seed in range(40):
        instance = window_with_alternatives(seed, jobs=5, places=seed % 2 == 0)
        ledgers = [Planner(instance).ledger for _ in range(2)]
        rows = {job.id: row for row, job in enumerate(ledgers[0].jobs)}
        order = [rows[job.id] for job in planning_order(instance, ledgers[0].jobs)]
        choices = Values(instance, ledgers[0]).choices(order, charge=(0.0, 1.0, 5.0)[seed % 3])
        ledgers[0].plan([ledgers[0].jobs[row].id for row in order], choices=choices)
        chosen_one_by_one(ledgers[1], order, choices)
        for job in ledgers[0].jobs:
            assert ledgers[0].is_booked(job.id) == ledgers[1].is_booked(job.id)
            if ledgers[0].is_booked(job.id):
                places = [ledger.place_of(job.id) for ledger in ledgers]
                assert (places[0].start, places[0].end) == (places[1].start, places[1].end)
                is_chosen |= places[0].number > 0
    assert is_chosen


@pytest.mark.parametrize("seed", range(2))
def test_a_choice_is_never_worse_than_none(seed: int) -> None:
    """Planner and lists of a window with choices are worth no less than those of the same window made rigid."""
    instance = with_alternatives(eurora_window(40, seed, busy=0.5, demand=40), seed)
    rigid = made_rigid(instance)
    least, found = (searched(one, max_steps=0).best.value for one in (rigid, instance))
    assert found <= least + 1e-9
    assert {one.id for one in planned(instance).jobs} >= {one.id for one in planned(rigid).jobs}


@pytest.mark.parametrize(("others", "alternative"), [(0, 0), (1, 0), (4, 1)])
def test_a_new_job_takes_the_less_of_the_machine_the_more_jobs_wait(others: int, alternative: int) -> None:
    """Its alternative costs it 40 s, and all that come next 25 s in place of 60: as many as wait now are like it."""
    wide = [waiting(f"w{number}", 100, chunk(4, cores=1)) for number in range(others + 1)]
    live = LivePlanner(window([nodes("n", cores=4)], *wide))
    less = Step(walltime=100, request=Request(chunks=(chunk(1, cores=1),)))
    new = waiting("new", 60, chunk(4, cores=1), alternatives=(less,))
    live.follow(window([nodes("n", cores=4)], *wide, new))
    (place,) = [one for one in live.outcome().jobs if one.id == "new"]
    assert (place.start, place.alternative) == (100 * (others + 1), alternative)
