"""Some of the windows that ``scripts/random_judges choices`` draws by the thousand; the judge sees faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.judges.choices import judge_choices
from tests.sizes import seeds
from tests.verify.lenient import with_longest_walltimes, with_own_requests

#: Windows in which something failed once: a licence that only one alternative takes, alternatives that ask for what no
#: node has, and a job that had another choice in the window that was made for a job left over.
MENDED = (6, 23, 58, 273, 567)


@pytest.mark.parametrize("seed", seeds(40))
def test_oracle_and_verifier_agree_on_each_combination(seed: int) -> None:
    """Of each combination of choices the verifier says what the oracle says of a window of rigid jobs."""
    assert judge_choices(seed, engines=False).failures == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*seeds(40), *(pytest.param(seed, id=f"mended-{seed}") for seed in MENDED)])
def test_engines_keep_rules_and_choose(seed: int) -> None:
    """Plans keep all rules, none is better than the best of all combinations, and what CP-SAT proves is that one."""
    assert judge_choices(seed).failures == []


def test_the_rules_are_broken_by_what_is_chosen() -> None:
    """Changed plans of these windows break rules of all kinds."""
    said = sum((judge_choices(seed, engines=False).verdicts for seed in range(24)), Counter[str]())
    assert {"limit", "reservation", "capacity", "queue", "where", "guard", "keep_free"} <= said.keys()


@pytest.mark.parametrize("lenient", [with_longest_walltimes, with_own_requests])
def test_a_verifier_that_looks_at_something_else_is_found(lenient: Callable[[], AbstractContextManager[None]]) -> None:
    """If rules were asked about another walltime or request than that which was chosen, the judge would say so."""
    with lenient():
        assert any(judge_choices(seed, engines=False).failures for seed in range(12))
