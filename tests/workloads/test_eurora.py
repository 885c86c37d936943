"""The Eurora-like generator: valid windows, the same for the same seed, and like the real trace."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Chunk, Instance, Job, Request, Step
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import eurora_cluster, eurora_stream, offered_load
from tests.sizes import examples
from tests.workloads.eurora_windows import eurora_window
from tests.workloads.marginals import distance, marginals


def test_cluster_is_eurora() -> None:
    """64 nodes, 1024 cores, 64 GPUs, 64 MICs; five nodes have the larger memory (BRIDI-1)."""
    cluster = eurora_cluster()
    assert len(cluster.node_names) == 64
    assert cluster.totals == {"cores": 1024, "mem": 5 * 32071 + 59 * 15912, "gpus": 64, "mics": 64}
    assert [name for name, node in cluster.class_of.items() if node.resources["mem"] == 32071] == [
        f"node00{number}" for number in range(1, 6)
    ]


@given(jobs=st.integers(1, 60), seed=st.integers(0, 2**32), busy=st.floats(0, 0.95), demand=st.floats(0.1, 1000))
@examples(40)
def test_windows_keep_the_invariants_of_an_instance(jobs: int, seed: int, busy: float, demand: float) -> None:
    """Ids are unique, running jobs fit on their nodes and end after now, and each job fits on an idle cluster
    (BRIDI-2).
    """
    window = eurora_window(jobs, seed, busy=busy, demand=demand)
    waiting = [job for job in window.jobs if job.running is None]
    running = [job for job in window.jobs if job.running is not None]
    assert len(waiting) == jobs
    assert len({job.id for job in window.jobs}) == len(window.jobs)
    assert waiting[0].submit == 0
    assert window.now == waiting[-1].submit
    assert [job.submit for job in waiting] == sorted(job.submit for job in waiting)
    assert {job.queue for job in window.jobs} <= set(window.queues)
    for job in running:
        assert job.running is not None
        assert job.runtime is not None
        assert job.running.start + job.runtime > window.now >= job.running.start
        assert job.running.segments[-1].end == job.running.start + job.walltime
    for job in window.jobs:
        assert job.runtime is not None
        assert 1 <= job.runtime <= job.walltime
        assert _chunks_on_idle_cluster(window, job) >= job.request.chunks[0].count
    _check_nodes(window)


def _chunks_on_idle_cluster(window: Instance, job: Job) -> int:
    (chunk,) = job.request.chunks
    return sum(
        min(node.resources.get(name, 0) // amount for name, amount in chunk.resources.items())
        for node in window.cluster.class_of.values()
    )


def _check_nodes(window: Instance) -> None:
    """Check that running jobs hold what they ask for, together no more than a node has."""
    held: Counter[tuple[str, str]] = Counter()
    for job in window.jobs:
        if job.running is None:
            continue
        (segment,) = job.running.segments
        of_job: Counter[str] = Counter()
        for placement in segment.allocation:
            for name, amount in placement.resources.items():
                held[placement.node, name] += amount
                of_job[name] += amount
        assert of_job == job.request.totals
    for (node, name), amount in held.items():
        assert amount <= window.cluster.class_of[node].resources[name]


def test_busy_is_the_share_of_cores_held() -> None:
    """At busy=0.5 running jobs hold at least half of the 1024 cores, and less than one large job more."""
    window = eurora_window(10, 7, busy=0.5)
    held = sum(job.request.totals["cores"] for job in window.jobs if job.running is not None)
    assert 512 <= held <= 512 + 16 * 32


def test_same_seed_same_window_and_another_seed_another() -> None:
    """The window is a function of its arguments."""
    assert eurora_window(80, 3, busy=0.3) == eurora_window(80, 3, busy=0.3)
    assert eurora_window(80, 3, busy=0.3) != eurora_window(80, 4, busy=0.3)


def test_demand_only_squeezes_the_arrivals() -> None:
    """At ten times the demand the same jobs come in a tenth of the time."""
    slow, fast = eurora_window(100, 5), eurora_window(100, 5, demand=10)
    assert fast.now == slow.now // 10
    assert [job.steps for job in fast.jobs] == [job.steps for job in slow.jobs]


@pytest.mark.parametrize(
    ("jobs", "busy", "demand"), [(0, 0.0, 1.0), (1, -0.1, 1.0), (1, 1.0, 1.0), (1, 0.0, 0.0), (1, 0.0, float("nan"))]
)
def test_senseless_arguments_are_refused(jobs: int, busy: float, demand: float) -> None:
    """No jobs, no machine left, no arrivals: a programmer's mistake."""
    with pytest.raises(ValueError, match="need jobs"):
        eurora_window(jobs, 0, busy=busy, demand=demand)


def test_marginals_are_those_of_the_real_trace(shared_data: Path) -> None:
    """Ten windows as long as the trace differ from it by at most 0.12 in each variable's distribution function."""
    real = marginals(_real_jobs(shared_data / "eurora" / "trace-2014-04-first.json.gz"))
    generated: dict[str, list[float]] = {name: [] for name in real}
    for seed in range(10):
        for name, sample in marginals(eurora_window(len(real["queue"]), seed).jobs).items():
            generated[name].extend(sample)
    distances = {name: distance(real[name], generated[name]) for name in real}
    assert max(distances.values()) <= 0.12, distances


def test_streams_are_like_the_real_trace(shared_data: Path) -> None:
    """Ten streams as long as the trace are as near to it as windows are, and bring the same load, within a third."""
    jobs = _real_jobs(shared_data / "eurora" / "trace-2014-04-first.json.gz")
    real = marginals(jobs)
    streams = [eurora_stream(len(jobs), seed) for seed in range(10)]
    samples = [marginals(stream.jobs) for stream in streams]
    for name, sample in real.items():
        assert distance(sample, [value for drawn in samples for value in drawn[name]]) <= 0.12, name
    load = sum(map(offered_load, streams)) / len(streams)
    assert load == pytest.approx(offered_load(replace(streams[0], jobs=tuple(jobs))), rel=1 / 3)


def test_streams_come_in_bursts() -> None:
    """Half of the jobs come within a second of the one before; gaps vary three times as much as independent ones."""
    gaps = [later.submit - job.submit for job, later in pairwise(eurora_stream(5000, 1).jobs)]
    assert median(gaps) <= 1
    assert pstdev(gaps) / mean(gaps) > 3


@given(st.integers(1, 80), st.integers(0, 2**32))
@examples(20)
def test_streams_are_instances(jobs: int, seed: int) -> None:
    """Nobody runs; jobs arrive from now on, in order; same seed, same stream; the document reads back."""
    made = eurora_stream(jobs, seed)
    assert made == eurora_stream(jobs, seed)
    assert parse_instance(instance_to_document(made)) == made
    assert [job.submit for job in made.jobs] == sorted(job.submit for job in made.jobs)
    assert len(made.jobs) == jobs
    assert made.now == 0 == made.jobs[0].submit
    assert all(job.running is None and 1 <= (job.runtime or 0) <= job.walltime for job in made.jobs)


def test_no_stream_is_refused() -> None:
    """A stream of nothing is a programmer's mistake."""
    with pytest.raises(ValueError, match="need jobs >= 1, got 0"):
        eurora_stream(0, 1)


def test_distance_tells_a_shifted_sample() -> None:
    """Worked: of 1, 2, 3, 4 half lie at or below 2, of 3, 4, 5, 6 none: 0.5."""
    assert distance([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5
    assert distance([1, 2, 3, 4], [4, 3, 2, 1]) == 0


def _real_jobs(path: Path) -> list[Job]:
    with gzip.open(path) as file:
        document = json.load(file)
    return [
        Job(
            id=job["id"],
            queue=job["queue"],
            submit=job["submit"],
            runtime=job["runtime"],
            steps=(
                Step(
                    walltime=job["walltime"],
                    request=Request(
                        chunks=tuple(
                            Chunk(count=chunk["count"], resources=Amounts(chunk["resources"]))
                            for chunk in job["request"]
                        )
                    ),
                ),
            ),
        )
        for job in document["jobs"]
    ]
