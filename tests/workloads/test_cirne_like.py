"""The workload like Cirne and Berman's: its figures found again in what it makes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import cirne_like, offered_load
from cpsched.lab.workloads.cirne_like import WALLTIMES
from tests.sizes import examples


def test_figures() -> None:
    """Walltimes and sizes are log-uniform, most sizes powers of two, the mean accuracy is 0.45, half of it extreme."""
    jobs = cirne_like(20000, 1).jobs
    walltimes = np.array([job.walltime for job in jobs])
    assert walltimes.min() == WALLTIMES[0]
    assert 0.99 * WALLTIMES[1] < walltimes.max() <= WALLTIMES[1]
    assert np.log(walltimes).mean() == pytest.approx(np.log(WALLTIMES).mean(), abs=0.05)
    accuracy = np.array([job.runtime for job in jobs]) / walltimes
    assert accuracy.mean() == pytest.approx(0.45, abs=0.01)
    assert np.mean((accuracy < 0.1) | (accuracy == 1)) > 0.4
    sizes = np.array([job.request.chunks[0].count for job in jobs])
    assert (sizes.min(), sizes.max()) == (1, 128)
    assert np.log2(sizes).mean() == pytest.approx(3.5, abs=0.05)
    # all of those up to 2 are powers of two, and few by chance of those above 16
    wide = sizes[sizes > 2**4.5]
    assert np.mean(np.log2(wide) % 1 == 0) == pytest.approx(0.75, abs=0.03)


def test_the_ideal_users_ask_for_what_they_need() -> None:
    """The same jobs at the same times, but each asks for its run time."""
    real, ideal = cirne_like(300, 2), cirne_like(300, 2, ideal=True)
    assert [(job.submit, job.runtime, job.request) for job in ideal.jobs] == [
        (job.submit, job.runtime, job.request) for job in real.jobs
    ]
    assert all(job.walltime == job.runtime for job in ideal.jobs)
    assert any(job.walltime != job.runtime for job in real.jobs)


def test_days_are_days() -> None:
    """The load is had by more or fewer jobs a day; at noon there are more of them than at midnight, at any load."""
    for load in (0.3, 1.5):
        submits = np.array([job.submit for job in cirne_like(10000, 3, load=load).jobs])
        hours = np.bincount(submits // 3600 % 24, minlength=24)
        assert hours[12:16].sum() > 4 * hours[2:6].sum()


@given(
    jobs=st.integers(2, 60),
    seed=st.integers(0, 2**64),
    nodes=st.integers(1, 300),
    load=st.floats(0.1, 2),
    ideal=st.booleans(),
)
@examples(30)
def test_workloads_are_instances(jobs: int, seed: int, nodes: int, load: float, ideal: bool) -> None:
    """The same arguments give the same workload, with the load that was asked for; its document reads back."""
    widest = math.ceil(nodes / 3)
    made = cirne_like(jobs, seed, nodes=nodes, cores=4, widest=widest, load=load, ideal=ideal)
    assert made == cirne_like(jobs, seed, nodes=nodes, cores=4, widest=widest, load=load, ideal=ideal)
    assert parse_instance(instance_to_document(made)) == made
    assert max(job.request.chunks[0].count for job in made.jobs) <= widest
    assume(made.jobs[-1].submit > 0)  # few small jobs can all come in one second: then they are no load
    assert offered_load(made) == pytest.approx(load, rel=2 / max(2, made.jobs[-1].submit - 1))


@pytest.mark.parametrize(
    ("jobs", "nodes", "widest", "load"),
    [(1, 10, 5, 1.0), (10, 10, 11, 1.0), (10, 10, 0, 1.0), (10, 10, 5, 0.0), (10, 10, 5, math.nan)],
)
def test_senseless_arguments_are_refused(jobs: int, nodes: int, widest: int, load: float) -> None:
    """A job alone has no load, none is wider than the machine: a programmer's mistake."""
    with pytest.raises(ValueError, match="need jobs >= 2"):
        cirne_like(jobs, 0, nodes=nodes, widest=widest, load=load)
