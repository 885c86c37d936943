"""Jobs that change: the shares of a malleable one, the layers of an evolving one."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import (
    Amounts,
    Arrangement,
    Chunk,
    FrozenMap,
    Job,
    Malleability,
    Place,
    Request,
    RuntimeModel,
    Step,
    chunk_layers,
    modes,
    needs_migration,
)


def _request(*chunks: tuple[int, dict[str, int]], place: Place | None = None) -> Request:
    asked = tuple(Chunk(count=count, resources=Amounts(resources)) for count, resources in chunks)
    return Request(chunks=asked, place=place or Place())


def _malleable(request: Request, **malleability: Any) -> Job:
    steps = (Step(walltime=3600, request=request),)
    return Job(id="1", submit=0, steps=steps, malleability=Malleability(**malleability))


def _evolving(*requests: Request) -> Job:
    return Job(id="1", submit=0, steps=tuple(Step(walltime=10, request=request) for request in requests))


def test_half_of_the_cores_takes_twice_the_time() -> None:
    """A job at half of its cores keeps memory and GPUs, and runs for twice its walltime (SD-3)."""
    full, half = modes(_malleable(_request((2, {"cores": 48, "mem": 100, "gpus": 1})), shares=(0.5,)))
    assert full.rate == 1
    assert half.request.chunks[0].resources == {"cores": 24, "mem": 100, "gpus": 1}
    assert half.time_for(3600) == 7200


@pytest.mark.parametrize(
    ("model", "rate"), [(RuntimeModel.IDEAL, Fraction(6, 14)), (RuntimeModel.WORST, Fraction(1, 3))]
)
def test_models_differ_where_cores_are_rounded(model: RuntimeModel, rate: Fraction) -> None:
    """The ideal model counts all cores, the worst one the chunk that has least (eq. 5 and 6)."""
    request = _request((2, {"cores": 3}), (1, {"cores": 8, "mem": 1}), (1, {"mem": 1}))
    _, half = modes(_malleable(request, shares=(0.5,), model=model))
    assert [chunk.resources.get("cores") for chunk in half.request.chunks] == [1, 4, None]
    assert half.rate == rate


def test_a_stretch_that_is_known_overrides_the_model() -> None:
    """A stated slowness on a share overrides any model."""
    job = _malleable(_request((1, {"cores": 8})), shares=(0.5, 0.25), stretch=FrozenMap({0.5: 1.25}))
    assert [mode.rate for mode in modes(job)] == [1, Fraction(4, 5), Fraction(1, 4)]


def test_shares_that_change_nothing_are_left_out() -> None:
    """A chunk keeps one core at least, and equal requests are one way to run."""
    job = _malleable(_request((4, {"cores": 2})), shares=(0.75, 0.5, 0.1))
    assert [mode.share for mode in modes(job)] == [1.0, 0.75]
    assert [mode.share for mode in modes(_malleable(_request((4, {"mem": 2})), shares=(0.5,)))] == [1.0]


def test_layers_come_last_and_go_first() -> None:
    """Of the chunks of one kind those that came last go first; nobody who stays is replaced."""
    job = _evolving(*(_request((count, {"cores": 1})) for count in (4, 2, 5)))
    found = [(layer.count, layer.first, layer.last) for layer in chunk_layers(job)]
    assert found == [(2, 0, 2), (2, 0, 0), (2, 2, 2), (1, 2, 2)]


def test_a_packed_job_is_one_unit() -> None:
    """All chunks of a packed job stand on one node, in all of its steps."""
    place = Place(arrangement=Arrangement.PACK)
    job = _evolving(_request((1, {"cores": 1}), place=place), _request((3, {"cores": 1}), (1, {"mem": 1}), place=place))
    (layer,) = chunk_layers(job)
    assert (layer.kind, layer.count, layer.first, layer.last) == (None, 1, 0, 1)
    assert needs_migration(job.steps) is None


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=2), min_size=1, max_size=6))
def test_lives_make_the_request_of_each_step(counts: list[list[int]]) -> None:
    """In each step the units that are there are those that the step asks for, and no layer could be longer."""
    job = _evolving(*(_request(*((count, {"cores": 1}) for count in step)) for step in counts))
    there = Counter(
        (step, layer.kind)
        for layer in chunk_layers(job)
        for step in range(layer.first, layer.last + 1)
        for _ in range(layer.count)
    )
    assert there == {(step, kind): count for step, kinds in enumerate(counts) for kind, count in enumerate(kinds)}
    for layer in chunk_layers(job):
        for other in chunk_layers(job):
            assert layer.kind != other.kind or layer.last + 1 != other.first


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ([(2, 4)], [(2, 8)], None),
        ([(2, 4)], [(4, 4)], None),
        ([(4, 2)], [(2, 4)], None),
        ([(4, 2)], [(2, 8)], "step 1 asks for more in fewer chunks"),
        ([(2, 8)], [(4, 2)], "step 1 asks for less in more chunks"),
        ([(2, 4), (2, 4)], [(1, 4), (3, 4)], "step 1 asks for more chunks of one kind and for fewer of another"),
    ],
)
def test_who_cannot_keep_nodes_by_layers_is_named(
    before: list[tuple[int, int]], after: list[tuple[int, int]], fault: str | None
) -> None:
    """More in fewer chunks, or less in more of them, would have to be packed anew."""
    requests = [_request(*((count, {"cores": cores}) for count, cores in step)) for step in (before, after)]
    assert needs_migration(_evolving(*requests).steps) == fault
