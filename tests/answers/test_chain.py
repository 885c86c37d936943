"""The chain behind a start: each link is a job without which the one before could start a second earlier."""

from __future__ import annotations

import pytest
from hypothesis import given

from cpsched.answers import MOST_LINKS, Answers, CauseKind, chain_lines
from cpsched.domain import Instance
from tests.answers.judged import could_start, planned
from tests.answers.test_explain import window
from tests.oracle.random_instances import instances
from tests.sizes import examples

WIDE = "4:ncpus=4"


def test_a_chain_goes_on_to_the_first_job() -> None:
    """Through nodes and through a dependency, down to the job that begins at once."""
    instance = window(
        {"id": "first", "request": "3:ncpus=4", "walltime": 50, "priority": 9},
        {"id": "second", "request": WIDE, "priority": 8},
        {"id": "third", "request": "1:ncpus=1", "after": [{"job": "second", "type": "afterany"}], "priority": 7},
    )
    chain = Answers(instance, planned(instance)).chain("third")
    assert [(link.job, link.start, link.cause) for link in chain] == [
        ("third", 150, CauseKind.DEPENDENCY),
        ("second", 50, CauseKind.RESOURCE),
        ("first", 0, None),
    ]
    assert [*chain_lines(instance, chain)] == [
        "the chain behind its start:",
        "  job third of ann starts at now + 2 min 30 s, when job second has ended at now + 2 min 30 s "
        "(dependency: waits for other jobs (afterany))",
        "  job second of ann starts at now + 50 s, when job first has ended at now + 50 s "
        "(resource: too little is free of cores: 1 of 4 chunks find place)",
        "  job first of ann starts at now + 0 s",
    ]


def test_a_long_chain_is_cut_and_a_job_alone_is_none() -> None:
    """Of a queue of wide jobs the last ones are named; a job that starts at once has nothing behind it."""
    instance = window(*({"id": f"j{number}", "request": WIDE} for number in range(MOST_LINKS + 3)))
    answers = Answers(instance, planned(instance))
    assert len(answers.chain(f"j{MOST_LINKS + 2}")) == MOST_LINKS
    assert [*chain_lines(instance, answers.chain("j0"))] == []
    with pytest.raises(ValueError, match="Expected a job of the instance, got 'j99'"):
        answers.chain("j99")


@examples(40)
@given(instances())
def test_without_its_holder_a_job_could_start_a_second_earlier(instance: Instance) -> None:
    """In random windows, as the judge sees it: without the job that a link names, or where that is not enough without
    all that end at that second.
    """
    plan = planned(instance)
    answers, entries = Answers(instance, plan), {job.id: job for job in instance.elements()}
    for job in plan.jobs:
        for link in answers.chain(job.id):
            if link.holder is None or link.cause is CauseKind.DEPENDENCY:
                continue
            assert link.holder.end == link.start
            ended = {one.id for one in plan.jobs if one.end == link.start}
            if len(entries[link.job].request.chunks) > 1:
                continue  # the judge tries other orders of the kinds, and finds other nodes
            assert any(
                could_start(instance, plan, link.job, link.start - 1, without=jobs)
                for jobs in ({link.holder.job}, ended)
            )
