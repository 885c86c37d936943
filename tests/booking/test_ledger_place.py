"""Placing within bounds: what a scheduler needs that goes through time."""

from __future__ import annotations

from dataclasses import replace

from cpsched.booking import Ledger
from tests.booking.small_windows import chunk, nodes, running, waiting, window


def test_jobs_are_placed_within_bounds_and_their_own() -> None:
    """One core of 2 is free until 110: of three jobs only the one that takes it, and may at 102, starts by 103.

    Then the wide one starts at 110 where nothing bounds it; the third may not before 120. The bounds are those of one
    call: nobody keeps them.
    """
    jobs = [
        waiting("wide", 5, chunk(cores=2)),
        waiting("late", 5, chunk(cores=1), not_before=120),
        waiting("narrow", 5, chunk(cores=1), not_before=102),
    ]
    ledger = Ledger(replace(window([nodes("n", cores=2)], running("r", 110, n={"cores": 1}), *jobs), now=100), jobs)
    assert ledger.place(["wide", "late", "narrow"], earliest=101, latest=103) == {"narrow": 102}
    assert ledger.place(["wide"], earliest=101) == {"wide": 110}
    ledger.release("wide")
    ledger.plan(["wide", "late"])
    assert {job.id: placed.start for job in jobs if (placed := ledger.planned(job.id))} == {
        "wide": 110,
        "late": 120,
        "narrow": 102,
    }


def test_nobody_is_placed_in_an_empty_call() -> None:
    """No ids, no starts."""
    assert Ledger(window([nodes("n", cores=2)]), []).place([], earliest=0) == {}
