"""Some of the windows that ``scripts/random_judges topology`` draws by the thousand."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.judges.rules import judge_topology
from tests.sizes import seeds


@pytest.mark.parametrize("seed", seeds(40))
def test_oracle_and_verifier_agree(seed: int) -> None:
    """Of each plan, and of changes of it, the verifier says what the oracle says."""
    assert judge_topology(seed, engines=False).failures == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*seeds(40), 730481])  # the last one: a downtime beside `keep_free`
def test_engines_keep_jobs_within_groups(seed: int) -> None:
    """Plans keep all rules, none is better than the best of all, none leaves a job out that has room in a group."""
    assert judge_topology(seed).failures == []


def test_the_windows_break_the_rule() -> None:
    """Changed plans of these windows have chunks in several groups."""
    said = sum((judge_topology(seed, engines=False).verdicts for seed in range(12)), Counter[str]())
    assert said["place"] > 5
