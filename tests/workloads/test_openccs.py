"""The workload after OpenCCS: the published table found again in what it makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import oculus_cluster, openccs_workload
from cpsched.lab.workloads.openccs import SIZES
from tests.sizes import examples


def test_the_machine_is_oculus() -> None:
    """616 nodes, 9,920 cores, 32 GPUs, 8 MICs, and three sizes of memory."""
    cluster = oculus_cluster()
    assert len(cluster.node_names) == len(set(cluster.node_names)) == 616
    assert {name: cluster.totals[name] for name in ("cores", "gpus", "mics")} == {"cores": 9920, "gpus": 32, "mics": 8}
    assert {node.resources["mem"] for node in cluster.classes} == {65536, 262144, 1048576}


@pytest.mark.slow
def test_the_table() -> None:
    """Each size has its share of the jobs, and its means of walltime and of accuracy, within the errors of a sample."""
    jobs = [job for seed in range(3) for job in openccs_workload(50000, seed).jobs]
    cores = np.array([job.request.totals["cores"] for job in jobs])
    walltimes = np.array([job.walltime for job in jobs])
    accuracy = np.array([job.runtime or 0 for job in jobs]) / walltimes
    total = sum(size.jobs for size in SIZES)
    assert set(cores.tolist()) == {size.cores for size in SIZES}
    for size in SIZES:
        chosen = cores == size.cores
        share, count = size.jobs / total, chosen.sum()
        assert chosen.mean() == pytest.approx(share, abs=4 * (share / len(jobs)) ** 0.5)
        # exponential, rounded up to minutes; an accuracy is never further from its mean than 0.5 in the mean
        assert walltimes[chosen].mean() == pytest.approx(size.walltime + 30, rel=4 / count**0.5)
        assert accuracy[chosen].mean() == pytest.approx(size.accuracy, abs=4 * 0.5 / count**0.5)


@pytest.mark.slow
def test_jobs_a_day() -> None:
    """50,000 jobs take as long as 3,082 a day do, give or take half a day."""
    assert openccs_workload(50000, 1).jobs[-1].submit / 86400 == pytest.approx(50000 / 3082, abs=0.6)


@given(st.integers(1, 100), st.integers(0, 2**64))
@examples(20)
def test_workloads_are_instances(jobs: int, seed: int) -> None:
    """The same arguments give the same workload; its document reads back; chunks fill nodes or are single cores."""
    made = openccs_workload(jobs, seed)
    assert made == openccs_workload(jobs, seed)
    assert parse_instance(instance_to_document(made)) == made
    assert len(made.jobs) == jobs
    for job in made.jobs:
        assert job.runtime is not None
        assert 1 <= job.runtime <= job.walltime <= 7 * 86400
        assert job.request.chunks[0].resources["cores"] in (1, 16)


def test_no_jobs_are_refused() -> None:
    """A workload of nothing is a programmer's mistake."""
    with pytest.raises(ValueError, match="need jobs >= 1, got 0"):
        openccs_workload(0, 1)
