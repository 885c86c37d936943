"""Some of the windows that ``scripts/random_judges deadlines`` draws by the thousand."""

from __future__ import annotations

import pytest

from tests.judges.deadline_windows import deadline_window
from tests.judges.deadlines import COMPLETE, judge_deadlines
from tests.judges.ruled_windows import features_of
from tests.sizes import seeds

#: Windows in which something failed once: jobs that a running one makes too late, which no proof said; plans without
#: any job.
MENDED = (69, 71, 550)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*seeds(300), *(pytest.param(seed, id=f"mended-{seed}") for seed in MENDED)])
def test_no_job_is_lost_and_that_is_proven(seed: int) -> None:
    """The number of jobs and the value are those of the best of all plans, also after a first plan that loses jobs."""
    case = judge_deadlines(seed, has_processes=False)
    assert case.failures == []
    assert not case.is_too_large
    assert case.proven["cp"] == case.proven["cp after a poor plan"] == 1


def test_the_portfolio_proves_a_window_with_a_job_too_many() -> None:
    """As users call it: a window in which not all jobs can be placed is proven all the same."""
    case = judge_deadlines(69, has_processes=True)
    assert case.failures == []
    assert [case.proven[name] for name in COMPLETE] == [1, 1, 1]


def test_the_windows_have_all_kinds_of_limits() -> None:
    """Some dozens of windows have everything that can make a job too late."""
    found = set[str]().union(*(features_of(deadline_window(seed)) for seed in range(60)))
    assert {"deadlines", "fixed starts", "hard max_wait", "dependencies", "earliest starts", "running jobs"} <= found
