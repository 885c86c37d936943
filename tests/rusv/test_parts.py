"""Bookings in several parts: one pass leaves what one booking for each part leaves."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cpsched.rusv import Demands, KindDemand, Layout, Run, Timeline, kernels, part_kernels
from tests.sizes import seeds


def timeline() -> Timeline:
    """Return a timeline of four nodes with two columns each, and a sum of each resource."""
    demands = Demands(
        Layout(
            runs=(Run(length=4, resources=(0, 1), capacity=(100, 100), system=((0,), (1,))),),
            system_capacity=(400, 400),
        )
    )
    demands.add([KindDemand(need=1, most=1, takes=((0, ((0, 1), (1, 1))),))])
    return Timeline(demands)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", seeds(20))
def test_parts_are_bookings_one_after_the_other(seed: int) -> None:
    """Jobs of one to six parts are booked and released at random, in one pass and part by part: what is free is equal
    in each second, and so are the breakpoints; when all is released nothing is left.
    """
    draw, one_pass, by_part = Random(seed), timeline(), timeline()
    state, _, x = one_pass.kernel_arguments()
    z = part_kernels.Parts(
        sizes=np.zeros(2, dtype=np.int64),
        borders=np.zeros(8, dtype=np.int64),
        columns=np.zeros(8, dtype=np.int64),
        amounts=np.zeros((7, 8), dtype=np.int64),
        samounts=np.zeros((7, 2), dtype=np.int64),
        place_of=np.zeros(8, dtype=np.int64),
        part_of=np.zeros(kernels.BLOCK, dtype=np.int64),
    )

    def load(job: list[tuple[int, int, dict[int, int]]]) -> None:
        part_kernels.start_parts(z)
        for start, end, taken in job:
            booking = by_part.booking(start, end, taken, {})
            filled, systems = len(booking.columns), len(booking.system_columns)
            x.columns[:filled], x.amounts[:filled] = booking.columns, booking.amounts
            x.scolumns[:systems], x.samounts[:systems] = booking.system_columns, booking.system_amounts
            part_kernels.add_part(start, end, filled, systems, x, z)

    booked: list[list[tuple[int, int, dict[int, int]]]] = []
    for _ in range(60):
        if booked and (len(booked) > 25 or draw.random() < 0.3):
            job = booked.pop(draw.randrange(len(booked)))
            load(job)
            part_kernels.release_parts(state, z)
            for start, end, taken in job:
                by_part.release(by_part.booking(start, end, taken, {}))
        else:
            borders = sorted(draw.sample(range(400), draw.randint(2, 7)))
            columns = [draw.sample(range(8), draw.randint(1, 4)) for _ in borders[1:]]
            job = [
                (start, end, {column: draw.randint(1, 3) for column in of_part})
                for start, end, of_part in zip(borders, borders[1:], columns, strict=False)
            ]
            booked.append(job)
            load(job)
            part_kernels.book_parts(state, z)
            for start, end, taken in job:
                by_part.book(by_part.booking(start, end, taken, {}))
        assert one_pass.breakpoints().tolist() == by_part.breakpoints().tolist()
        for time in one_pass.breakpoints().tolist():
            assert [one.tolist() for one in one_pass.free_at(time)] == [one.tolist() for one in by_part.free_at(time)]
        first, last = sorted(draw.sample(range(500), 2))
        found, expected = (one.least_free(first, last) for one in (one_pass, by_part))
        assert [one.tolist() for one in found] == [one.tolist() for one in expected]
    for job in booked:
        load(job)
        part_kernels.release_parts(state, z)
    assert one_pass.breakpoints().tolist() == [0]
