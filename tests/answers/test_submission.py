"""When a job would start that is submitted now."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.answers import Answers, parse_submission, parse_walltime
from cpsched.domain import Instance
from cpsched.errors import CpschedError, DocumentError
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
    """Five whole nodes of four are refused in words, three under a switch of two, and four licences of three."""
    switches = {"switch": {"s1": "n[1-2]", "s2": "n[3-4]"}}
    cluster = instance_to_document(window())["cluster"] | {"topology": switches}
    instance = window(cluster=cluster)
    answers = Answers(instance, planned(instance))
    for text, words in (
        ("5:ncpus=4,walltime=10", "at most 4"),
        ("3:ncpus=4,walltime=10,place=within=switch", "within one switch, of which s1 is the largest"),
        ("ncpus=1,walltime=10,abaqus=4", "there are 3"),
        ("ncpus=1,walltime=10,ansys=1", "there are 0"),
    ):
        found = answers.submit(parse_submission(text, instance))
        assert found.planned is None
        assert words in found.detail


RESERVED = {"id": "course", "start": 30, "end": 500, "request": "1:ncpus=4", "users": ["ann"]}


@pytest.mark.parametrize("place", ["free", "free:excl"])
@pytest.mark.parametrize("guests", [0, 1])
def test_a_submission_to_a_reservation_has_its_nodes(guests: int, place: str) -> None:
    """It is on a node of the cluster that the reservation has, also where nobody else is in the reservation, or wants a
    node of it alone.
    """
    inside = [{"id": "first", "request": "ncpus=2", "reservation": "course"}] * guests
    instance = window({"id": "all", **ALL}, *inside, reservations=[RESERVED])
    plan = planned(instance)
    text = json.dumps({"request": "ncpus=2", "walltime": 50, "user": "ann", "reservation": "course", "place": place})
    found = Answers(instance, plan).submit(parse_submission(text, instance)).planned
    assert found is not None
    ((held,),) = [segment.allocation for segment in found.segments]
    assert held.node in {placement.node for one in plan.reservations for placement in one.allocation}
    assert held.resources == {"cores": 2}
    assert found.start == (130 if guests and place == "free:excl" else 30)


def test_a_submission_that_a_rule_refuses_names_it() -> None:
    """Who may not run in a reservation, or may have nothing, is told so."""
    limit = {"consumer": {"user": "eve"}, "resource": "cores", "items": "0"}
    instance = window({"id": "all", **ALL}, reservations=[RESERVED], limits=[limit])
    answers = Answers(instance, planned(instance))
    for more, words in (
        ({"user": "bob", "reservation": "course"}, "only its users may run in reservation course (reservations[0])"),
        ({"user": "eve"}, "user eve may have 0 cores at a time (limits[0])"),
    ):
        text = json.dumps({"request": "ncpus=1", "walltime": 10, **more})
        found = answers.submit(parse_submission(text, instance))
        assert (found.planned, found.detail) == (None, words)


def test_a_submission_keeps_to_a_pool_that_nobody_else_is_kept_from() -> None:
    """All jobs of the plan are let into the pool of two nodes: a new one that is not gets one of the others."""
    pool = {"resource": "cores", "items": "100%", "open_to": {"users": ["ann"]}, "nodes": "n[1-2]"}
    instance = window({"id": "one", "request": "ncpus=1", "user": "ann"}, free_pools=[pool])
    found = Answers(instance, planned(instance)).submit(parse_submission("2:ncpus=4,walltime=9,user=bob", instance))
    assert found.planned is not None
    assert {held.node for held in found.planned.segments[0].allocation} == {"n3", "n4"}


def test_an_id_that_is_taken_is_refused() -> None:
    """A job of the instance cannot be submitted again."""
    instance = window({"id": "all", **ALL})
    with pytest.raises(ValueError, match="job: Expected an id that no job of the instance has"):
        Answers(instance, planned(instance)).submit(instance.jobs[0])


def test_an_array_is_no_single_submission() -> None:
    """When three elements would start is no question about one job."""
    instance = window()
    job = parse_submission('{"request": "ncpus=1", "walltime": 5, "array": {"indices": "0-2"}}', instance)
    with pytest.raises(DocumentError, match="array: Expected one job, got an array of 3"):
        Answers(instance, planned(instance)).submit(job)


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
