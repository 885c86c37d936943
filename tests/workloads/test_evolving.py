"""The generator of the evolving experiment: the published ranges, the same for the same seed, and jobs made rigid."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpsched.domain import Step
from cpsched.formats import instance_to_document, parse_instance
from cpsched.workloads import evolving_window, made_rigid
from tests.booking.small_windows import chunk, nodes, running, waiting, window


def test_draws_are_even_within_the_published_ranges() -> None:
    """15 to 20 applications, 1 to 10 steps, 500 to 3600 s, 1 to 75 nodes: all of them occur, means in the middle."""
    windows = [evolving_window(seed) for seed in range(600)]
    jobs = [job for made in windows for job in made.jobs]
    steps = [step for job in jobs for step in job.steps]
    drawn = {
        (15, 20): [len(made.jobs) for made in windows],
        (1, 10): [len(job.steps) for job in jobs],
        (500, 3600): [step.walltime for step in steps],
        (1, 75): [step.request.chunks[0].count for step in steps],
    }
    for (least, most), values in drawn.items():
        assert (min(values), max(values)) == (least, most)
        assert len(set(values)) == most - least + 1
        middle, spread = (least + most) / 2, (most - least) / 12**0.5
        assert abs(sum(values) / len(values) - middle) < 4 * spread / len(values) ** 0.5
    assert max(Counter(drawn[1, 10]).values()) < 1.2 * len(jobs) / 10


def test_known_window() -> None:
    """The first job of seed 0, whose draws are documented as stable, on any Python."""
    job = evolving_window(0).jobs[0]
    assert [(step.walltime, step.request.chunks[0].count) for step in job.steps[:3]] == [
        (1804, 20),
        (2085, 31),
        (2930, 23),
    ]


@given(st.integers(0, 2**32), st.integers(75, 200))
@settings(max_examples=10)
def test_windows_are_instances(seed: int, count: int) -> None:
    """A window is the same for the same seed, and its document reads back as what it was."""
    made = evolving_window(seed, nodes=count)
    assert made == evolving_window(seed, nodes=count)
    assert len(made.cluster.node_names) == count
    assert parse_instance(instance_to_document(made)) == made


def test_small_machines_are_refused() -> None:
    """A machine must have room for the widest step."""
    with pytest.raises(ValueError, match="at least 75 nodes, got 74"):
        evolving_window(1, nodes=74)


def test_made_rigid() -> None:
    """Each waiting job has its widest step's request for all its walltime; running ones stay as they are."""
    made = made_rigid(evolving_window(3))
    for before, after in zip(evolving_window(3).jobs, made.jobs, strict=True):
        (step,) = after.steps
        assert step.walltime == before.walltime
        assert step.request.chunks[0].count == max(one.request.chunks[0].count for one in before.steps)
        assert after.expand_limit == 1
    assert parse_instance(instance_to_document(made)) == made
    small = window([nodes("a", cores=4)], running("r", 5, a={"cores": 1}), waiting("w", 2, chunk(cores=1)))
    assert made_rigid(small) == small


def test_steps_of_other_chunks_have_no_widest() -> None:
    """Which of 2 cores and 1 GPU is wider nobody can say."""
    job = waiting("w", 2, chunk(cores=2))
    other = Step(walltime=1, request=waiting("v", 1, chunk(gpus=1)).request)
    with pytest.raises(ValueError, match="job w"):
        made_rigid(window([nodes("a", cores=4, gpus=1)], replace(job, steps=(*job.steps, other))))
