"""Some dozens of the cases that ``scripts/random_judges bounds`` runs by the thousand; the judge sees faults."""

from __future__ import annotations

import pytest

from cpsched.metrics import suffered
from tests.judges.bounds import judge_case
from tests.judges.windows import features_of, random_window
from tests.mzn.modelled import needs_minizinc
from tests.sizes import some

#: Windows in which a stretched job is worth less than what was suffered.
FALSE = (11, 61, 68, 107)

FEATURES = (
    "arrays, cores kept free, deadlines, dependencies, drained nodes, earliest starts, evolving, excl, fixed starts, "
    "fair shares, guards, hard max_wait, held steps, licences, malleable, max_wait, max_walltime, nodes that are down, "
    "objective: a sum, objective: slowdown, objective: waste, objective: tardiness, objective: makespan, pack, "
    "promised starts, properties, running jobs, running jobs that are malleable, running jobs with segments, scatter, "
    "several kinds of chunks, stretches, strict priorities, weights of jobs, weights of queues, whole nodes"
)


#: Windows in which something failed once: jobs that waited for one that the verifier found a start for, and a list
#: schedule of the search in which that one found none.
MENDED = (2520, 2525, 3037, 30078)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*some(range(40), 3), *MENDED])
def test_no_bound_is_above_any_plan(seed: int) -> None:
    """All plans of a random window pass the verifier, and no bound of any engine is above any of them."""
    assert judge_case(seed, has_processes=False).failures == []


@pytest.mark.slow
@needs_minizinc
def test_portfolio_and_minizinc_are_judged_too() -> None:
    """A window is planned by the engines that work in processes of their own, too."""
    case = judge_case(2, has_processes=True)
    assert case.failures == []
    assert case.engines["portfolio"] == 1
    assert case.bounds["portfolio: combined"] == 1


def test_a_false_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If what was suffered were taken for a bound, as it once was, the judge would say so."""
    monkeypatch.setattr("tests.judges.bounds.least_value", suffered)
    failures = [failure for seed in FALSE for failure in judge_case(seed, has_processes=False).failures]
    assert len(failures) >= len(FALSE)
    assert all(failure.startswith("false bound of earliest starts") for failure in failures)


def test_the_windows_have_every_feature() -> None:
    """A few hundred windows have all that the engines honour; the same seed draws the same window."""
    found = set[str]().union(*(features_of(random_window(seed)) for seed in range(400)))
    assert found >= set(FEATURES.split(", "))
    assert random_window(7) == random_window(7)
