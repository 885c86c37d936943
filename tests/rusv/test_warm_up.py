"""What is compiled before the first cycle of a daemon is all that cycles need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cpsched.domain import Amounts, Placement, SetAside
from cpsched.planner import Planner, warmup_following, warmup_window
from cpsched.rusv import timeline
from cpsched.rusv.kernels import book_all
from cpsched.rusv.kernels.queues import place_jobs


def test_what_follows_a_window_is_ready_for_nodes_that_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are placed, and amounts set aside, by nodes and by rows of all nodes: no cycle compiles any of it."""
    kinds: set[tuple[str, bool]] = set()

    def recorded(kernel: Callable[..., object], place: int) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            kinds.add((kernel.__name__, arguments[place] is None))
            arrays = [one for bundle in arguments if isinstance(bundle, tuple) for one in bundle]
            assert all(one.flags.c_contiguous for one in arrays if isinstance(one, np.ndarray))  # else another type
            return kernel(*arguments)

        return call

    monkeypatch.setattr(timeline, "place_jobs", recorded(place_jobs, 7))
    monkeypatch.setattr(timeline, "book_all", recorded(book_all, 3))
    warmup_following()
    placements = [Placement(node="a", resources=Amounts({"cores": 1})) for _ in range(2)]
    asides = (SetAside(start=20, end=30, allocation=(one,)) for one in placements)
    Planner(replace(warmup_window(), set_aside=tuple(asides))).plan()
    assert kinds == {(name, is_none) for name in ("place_jobs", "book_all") for is_none in (False, True)}
