"""What happened: a tiny record that is allowed, and what is refused when one thing in it changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

from cpsched.formats import parse_instance, parse_plan
from cpsched.metrics import objective_value
from cpsched.verify import verify
from tests.verify.small_documents import Document, at, instance, job, on, plan, planned, segment, waiting


class Trial(NamedTuple):
    """An instance, a record that keeps the contract, and one like it that breaks the rule."""

    name: str
    rule: str
    instance: Document
    allowed: Document
    refused: Document


def record(jobs: Iterable[Document] = (), room: Iterable[Document] = (), *attempts: Document, **keys: Any) -> Document:
    """Return a record for an instance at second 0 whose jobs all came at second 0 and have no queue."""
    return plan(jobs, room, **({"record": True, "attempts": list(attempts)} | keys))


def ran(name: str, start: int, seconds: int, node: str = "n1") -> Document:
    """Return a run of a job of two cores."""
    return at(name, start, on(node, cores=2), walltime=seconds)


#: n1 is down from 40 to 60; job a would take 70 of its 100 s.
DOWN = [{"nodes": "n1", "start": 40, "end": 60}]
FAILS = instance(job(runtime=70), outages=DOWN)
AFTER_AN_ATTEMPT = record([ran("a", 40, 70, "n2")], [], ran("a", 0, 40))

RUNTIMES = [
    Trial(
        "it took its runtime", "walltime", instance(job(runtime=70)), record([ran("a", 0, 70)]), record([at("a", 0)])
    ),
    Trial("it was stopped", "walltime", instance(job(runtime=170)), record([at("a", 0)]), record([ran("a", 0, 170)])),
    Trial("no runtime is known", "walltime", instance(job()), record([at("a", 0)]), record([ran("a", 0, 99)])),
    Trial("a plan books it all", "walltime", instance(job(runtime=70)), plan([at("a", 0)]), plan([ran("a", 0, 70)])),
    Trial(
        "who waits for it waits for its real end",
        "dependency",
        instance(job(runtime=70), job("b", after=[{"job": "a", "type": "afterok"}])),
        record([ran("a", 0, 70), at("b", 70)]),
        record([ran("a", 0, 70), at("b", 69, on("n2", cores=2))]),
    ),
    Trial(
        "its nodes are free when it has ended",
        "capacity",
        instance(job("a", "1:ncpus=3", runtime=70), job("b")),
        record([at("a", 0, on("n1", cores=3), walltime=70), at("b", 70)]),
        record([at("a", 0, on("n1", cores=3), walltime=70), at("b", 69)]),
    ),
    Trial(
        "it starts when it has come",
        "earliest_start",
        instance(job(submit=5, runtime=70)),
        record([ran("a", 5, 70)], objective=plan()["objective"]),
        record([ran("a", 4, 70)], objective=plan()["objective"]),
    ),
    Trial("it proves nothing", "record", instance(), record(), record(objective=plan()["objective"] | {"bound": 0.0})),
    Trial(
        "some never start",
        "waiting_room",
        instance(job()),
        record([], [waiting("a", "not_started")]),
        plan([], [waiting("a", "not_started")]),
    ),
]

OUTAGES = [
    Trial("it runs on another node", "outage", FAILS, record([ran("a", 0, 70, "n2")]), record([ran("a", 0, 70)])),
    Trial("it runs afterwards", "outage", FAILS, record([ran("a", 60, 70)]), record([ran("a", 59, 70)])),
    Trial(
        "it has just ended",
        "outage",
        instance(job(runtime=40), outages=DOWN),
        record([ran("a", 0, 40)]),
        record([ran("a", 1, 40)]),
    ),
    Trial(
        "it was cut short", "attempt", FAILS, AFTER_AN_ATTEMPT, record([ran("a", 40, 70, "n2")], [], ran("a", 0, 39))
    ),
    Trial(
        "its own node fails",
        "attempt",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 40, 70, "n2")], [], ran("a", 0, 40, "n2")),
    ),
    Trial(
        "it is started again later",
        "attempt",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 39, 70, "n2")], [], ran("a", 0, 40)),
    ),
    Trial(
        "it is started once at a time",
        "attempt",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 40, 70, "n2")], [], ran("a", 0, 40), ran("a", 0, 40)),
    ),
    Trial(
        "who is done is not cut short",
        "walltime",
        instance(job(runtime=40), outages=DOWN),
        record([ran("a", 0, 40)]),
        record([ran("a", 40, 40, "n2")], [], ran("a", 0, 40)),
    ),
    Trial(
        "an attempt takes its cores",
        "capacity",
        instance(job(runtime=70), job("b", "1:ncpus=3", runtime=30), outages=DOWN),
        record([ran("a", 40, 70, "n2"), at("b", 0, on("n2", cores=3), walltime=30)], [], ran("a", 0, 40)),
        record([ran("a", 40, 70, "n2"), at("b", 0, on("n1", cores=3), walltime=30)], [], ran("a", 0, 40)),
    ),
    Trial(
        "an attempt asks as its job does",
        "request",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 40, 70, "n2")], [], at("a", 0, on("n1", cores=1), walltime=40)),
    ),
    Trial(
        "an attempt waits for its job's turn",
        "earliest_start",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 40, 70, "n2")], [], ran("a", -1, 41)),
    ),
    Trial(
        "only records have attempts",
        "record",
        instance(job(), outages=DOWN),
        record([at("a", 40, on("n2", cores=2))], [], ran("a", 0, 40)),
        record([at("a", 40, on("n2", cores=2))], [], ran("a", 0, 40), record=False),
    ),
    Trial(
        "an attempt of nobody",
        "presence",
        FAILS,
        AFTER_AN_ATTEMPT,
        record([ran("a", 40, 70, "n2")], [], ran("a", 0, 40), ran("x", 0, 40)),
    ),
    Trial(
        "who is cut short may never start again",
        "presence",
        FAILS,
        record([], [waiting("a", "not_started")], ran("a", 0, 40)),
        record([], [], ran("a", 0, 40)),
    ),
    Trial(
        "an attempt was a start",
        "dependency",
        instance(job(runtime=70), job("b", after=[{"job": "a", "type": "after"}]), outages=DOWN),
        record([ran("a", 40, 70, "n2"), at("b", 1, on("n2", cores=2))], [], ran("a", 0, 40)),
        record([ran("a", 60, 70), at("b", 1, on("n2", cores=2))]),
    ),
]


def _running(**members: Any) -> Document:
    """Return a job of 100 s that has two cores of n1 since -50."""
    return job("r", running={"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 2}}]}, **members)


def _held(start: int, end: int) -> Document:
    return planned("r", segment(start, end, on("n1", None, None, cores=2)))


def _worth(value: float) -> Document:
    """Return the objective of a record in which running jobs end earlier or later than the instance says."""
    return {"objective": plan()["objective"] | {"value": value}}


RUNNING = [
    Trial(
        "a running job ends when it really does",
        "running",
        instance(_running(runtime=60)),
        record([_held(-50, 10)], **_worth(-40 / 1800)),
        record([_held(-50, 50)]),
    ),
    Trial(
        "one that should have ended ends in a second",
        "running",
        instance(_running(runtime=20)),
        record([_held(-50, 1)], **_worth(-49 / 1800)),
        record([_held(-50, -30)], **_worth(-80 / 1800)),
    ),
    Trial(
        "a running job is cut short",
        "attempt",
        instance(_running(), outages=DOWN),
        record([at("r", 60)], [], _held(-50, 40), **_worth(110 / 1800)),
        record([at("r", 60)], [], _held(-49, 40), **_worth(110 / 1800)),
    ),
    Trial(
        "a running job that is done is not cut short",
        "attempt",
        instance(_running(runtime=91), outages=DOWN),
        record([ran("r", 60, 91)], [], _held(-50, 40), **_worth(101 / 1800)),
        record([ran("r", 60, 91)], [], _held(-50, 41), **_worth(101 / 1800)),
    ),
    Trial(
        "a running job does not outlast its node",
        "outage",
        instance(_running(), outages=DOWN),
        record([at("r", 60)], [], _held(-50, 40), **_worth(110 / 1800)),
        record([_held(-50, 50)]),
    ),
]

#: Two steps of 50 s; with a runtime of 70 s the second one is left after 20.
STEPS = [{"walltime": 50, "request": "1:ncpus=1"}, {"walltime": 50, "request": "1:ncpus=2"}]


def evolving(**members: Any) -> Document:
    """Return a job of two steps, of which the first may be held for up to 100 s."""
    return job(walltime=None, request=None, steps=STEPS, expand_limit=2, **members)


def grown(*cuts: int, node: str = "n1") -> Document:
    """Return a run of one core, then two, from cut to cut."""
    held = (on(node, cores=1), on(node, cores=2))
    return planned("a", *(segment(start, end, one) for start, end, one in zip(cuts, cuts[1:], held, strict=False)))


def shrunk(*pieces: tuple[int, int, int], node: str = "n1") -> Document:
    """Return a run of a malleable job: (start, end, cores), on one node."""
    return planned("a", *(segment(start, end, on(node, cores=cores)) for start, end, cores in pieces))


#: 100 s of work on 4 cores, or on half of them.
MALLEABLE: Document = {"request": "1:ncpus=4", "malleable": {"shares": [0.5]}}

CHANGING = [
    Trial(
        "it ends in its second step",
        "evolving",
        instance(evolving(runtime=70)),
        record([grown(0, 50, 70)]),
        record([grown(0, 50, 100)]),
    ),
    Trial(
        "it ends in its first step",
        "evolving",
        instance(evolving(runtime=30)),
        record([grown(0, 30)]),
        record([grown(0, 30, 31)]),
    ),
    Trial(
        "held time is no work",
        "evolving",
        instance(evolving(runtime=70)),
        record([grown(0, 100, 120)]),
        record([grown(0, 100, 119)]),
    ),
    Trial(
        "the step in which it ends is not held",
        "evolving",
        instance(evolving(runtime=50)),
        record([grown(0, 50)]),
        record([grown(0, 51)]),
    ),
    Trial(
        "it was cut short in its first step",
        "evolving",
        instance(evolving(runtime=70), outages=[{"nodes": "n1", "start": 110, "end": 120}]),
        record([grown(110, 160, 180, node="n2")], [], grown(10, 110)),
        record([grown(110, 160, 180, node="n2")], [], grown(9, 110)),
    ),
    Trial(
        "it was stopped when its step was done",
        "attempt",
        instance(evolving(runtime=70), outages=[{"nodes": "n2", "start": 40, "end": 45}]),
        record([grown(60, 110, 130)], [], grown(0, 50)),
        record([grown(60, 110, 130)], [], grown(0, 49)),
    ),
    Trial(
        "it was stopped when nodes were out",
        "attempt",
        instance(evolving(runtime=70), outages=[{"nodes": "n2", "start": 60, "end": 80}]),
        record([grown(60, 110, 130)], [], grown(0, 60)),
        record([grown(60, 110, 130)], [], grown(0, 59)),
    ),
    Trial(
        "it was done and not cut short",
        "evolving",
        instance(evolving(runtime=70), outages=[{"nodes": "n1", "start": 70, "end": 80}]),
        record([grown(0, 50, 70)]),
        record([grown(70, 120, 140, node="n2")], [], grown(0, 50, 70)),
    ),
    Trial(
        "half of its cores for 60 s, then all",
        "malleable",
        instance(job(**MALLEABLE, runtime=70)),
        record([shrunk((0, 60, 2), (60, 100, 4))], **_worth(30 / 1800)),
        record([shrunk((0, 60, 2), (60, 101, 4))]),
    ),
    Trial(
        "its work was not done when it was cut short",
        "malleable",
        instance(job(**MALLEABLE, runtime=21), outages=DOWN),
        record([shrunk((40, 61, 4), node="n2")], [], shrunk((0, 40, 2))),
        record([shrunk((40, 61, 4), node="n2")], [], shrunk((0, 38, 2), (38, 40, 4))),
    ),
]
TRIALS = [*RUNTIMES, *OUTAGES, *RUNNING, *CHANGING]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}: {trial.name}")
def test_the_allowed_record_is_valid(trial: Trial) -> None:
    """A record that keeps the contract has no violation."""
    assert verify(trial.instance, trial.allowed) == ()


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}: {trial.name}")
def test_the_changed_record_is_refused(trial: Trial) -> None:
    """The same record with one thing changed breaks the rule that forbids it."""
    assert trial.rule in {violation.rule for violation in verify(trial.instance, trial.refused)}


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"{trial.rule}: {trial.name}")
def test_both_reckon_the_same_value(trial: Trial) -> None:
    """What the metrics say of a valid record is what the judge has recomputed."""
    read = parse_plan(trial.allowed)
    value = objective_value(parse_instance(trial.instance), read.jobs, is_record=True)
    assert value == pytest.approx(read.objective.value)


def rules_of(document: Document, answer: Document) -> set[str]:
    return {violation.rule for violation in verify(document, answer)}


def test_a_malleable_job_that_runs_ends_when_its_work_is_done() -> None:
    """Since -50 it has half of its cores; with all from 0 on it has done 60 s of work, its runtime, at 35."""
    held = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    document = instance(job("r", **MALLEABLE, runtime=60, running={"start": -50, "allocation": held}))

    def stated(end: int) -> Document:
        whole = on("n1", None, None, cores=4)
        return planned("r", segment(-50, 0, on("n1", None, None, cores=2)), segment(0, end, whole))

    assert rules_of(document, record([stated(35)], **_worth((35 - 150) / 1800))) == set()
    assert "running" in rules_of(document, record([stated(36)]))
    assert "running" in rules_of(document, plan([stated(35)]))


def test_what_cannot_be_judged_is_said() -> None:
    """A running evolving job with a runtime is refused by name, for nobody can tell in which step it ends."""
    document = instance(evolving(running={"start": -50, "allocation": [on("n1", None, None, cores=1)]}, runtime=70))
    violations = verify(document, record([planned("a", segment(-50, 50, on("n1", None, None, cores=1)))]))
    assert [(one.rule, one.subject) for one in violations] == [("record", "a")]
    assert "cannot be judged" in violations[0].message


def test_limits_hold_for_each_run() -> None:
    """An attempt of 40 s and a run of 70 s break no limit of 70 s for one request, but one of 39 s twice."""
    document = instance(job(runtime=70, user="u"), outages=DOWN)

    def limited(**bound: Any) -> Document:
        return document | {"limits": [{"consumer": {"user": "u"}, "resource": "cores", **bound}]}

    assert rules_of(limited(duration=70), AFTER_AN_ATTEMPT) == set()
    assert [one.rule for one in verify(limited(duration=39), AFTER_AN_ATTEMPT)] == ["limit", "limit"]
    assert rules_of(limited(area=140, area_scope="outstanding"), AFTER_AN_ATTEMPT) == set()
    assert rules_of(limited(area=139, area_scope="outstanding"), AFTER_AN_ATTEMPT) == {"limit"}


def test_a_hard_wait_is_that_of_the_first_start() -> None:
    """A job that had started in time may be started again later than its queue wants."""
    queues = {"q": {"expected_wait": 1800, "max_wait": {"seconds": 30, "hard": True, "price": 0}}}
    document = instance(job(runtime=70, queue="q"), outages=DOWN, queues=queues)
    assert rules_of(document, AFTER_AN_ATTEMPT) == set()
    assert rules_of(document, record([ran("a", 40, 70, "n2")])) == {"max_wait"}


def test_plans_know_of_no_outage() -> None:
    """A plan is made by those who do not know what will fail: it may run through an outage."""
    assert verify(FAILS, plan([at("a", 0)])) == ()


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"record": "yes"}, "record"),
        ({"attempts": 5, "record": True}, "attempts"),
        ({"attempts": [{"id": "a"}], "record": True}, "attempts[0].start"),
    ],
)
def test_what_is_no_record_is_said_with_its_path(keys: Document, fault: str) -> None:
    """A malformed part of a record is a violation of its shape."""
    assert ("structure", fault) in {(one.rule, one.subject) for one in verify(instance(), plan() | keys)}


@pytest.mark.parametrize("end", [1, 30])
def test_a_malleable_job_beyond_its_walltime_ends_as_the_instance_says(end: int) -> None:
    """No plan may change it, whatever its runtime: it is a fact, and no work of it is asked for."""
    held = segment(-16, end, on("n1", cores=4))
    late = job(**MALLEABLE, submit=-20, walltime=5, runtime=2, running={"start": -16, "segments": [held]})
    assert verify(instance(late), record([planned("a", held)])) == ()
