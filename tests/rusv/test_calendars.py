"""Whatever says what is free when keeps one contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given

from tests.rusv.calendars import ByCounts, Calendar, Happening, OnTimeline, assert_keeps_contract, histories
from tests.sizes import examples

pytestmark = pytest.mark.kernels

CALENDARS: dict[str, Callable[[], Calendar]] = {
    "rows of all nodes": partial(OnTimeline, is_spelled_out=True),
    "steps of each node": partial(OnTimeline, is_spelled_out=False),
    "counts of one pool": partial(ByCounts, columns=1),
    "counts of a pool and a license": partial(ByCounts, columns=2),
}


@pytest.mark.parametrize("name", CALENDARS)
@given(history=histories)
@examples(50, deadline=None)
def test_calendars_keep_the_contract(name: str, history: list[Happening]) -> None:
    """A calendar says after each booking and release what its twin says second by second, and nothing is left."""
    assert_keeps_contract(CALENDARS[name], history)
