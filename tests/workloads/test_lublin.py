"""The model of Lublin and Feitelson: its parameters found again in what it makes, and the authors' own jobs."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cpsched.domain import Instance
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import lublin
from cpsched.lab.workloads.lublin import STREAMS, Stream
from tests.sizes import examples
from tests.workloads.marginals import distance

#: Enough for tolerances of a few percent.
MANY = 20000


def sizes_of(workload: Instance) -> NDArray[np.int64]:
    """Return how many nodes each job asks for."""
    return np.array([job.request.chunks[0].count for job in workload.jobs])


def runtimes_of(workload: Instance) -> NDArray[np.int64]:
    """Return how long each job runs."""
    return np.array([job.runtime for job in workload.jobs])


@pytest.fixture(scope="module", params=tuple(STREAMS))
def many(request: pytest.FixtureRequest) -> tuple[str, Instance]:
    """Return a stream and many of its jobs on 128 nodes, for which its table is."""
    return request.param, lublin(MANY, 5, streams=(request.param,))


@pytest.mark.slow
def test_shares_of_sizes(many: tuple[str, Instance]) -> None:
    """Serial jobs, powers of two among the others, and jobs above the middle size have the shares of the table."""
    name, workload = many
    stream, sizes = STREAMS[name], sizes_of(workload)
    _, middle, highest = stream.sizes
    assert np.mean(sizes == 1) == pytest.approx(stream.serial, abs=0.015)
    # between two powers of two, so that rounding moves no job across
    border = math.floor(middle) + (0.5 if middle % 1 == 0 else 1.5)
    wide = sizes[sizes > 2**border]
    share = (1 - stream.serial) * (1 - stream.small) * (highest - border) / (highest - middle)
    assert len(wide) / MANY == pytest.approx(share, abs=0.01)
    # hardly any of these is a power of two by chance
    assert np.mean(np.log2(wide) % 1 == 0) == pytest.approx(stream.power_of_two / (1 - stream.serial), abs=0.05)
    assert sizes.max() == round(2**highest)


def test_runtimes_of_each_size(many: tuple[str, Instance]) -> None:
    """The mean logarithm of the run times of small and of large jobs is that of the two gamma distributions."""
    name, workload = many
    stream, sizes = STREAMS[name], sizes_of(workload)
    logs = np.log(runtimes_of(workload) + 0.5)
    slope, at_zero = stream.share
    for low, high in ((1, 1), (2, 16), (17, 128)):
        chosen = (sizes >= low) & (sizes <= high)
        share = np.clip(slope * sizes[chosen] + at_zero, 0, 1).mean()
        expected = share * math.prod(stream.short) + (1 - share) * math.prod(stream.long)
        # seconds are whole, and beyond e^12 it is drawn again
        assert logs[chosen].mean() == pytest.approx(expected, rel=0.04)
    assert runtimes_of(workload).max() <= math.exp(12)


def gap_of(stream: Stream) -> tuple[float, float]:
    """Return the mean and the standard deviation of the seconds between arrivals, whose logarithms are cut at 13."""
    shape, scale = stream.gap
    grid = np.linspace(1e-6, 13, 20001)
    density = np.exp((shape * stream.rush - 1) * np.log(grid) - grid / scale)
    density /= density.sum()
    mean = float((np.exp(grid) * density).sum())
    return mean, math.sqrt((np.exp(2 * grid) * density).sum() - mean**2)


def test_gaps_have_the_mean_of_their_distribution(many: tuple[str, Instance]) -> None:
    """As many jobs arrive as the distribution of gaps lets expect."""
    name, workload = many
    mean, deviation = gap_of(STREAMS[name])
    assert workload.jobs[-1].submit / MANY == pytest.approx(mean, abs=4 * deviation / math.sqrt(MANY))


@pytest.mark.slow
def test_arrivals_follow_the_day() -> None:
    """Of many jobs, each quarter of the day has its share: few in the night, most from noon to six."""
    submits = np.array([job.submit for seed in range(4) for job in lublin(MANY, seed).jobs])
    shares = np.bincount(submits % 86400 // 21600, minlength=4) / len(submits)
    assert shares.tolist() == pytest.approx([0.08, 0.22, 0.44, 0.26], abs=0.03)


def test_the_streams_arrive_independently() -> None:
    """Batch and interactive jobs together: each is as frequent as alone, and is a queue of its own."""
    both = lublin(6000, 2, streams=("batch", "interactive"))
    last = both.jobs[-1].submit
    for name in ("batch", "interactive"):
        own = [job for job in both.jobs if job.queue == name]
        mean, deviation = gap_of(STREAMS[name])
        assert last / len(own) == pytest.approx(mean, abs=4 * deviation / math.sqrt(len(own)))
    assert both.queues["interactive"].expected_wait < both.queues["batch"].expected_wait


def test_walltimes_are_estimates() -> None:
    """Walltimes are whole minutes up to two days, and no job runs longer."""
    jobs = lublin(MANY, 1).jobs
    assert all(job.runtime is not None and job.walltime >= job.runtime and job.walltime % 60 == 0 for job in jobs)
    assert max(job.walltime for job in jobs) <= 2 * 86400


def test_like_the_jobs_of_the_authors_program(shared_data: Path) -> None:
    """10,000 jobs that the authors' program made for 256 nodes: the distribution functions hardly differ.

    Their days are about half an hour ahead of ours; two seeds of ours differ by up to 0.05 in the hours.
    """
    path = shared_data / "logs" / "lublin_256.swf.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    theirs = np.array([line.split()[:5] for line in lines if line[:1] not in ("", ";")], dtype=np.float64)
    ours = lublin(10000, 1, nodes=256)
    submits = np.array([job.submit for job in ours.jobs])
    pairs = {
        "nodes": (theirs[:, 4], sizes_of(ours)),
        "run time": (np.maximum(1, theirs[:, 3]), runtimes_of(ours)),
        "second of the day": (theirs[:, 1] % 86400, submits % 86400),
        "gap": (np.diff(theirs[:, 1]), np.diff(submits)),
    }
    distances = {name: distance(one.tolist(), other.tolist()) for name, (one, other) in pairs.items()}
    assert distances.pop("second of the day") <= 0.1, distances
    assert max(distances.values()) <= 0.03, distances


@given(
    jobs=st.integers(1, 80),
    seed=st.integers(0, 2**64),
    nodes=st.integers(32, 5000),
    cores=st.integers(1, 64),
    streams=st.lists(st.sampled_from(tuple(STREAMS)), min_size=1, unique=True),
)
@examples(30)
def test_workloads_are_instances(jobs: int, seed: int, nodes: int, cores: int, streams: list[str]) -> None:
    """The same arguments give the same workload, whose jobs fit on the machine and whose document reads back."""
    made = lublin(jobs, seed, nodes=nodes, cores=cores, streams=streams)
    assert made == lublin(jobs, seed, nodes=nodes, cores=cores, streams=streams)
    assert parse_instance(instance_to_document(made)) == made
    assert len(made.jobs) == jobs
    assert 1 <= sizes_of(made).min() <= sizes_of(made).max() <= nodes
    assert made.now == 0 <= made.jobs[0].submit


def test_another_seed_gives_another_workload() -> None:
    """The seed counts."""
    assert lublin(20, 1).jobs != lublin(20, 2).jobs


@pytest.mark.parametrize(
    ("jobs", "nodes", "cores", "streams", "said"),
    [
        (0, 64, 1, ("whole",), "need jobs >= 1"),
        (1, 31, 1, ("whole",), "nodes >= 32"),
        (1, 64, 0, ("whole",), "cores >= 1"),
        (1, 64, 1, (), "got none"),
        (1, 64, 1, ("batch", "batch"), "each once"),
        (1, 64, 1, ("bach",), "got bach"),
    ],
)
def test_senseless_arguments_are_refused(
    jobs: int, nodes: int, cores: int, streams: tuple[str, ...], said: str
) -> None:
    """No jobs, too small a machine, unknown streams: a programmer's mistake."""
    with pytest.raises(ValueError, match=said):
        lublin(jobs, 0, nodes=nodes, cores=cores, streams=streams)
