"""When a job would start that is submitted now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.answers import Answers, parse_submission, parse_walltime
from cpsched.domain import Instance
from cpsched.errors import CpschedError
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.metrics import objective_value
from cpsched.verify import verify
from tests.answers.judged import could_start, planned
from tests.answers.test_explain import ALL, window
from tests.answers.test_explain_random import ruled
from tests.oracle.random_instances import instances
from tests.sizes import examples


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7200", 7200),
        ("2h", 7200),
        ("90m", 5400),
        ("90min", 5400),
        ("1d12h", 129600),
        ("1h30m5s", 5405),
        ("1:30:00", 5400),
        ("1-00:00:10", 86410),
        ("", None),
        ("h", None),
        ("1.5h", None),
        ("-1", None),
    ],
)
def test_walltimes_are_read(text: str, seconds: int | None) -> None:
    """A walltime is in seconds, in units, or as on a clock."""
    assert parse_walltime(text) == seconds


def test_a_request_says_all_of_a_job() -> None:
    """User, queue, place and licences may follow the chunks, in any order."""
    instance = window(queues={"debug": {"expected_wait": 60}})
    job = parse_submission("2:ncpus=3,abaqus=2,walltime=1m,queue=debug,user=eve,place=scatter:excl", instance)
    assert (job.walltime, job.queue, job.user, dict(job.licenses)) == (60, "debug", "eve", {"abaqus": 2})
    assert job.request.place.exclusive


@pytest.mark.parametrize(
    "text",
    [
        "2:ncpus=3",
        "2:ncpus=3,walltime=soon",
        "2:ncpus=3,walltime=0",
        "2:ncpus=3,walltime=1h,walltime=2h",
        "2:ncpus=3,walltime=1h,queue=none",
        "walltime=1h",
        "{",
        "{}",
        '{"walltime": 60, "request": "ncpus=1", "wal": 3}',
        '{"walltime": 60, "request": "ncpus=1", "after": [{"job": "nobody", "type": "afterok"}]}',
    ],
)
def test_bad_submissions_are_refused(text: str) -> None:
    """What an instance could not state is refused."""
    with pytest.raises(CpschedError):
        parse_submission(text, window())


def test_a_submission_starts_beside_the_plan() -> None:
    """Behind a job on all nodes for 100 s, a job starts at 100, or after one that it waits for."""
    instance = window({"id": "all", **ALL}, {"id": "one", "request": "ncpus=1"})
    answers = Answers(instance, planned(instance))
    for text, start in (
        ("ncpus=4,walltime=10", 100),
        ('{"request": "ncpus=1", "walltime": 5, "after": [{"job": "one", "type": "afterok", "delay": 7}]}', 207),
    ):
        found = answers.submit(parse_submission(text, instance))
        assert found.planned is not None
        assert found.planned.start == start


def test_a_submission_that_cannot_run_says_why() -> None:
    """Five whole nodes of four are refused in words, and so are four licences of three."""
    instance = window()
    answers = Answers(instance, planned(instance))
    for text, words in (
        ("5:ncpus=4,walltime=10", "at most 4"),
        ("ncpus=1,walltime=10,abaqus=4", "there are 3"),
        ("ncpus=1,walltime=10,ansys=1", "there are 0"),
    ):
        found = answers.submit(parse_submission(text, instance))
        assert found.planned is None
        assert words in found.detail


def test_an_id_that_is_taken_is_refused() -> None:
    """A job of the instance cannot be submitted again."""
    instance = window({"id": "all", **ALL})
    with pytest.raises(ValueError, match="already"):
        Answers(instance, planned(instance)).submit(instance.jobs[0])


@examples(40)
@given(instances() | ruled(), st.data())
def test_submissions_find_the_first_start(instance: Instance, data: st.DataObject) -> None:
    """A copy of a job of the instance starts at a second that the judge allows, and at none of the three before."""
    plan = planned(instance)
    waiting = [job for job in instance.elements() if job.running is None]
    model = data.draw(st.sampled_from(waiting))
    copy = replace(model, id="copy", after=(), start_at=None, not_before=None, deadline=None, priority=None)
    found = Answers(instance, plan).submit(copy).planned
    with_copy = replace(instance, jobs=(*instance.jobs, copy))
    if found is None:
        return
    new = replace(plan, jobs=(*plan.jobs, found))
    new = replace(new, objective=replace(plan.objective, value=objective_value(with_copy, new.jobs)))
    faults = verify(instance_to_document(with_copy), plan_to_document(new))
    assert not [fault for fault in faults if not fault.rule.startswith(("objective", "waiting_room"))]
    if len(copy.request.chunks) == 1:
        for second in range(max(with_copy.earliest_start(copy), found.start - 3), found.start):
            assert not could_start(with_copy, plan, "copy", second)
