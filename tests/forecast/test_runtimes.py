"""How long jobs run: what is expected, and the distribution behind it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.forecast import Kind, RuntimeLearner

LONG = Kind("q", "ann", 1000)
LEVELS = np.linspace(0.0, 1.0, 21)


def test_without_a_past_a_job_is_expected_to_take_its_walltime() -> None:
    """Nothing was learnt: the walltime, for certain; and never more than that, or nothing."""
    assert RuntimeLearner().expected(LONG) == 1000
    assert set(RuntimeLearner().quantiles(LONG, LEVELS).tolist()) == {1000}
    learnt = RuntimeLearner()
    for _ in range(100):
        learnt.learn(LONG, 10**6)
    assert learnt.expected(LONG) == 1000
    for _ in range(1000):
        learnt.learn(LONG, 0)
    assert 1 <= learnt.expected(LONG) < 10
    assert learnt.quantiles(LONG, LEVELS).min() == 1


def test_one_job_moves_each_class_by_a_fifth() -> None:
    """A job that took a tenth: (0.1 + 4 * 1) / 5 = 0.82 in the widest class, and so on down: 0.4712 in the fourth."""
    learnt = RuntimeLearner()
    learnt.learn(LONG, 100)
    shares = [0.82, 0.676, 0.5608, 0.46864]
    # up to the next power of the eighth root of 2
    assert 1000 * shares[-1] <= learnt.expected(LONG) <= 1000 * shares[-1] * 2**0.125
    assert 1000 * shares[0] <= learnt.expected(Kind("other", "bob", 1000)) <= 1000 * shares[0] * 2**0.125
    assert learnt.expected(Kind("q", "bob", 1001)) < learnt.expected(Kind("other", "bob", 1001))


def test_one_job_has_a_fifth_of_each_class() -> None:
    """The same job: the walltime is left a chance of 0.8 ** 4 = 0.4096 in the narrowest class, of 0.8 in the widest."""
    learnt = RuntimeLearner()
    learnt.learn(LONG, 100)
    assert learnt.quantiles(LONG, np.array([0.1, 0.590, 0.591])).tolist() == [100, 100, 1000]
    other = Kind("other", "bob", 1000)
    assert learnt.quantiles(other, np.array([0.199, 0.201])).tolist() == [100, 1000]


def test_a_job_that_has_run_for_longer_than_others_is_not_one_of_them() -> None:
    """Half took a tenth, half a half: after 100 s the tenth is ruled out; after 500 s only the walltime is left."""
    learnt = RuntimeLearner()
    for number in range(200):
        learnt.learn(LONG, 500 if number % 2 else 100)
    assert learnt.quantiles(LONG, np.array([0.3]))[0] == 100
    assert learnt.quantiles(LONG, LEVELS[1:], ran=100).min() == 500
    assert learnt.quantiles(LONG, LEVELS[1:], ran=500).min() > 500
    assert set(learnt.quantiles(LONG, LEVELS, ran=1000).tolist()) == {1001}


@given(
    runtimes=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5000), st.integers(0, 6000)), max_size=60),
    ran=st.integers(0, 2000),
)
def test_quantiles_ascend_within_what_is_possible(runtimes: list[tuple[int, int, int]], ran: int) -> None:
    """Whatever was learnt: quantiles ascend, and are more than the seconds that the job ran, and at most its walltime;
    one that has run for longer ends at any moment.
    """
    learnt = RuntimeLearner()
    for user, walltime, runtime in runtimes:
        learnt.learn(Kind("q", f"u{user}", walltime), runtime)
    found = learnt.quantiles(Kind("q", "u1", 1000), LEVELS, ran=ran)
    assert (np.diff(found) >= 0).all()
    assert found.min() > ran
    assert found.max() <= max(1000, ran + 1)


def test_the_distribution_has_the_mean_that_is_expected() -> None:
    """The expected runtime is the mean of the distribution, up to a step and the jobs that are forgotten."""
    learnt, random = RuntimeLearner(), np.random.default_rng(1)
    for runtime in random.integers(1, 1000, size=3000).tolist():
        learnt.learn(LONG, runtime)
    shares = learnt.shares(LONG)
    mean = float((shares.values * np.diff(shares.chances, prepend=0.0)).sum())
    assert mean == pytest.approx(learnt.expected(LONG) / 1000, rel=0.1)


def test_enough_is_in_whole_minutes_and_less_than_the_walltime() -> None:
    """One job in 50 is beyond it: it takes 300 s, the others 61 s. Before anything is known it is the walltime."""
    learnt = RuntimeLearner()
    assert learnt.enough(LONG) is None
    for number in range(400):
        learnt.learn(LONG, 300 if number == 0 else 61)
    assert learnt.enough(LONG) == 120
    for _ in range(2):
        learnt.learn(LONG, 300)
    assert learnt.enough(LONG) == 300
    assert learnt.enough(Kind("q", "ann", 60)) is None
