"""Stops in documents: what is wrong is named with its path."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import Preemptible, StopKind
from cpsched.errors import DocumentError
from cpsched.formats import parse_instance
from tests.formats.format_documents import job, minimal_instance

SAVED = {"by": "checkpoint", "cost": 5, "interval": 60}


@pytest.mark.parametrize(
    ("preemptible", "rules", "fault"),
    [
        (SAVED | {"cost": 60}, {}, "jobs[0].preemptible: Expected a cost below the interval of 60 s, got 60"),
        ({"by": "checkpoint"}, {}, "jobs[0].preemptible: Expected the interval from one checkpoint to the next"),
        ({"by": "requeue", "cost": 1}, {}, "jobs[0].preemptible: Expected cost and interval of checkpoints only"),
        ({"by": "suspend", "cost": 1}, {}, "jobs[0].preemptible: Expected cost and interval of checkpoints only"),
        ({"by": "hope"}, {}, "jobs[0].preemptible.by: Expected 'requeue', 'checkpoint' or 'suspend'"),
        (
            SAVED,
            {"queues": {"a": ["b"], "b": ["a"]}},
            "preemption.queues.a: Expected no queues that may stop each other",
        ),
        (SAVED, {"queues": {"a": ["x"]}}, 'preemption.queues.a[0]: Expected a known queue, got "x"'),
        (SAVED, {"queues": {"x": []}}, 'preemption.queues.x: Expected a known queue, got "x"'),
        (SAVED, {"stops": 0}, "preemption.stops: Expected an integer > 0, got 0"),
        (SAVED, {"notice": -1}, "preemption.notice: Expected an integer >= 0 (seconds), got -1"),
    ],
)
def test_faults_are_named(preemptible: Any, rules: Any, fault: str) -> None:
    """A checkpoint as long as its interval, queues that stop each other, and unknown queues are refused."""
    queues = {"a": {"expected_wait": 60}, "b": {"expected_wait": 60}}
    document = minimal_instance(job("7", preemptible=preemptible), queues=queues, preemption=rules)
    with pytest.raises(DocumentError) as refused:
        parse_instance(document)
    (found,) = refused.value.faults
    path, _, message = fault.partition(": ")
    assert found.path.partition(" ")[0] == path
    assert found.message.startswith(message)


@pytest.mark.parametrize(
    "keys", [{"request": "ncpus=1:mem=1mb", "place": "scatter:excl"}, {"request": "ncpus=1:mem=1mb,place=excl"}]
)
def test_a_job_that_has_its_nodes_for_itself_cannot_lend_cores(keys: dict[str, str]) -> None:
    """A job that is suspended leaves its cores to others, so it shares its nodes: in both ways of saying that."""
    with pytest.raises(DocumentError, match="share its nodes"):
        parse_instance(minimal_instance(job("7", preemptible={"by": "suspend"}, **keys)))


def test_a_job_that_is_suspended_says_what_it_keeps() -> None:
    """A job that would keep nothing but its place is refused."""
    with pytest.raises(DocumentError, match="Expected mem in each chunk"):
        parse_instance(minimal_instance(job("7", request="ncpus=1", preemptible={"by": "suspend"})))


@pytest.mark.parametrize("keys", [{"deadline": 900}, {"start_at": 5}, {"malleable": {"shares": [0.5]}}])
def test_what_cannot_begin_again_cannot_be_stopped(keys: Any) -> None:
    """A job that changes as it runs, or has one time only, cannot be stopped."""
    with pytest.raises(DocumentError, match="Expected preemptible in a job without"):
        parse_instance(minimal_instance(job("7", preemptible=SAVED, **keys)))


@pytest.mark.parametrize(
    ("seconds", "notice", "kept"),
    [(59, 0, 0), (60, 0, 55), (119, 0, 55), (119, 4, 55), (119, 5, 109), (9, 5, 0), (120, 5, 115)],
)
def test_what_is_kept(seconds: int, notice: int, kept: int) -> None:
    """The last checkpoint is kept, or one that is written in the notice, less what it takes to begin from it."""
    way = Preemptible(by=StopKind.CHECKPOINT, cost=5, interval=60)
    assert way.kept(seconds, notice) == kept
    assert Preemptible(by=StopKind.REQUEUE).kept(seconds, notice) == 0
    assert Preemptible(by=StopKind.SUSPEND).kept(seconds, notice) == seconds
