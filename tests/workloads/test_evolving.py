"""The generator of the evolving experiment: the published ranges, the same for the same seed, and jobs made rigid."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import evolving_window
from tests.sizes import examples


@pytest.mark.slow
def test_draws_are_even_within_the_published_ranges() -> None:
    """15 to 20 applications, 1 to 10 steps, 500 to 3600 s, 1 to 75 nodes: all of them occur, means in the middle
    (EVO-14).
    """
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
@examples(10)
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
