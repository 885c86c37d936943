"""Windows with jobs that change: how many there are, that each can be planned, and what they were before."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import FrozenMap, Malleability, RuntimeModel, Step, modes, needs_migration
from cpsched.formats import instance_to_document, parse_instance
from cpsched.lab.workloads import evolving_window, with_malleable, with_moldable
from tests.booking.small_windows import chunk, nodes, running, waiting, window
from tests.sizes import examples
from tests.workloads.changing import changing_windows, made_rigid, with_evolving
from tests.workloads.eurora_windows import eurora_window


def test_a_third_is_malleable() -> None:
    """A third of all jobs can shrink, running ones among them; those made rigid again are what they were."""
    before = eurora_window(200, 1, busy=0.5, demand=100)
    made = with_malleable(before, 1)
    changed = [job for job in made.jobs if job.malleability is not None]
    assert len(changed) == round(len(before.jobs) / 3)
    assert any(job.running is not None for job in changed)
    assert all(len(modes(job)) >= 2 for job in changed)
    assert {bool(job.malleability.stretch) for job in changed if job.malleability} == {True, False}
    assert made_rigid(made) == before


def test_malleable_jobs_may_all_work_by_one_model() -> None:
    """With a model the same jobs are malleable, and run on a half of their cores as it has it (SD-3, SD-9)."""
    before = eurora_window(40, 1, busy=0.5, demand=100)
    mixed, worst = with_malleable(before, 1), with_malleable(before, 1, model=RuntimeModel.WORST)
    assert [job.malleability is None for job in mixed.jobs] == [job.malleability is None for job in worst.jobs]
    halves = Malleability(shares=(0.5,), model=RuntimeModel.WORST)
    assert {job.malleability for job in worst.jobs} == {None, halves}


def test_a_third_evolves() -> None:
    """A third of all jobs has four steps with their whole requests at the most; those made rigid are what they were."""
    before = eurora_window(200, 1, busy=0.5, demand=100)
    made = with_evolving(before, 1)
    changed = [job for job in made.jobs if job.is_evolving]
    assert len(changed) == round(len(before.jobs) / 3)
    assert all(job.running is None and len(job.steps) == 4 and needs_migration(job.steps) is None for job in changed)
    assert {len({step.request.chunks[0].resources for step in job.steps}) > 1 for job in changed} == {True, False}
    assert made_rigid(made) == before


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 1.0]))
@examples(10)
def test_windows_are_instances(seed: int, share: float) -> None:
    """A window is the same for the same seed, and its document reads back as what it was, whatever the share."""
    before = eurora_window(40, seed, busy=0.5, demand=100)
    for change in (with_malleable, with_evolving):
        made = change(before, seed, share=share)
        assert made == change(before, seed, share=share)
        assert parse_instance(instance_to_document(made)) == made


def test_shipped_windows() -> None:
    """Of the windows that are shipped one has malleable jobs, the others have evolving ones."""
    found = {made.name: made for made in changing_windows()}
    assert [any(job.is_evolving for job in made.jobs) for made in found.values()] == [False, True, True]
    assert [any(job.malleability is not None for job in made.jobs) for made in found.values()] == [True, False, False]
    assert found["evolving-0001"] == evolving_window(1)


def test_made_rigid() -> None:
    """Each waiting job has its widest step's request for all its walltime; running ones stay as they are."""
    made = made_rigid(evolving_window(3))
    for before, after in zip(evolving_window(3).jobs, made.jobs, strict=True):
        (step,) = after.steps
        assert step.walltime == before.walltime
        assert step.request.chunks[0].count == max(one.request.chunks[0].count for one in before.steps)
        assert after.expand_limit == 1
    small = window([nodes("a", cores=4)], running("r", 5, a={"cores": 1}), waiting("w", 2, chunk(cores=1)))
    assert made_rigid(small) == small


def test_made_rigid_takes_the_most_of_each_resource() -> None:
    """A job of 2 cores first and 1 GPU then has both all the time."""
    job = waiting("w", 2, chunk(cores=2))
    later = Step(walltime=1, request=waiting("v", 1, chunk(2, cores=1, gpus=1)).request)
    (made,) = made_rigid(window([nodes("a", cores=4, gpus=2)], replace(job, steps=(*job.steps, later)))).jobs
    assert made.walltime == 3
    assert [(one.count, dict(one.resources)) for one in made.request.chunks] == [(2, {"cores": 2, "gpus": 1})]


def test_steps_on_other_nodes_have_no_widest() -> None:
    """A job that wants nodes of one rack first, and of another one then, has no request for all its time."""
    job = waiting("w", 2, chunk(cores=2))
    elsewhere = replace(job.request.chunks[0], where=FrozenMap({"rack": "2"}))
    later = Step(walltime=1, request=replace(job.request, chunks=(elsewhere,)))
    with pytest.raises(ValueError, match="job w"):
        made_rigid(window([nodes("a", cores=4)], replace(job, steps=(*job.steps, later))))


@given(st.integers(0, 2**32))
@examples(10)
def test_moldable_jobs_have_sizes_around_their_own(seed: int) -> None:
    """Half of the jobs have choices, the fastest first, which the machine has: more chunks take less time, and as many
    core seconds or more. The document reads back as what it was; jobs that cannot have a choice have none.
    """
    jobs = [waiting(f"j{number}", 6000, chunk(4, cores=2), runtime=3000) for number in range(8)]
    bound = waiting("bound", 60, chunk(cores=1), deadline=99), running("r", 9, n1={"cores": 1})
    before = window([nodes("n1 n2 n3 n4 n5", cores=4)], *jobs, *bound)
    finer = with_moldable(before, seed, share=0.5, resizable=3)
    assert parse_instance(instance_to_document(finer)) == finer
    assert [job.resizable is not None for job in finer.jobs] == [bool(job.alternatives) for job in finer.jobs]
    made = with_moldable(before, seed, share=0.5)
    assert made == with_moldable(before, seed, share=0.5)
    assert parse_instance(instance_to_document(made)) == made
    chosen = [job for job in made.jobs if job.alternatives]
    assert len(chosen) == 5
    assert all(job in jobs for job in (replace(one, alternatives=()) for one in chosen))
    for job in chosen:
        steps = sorted(job.choices, key=lambda one: one.request.chunks[0].count)
        assert {one.request.chunks[0].count for one in steps} <= {1, 2, 4, 8}
        assert [one.walltime for one in steps] == sorted({one.walltime for one in steps}, reverse=True)
        works = [one.walltime * one.request.chunks[0].count for one in steps]
        assert all(after >= before - 8 for before, after in pairwise(works))  # up to whole seconds
        walltimes = [step.walltime for step in job.alternatives]
        assert walltimes == sorted(walltimes)
        assert {2 * (one.runtime or 0) - one.walltime for one in steps} <= {0, 1}  # half of the walltime, rounded up
