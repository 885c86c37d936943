"""How near a simulation is to what happened, against worked numbers."""

from __future__ import annotations

import numpy as np
import pytest

from cpsched.metrics import Ending, fidelity
from tests.metrics.made_runs import Row, runs_of


def test_worked_figures() -> None:
    """Waits of 0, 100, 100 and 4,000 s are replayed as 0, 50, 150 and 300 s.

    Ranks are 1, 2.5, 2.5, 4 and 1, 2, 3, 4: the sums of products are 4.5 / sqrt(4.5 x 5). Starts differ by 0, 50, 50
    and 3,700 s.
    """
    real = runs_of(*(Row(0, wait, wait + 10) for wait in (0, 100, 100, 4000)))
    replayed = runs_of(*(Row(0, wait, wait + 10) for wait in (0, 50, 150, 300)))
    found = fidelity(real, replayed, np.ones(4, dtype=np.bool_))
    assert found is not None
    assert (found.jobs, found.wait, found.simulated_wait) == (4, 1050.0, 125.0)
    assert (found.within_minute, found.within_hour) == (0.75, 0.75)
    assert found.correlation == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_only_jobs_that_count_and_are_over_in_both_are_compared() -> None:
    """The second does not count, the third never started in the replay."""
    real = runs_of(*(Row(0, wait, wait + 10) for wait in (5, 6, 7)))
    replayed = runs_of(Row(0, 5, 15), Row(0, 9, 19), Row(0, -1, -1, ending=Ending.WAITING))
    found = fidelity(real, replayed, np.array([True, False, True]))
    assert found is not None
    assert (found.jobs, found.correlation) == (1, None)
    assert fidelity(real, replayed, np.array([False, False, True])) is None
