"""The job mix of Bode et al.: its classes, the counts of the paper, and the figures of our reconstruction."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import job_mix
from cpsched.lab.workloads.job_mix import TARGETS, MixClass, class_of, share_is_low
from tests.sizes import examples


@pytest.mark.parametrize(
    ("nodes", "efficiency", "kind"),
    [
        (64, 0.19, MixClass.FAILED),
        (1, 0.0, MixClass.FAILED),
        (64, 0.2, None),
        (33, 0.7, MixClass.LARGE),
        (33, 0.69, None),
        (32, 0.7, MixClass.MEDIUM),
        (10, 1.0, MixClass.MEDIUM),
        (9, 1.0, MixClass.SMALL),
        (2, 0.7, MixClass.SMALL),
        (2, 0.69, MixClass.DEBUG),
        (6, 0.41, MixClass.DEBUG),
        (6, 0.4, None),
        (7, 0.41, None),
        (1, 1.0, MixClass.DEBUG),
    ],
)
def test_classes(nodes: int, efficiency: float, kind: MixClass | None) -> None:
    """The borders of each class, of 64 nodes: 50 % are 32, 15 % are 9.6, 10 % are 6.4, 3 % are 1.92."""
    assert class_of(nodes, efficiency) is kind


def test_the_share_is_looked_at_before_it_is_counted() -> None:
    """The first job is taken, whatever it is; of 10 jobs may 4 be medium when a fifth one comes, but not 5."""
    assert share_is_low(0, 0, 0.05)
    assert not share_is_low(1, 1, 0.4)
    assert share_is_low(4, 10, 0.4)
    assert not share_is_low(5, 10, 0.4)


@pytest.mark.slow
def test_counts_are_those_of_the_reconstruction() -> None:
    """Over 300 seeds 75.5 ± 12.3 jobs are taken, of the classes 22.8, 30.1, 14.5, 4.0 and 4.2 (MIX-1)."""
    mixes = [job_mix(seed).jobs for seed in range(300)]
    accepted = np.array([len(jobs) for jobs in mixes])
    error = 12.3 / 300**0.5
    assert accepted.mean() == pytest.approx(75.5, abs=3 * error)
    assert accepted.std() == pytest.approx(12.3, abs=1.5)
    classes = Counter(job.queue for jobs in mixes for job in jobs)
    expected = {"large": 22.8, "medium": 30.1, "small": 14.5, "debug": 4.0, "failed": 4.2}
    for kind, count in expected.items():
        assert classes[kind] / 300 == pytest.approx(count, rel=0.06), kind


def test_jobs_are_of_their_classes() -> None:
    """What a job asks for, works and is called fits together, up to whole seconds."""
    jobs = [job for seed in range(20) for job in job_mix(seed).jobs]
    for job in jobs:
        assert job.runtime is not None
        bounds = ((job.runtime - 0.5) / job.walltime, (job.runtime + 0.5) / max(1, job.walltime - 1))
        kinds = {class_of(job.request.chunks[0].count, efficiency) for efficiency in bounds}
        assert MixClass(job.queue or "") in kinds or job.walltime < 20
    assert len(jobs) > 1000
    assert {MixClass(job.queue or "") for job in jobs} == set(TARGETS)


def test_work_and_width() -> None:
    """All work is 90.2 h; over 60 seeds its mean width is 39.0 nodes, and the least total time 55.0 h (MIX-2)."""
    widths = []
    for seed in range(60):
        jobs = job_mix(seed).jobs
        work = sum(job.runtime or 0 for job in jobs)
        assert work == pytest.approx(90.2 * 3600, abs=len(jobs))
        assert 0 <= min(job.submit for job in jobs) <= max(job.submit for job in jobs) < 180 * 60
        widths.append(sum((job.runtime or 0) * job.request.chunks[0].count for job in jobs) / work)
    assert np.mean(widths) == pytest.approx(39.0, abs=1.0)
    assert np.mean(widths) * 90.2 / 64 == pytest.approx(55.0, abs=1.5)


@given(st.integers(0, 2**64))
@examples(10)
def test_mixes_are_instances(seed: int) -> None:
    """A mix is the same for the same seed, its document reads back, and nobody runs longer than asked for."""
    made = job_mix(seed)
    assert made == job_mix(seed)
    assert parse_instance(instance_to_document(made)) == made
    assert all(job.runtime is not None and 0 < job.runtime <= job.walltime for job in made.jobs)


def test_efficiencies_are_those_of_the_paper() -> None:
    """Of the paper's 76 jobs 5 ran for at most half of what they asked for, and 23 for more than 90 % (MIX-3)."""
    mixes = [job_mix(seed).jobs for seed in range(300)]
    ratios = np.array([(job.runtime or 0) / job.walltime for jobs in mixes for job in jobs])
    assert (ratios <= 0.5).mean() == pytest.approx(5 / 76, abs=0.02)
    assert (ratios > 0.9).mean() == pytest.approx(23 / 76, abs=0.03)
