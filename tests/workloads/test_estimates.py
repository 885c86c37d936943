"""Walltimes made of run times."""

from __future__ import annotations

import numpy as np
import pytest

from cpsched.lab.workloads.assembly import random_numbers
from cpsched.lab.workloads.lublin import ACCURACY, estimated_walltimes

_YEARS = 60 * 10**10


def test_accuracies_are_the_published_ones() -> None:
    """Where neither minutes nor the longest walltime matter, run time / walltime has the deciles of Eurora's jobs."""
    runtimes = np.full(20000, 10**7)
    accuracy = runtimes / estimated_walltimes(random_numbers(1), runtimes, _YEARS)
    assert np.quantile(accuracy, np.linspace(0.1, 1, 10)).tolist() == pytest.approx(ACCURACY[1:], abs=0.03)


def test_walltimes_are_whole_minutes_and_not_too_long() -> None:
    """Each holds its run time, and those that would be beyond the longest walltime are just that."""
    runtimes = np.repeat([1, 59, 60, 61, 3599, 7200], 500)
    walltimes = estimated_walltimes(random_numbers(2), runtimes, 7200)
    assert (walltimes >= runtimes).all()
    assert (walltimes % 60 == 0).all()
    assert walltimes.max() == 7200
    assert (walltimes[runtimes == 7200] == 7200).all()
    assert len(set(walltimes[runtimes == 60].tolist())) > 50
