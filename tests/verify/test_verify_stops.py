"""Jobs that are stopped for others: what is allowed, and what is refused when one thing in it changes."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.verify import verify
from cpsched.verify.instance import read_instance
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan, segment, waiting
from tests.verify.test_verify_record import DOWN, Trial, record

BY_PRIORITY: Document = {}
LOST: Document = {"by": "requeue"}
#: It writes a checkpoint after each 15 s, which takes 4 s.
SAVED: Document = {"by": "checkpoint", "cost": 4, "interval": 15}
#: It keeps its memory and waits for its cores.
ASLEEP: Document = {"by": "suspend"}
QUEUES: Document = {"high": {"expected_wait": 1800, "priority": 5}, "low": {"expected_wait": 1800}}


def window(preemptible: Document | None = LOST, rules: Document | None = BY_PRIORITY, **keys: Any) -> Document:
    """Return an instance in which u may stop a, which really takes 70 s: both have all of a node."""
    return instance(
        job("a", "1:ncpus=4", queue="low", **({"runtime": 70, "preemptible": preemptible} | keys)),
        job("u", "1:ncpus=4", queue="high", runtime=10),
        queues=QUEUES,
        **({"preemption": rules} if rules is not None else {}),
    )


def whole(name: str, start: int, seconds: int, node: str = "n1") -> Document:
    """Return a run on a whole node."""
    return at(name, start, on(node, cores=4), walltime=seconds)


def stopped(at_second: int, left: int, *, urgent: str = "n1") -> Document:
    """Return a record in which a is stopped for u, and then takes so many seconds."""
    urgent_run = whole("u", at_second, 10, urgent)
    return record([whole("a", at_second + 10, left), urgent_run], [], whole("a", 0, at_second))


TRIALS = [
    Trial("it begins anew", "walltime", window(), stopped(40, 70), stopped(40, 30)),
    Trial("it continues from its checkpoint", "walltime", window(SAVED), stopped(40, 44), stopped(40, 70)),
    Trial("a checkpoint costs as much to begin from", "walltime", window(SAVED), stopped(40, 44), stopped(40, 40)),
    Trial(
        "with notice it writes one more",
        "walltime",
        window(SAVED, {"notice": 4}),
        stopped(40, 38),
        stopped(40, 44),
    ),
    Trial(
        "what is left is less each time",
        "walltime",
        window(SAVED) | {"outages": [{"nodes": "n1", "start": 90, "end": 95}]},
        # 30 - 4 of 40 s are kept, then 30 - 4 of 40 s again
        record([whole("a", 95, 18), whole("u", 40, 10)], [], whole("a", 0, 40), whole("a", 50, 40)),
        record([whole("a", 95, 44), whole("u", 40, 10)], [], whole("a", 0, 40), whole("a", 50, 40)),
    ),
    Trial("nobody starts in its place", "stop", window(), stopped(40, 70), stopped(40, 70, urgent="n2")),
    Trial("not too early", "stop", window(rules={"exempt": 40}), stopped(40, 70), stopped(39, 70)),
    Trial("not without notice", "stop", window(rules={"notice": 40}), stopped(40, 70), stopped(39, 70)),
    Trial(
        "not too often",
        "stop",
        window(rules={"stops": 2}),
        record([whole("a", 50, 70), whole("u", 40, 10)], [], whole("a", 0, 40)),
        record(
            [whole("a", 50, 70), whole("u", 40, 10)],
            [],
            whole("a", 0, 40),
            whole("a", 1, 39),
            whole("a", 2, 38),
        ),
    ),
    Trial(
        "a walltime that is over resumes",
        "walltime",
        window(SAVED, {"resume": True}, runtime=150),
        record([whole("a", 100, 64), whole("u", 200, 10)], [], whole("a", 0, 100)),
        record([whole("a", 100, 50), whole("u", 200, 10)], [], whole("a", 0, 100)),
    ),
    Trial(
        "an outage leaves the checkpoints",
        "walltime",
        window(SAVED) | {"outages": DOWN},
        record([whole("a", 40, 44, "n2"), whole("u", 90, 10)], [], whole("a", 0, 40)),
        record([whole("a", 40, 70, "n2"), whole("u", 110, 10)], [], whole("a", 0, 40)),
    ),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_stops_are_judged(trial: Trial) -> None:
    """A record that keeps the rules has no violation but its value's; one thing changed breaks the rule."""
    rules = {one.rule for one in verify(trial.instance, trial.allowed)} - {"objective"}
    assert not rules, verify(trial.instance, trial.allowed)
    assert trial.rule in {one.rule for one in verify(trial.instance, trial.refused)}


@pytest.mark.parametrize(
    "rules",
    [None, {"queues": {"low": ["high"]}}, {"queues": {"high": []}}],
    ids=["nobody may", "the other way round", "none of these"],
)
def test_only_who_may_stops(rules: Document | None) -> None:
    """A job is stopped only if it says that it may be, and for one whose queue or priority allows it."""
    assert "attempt" in {one.rule for one in verify(window(None), stopped(40, 70))}
    assert "stop" in {one.rule for one in verify(window(rules=rules), stopped(40, 70))}


@pytest.mark.parametrize(
    ("broken", "changes"),
    [
        ("", {}),
        ("capacity", {"memory": 513}),
        ("licenses", {"has": 1}),
        ("walltime", {"left": 70}),
        ("stop", {"node": "n2"}),
        ("stop", {"node": None}),
        ("capacity", {"again": 45}),
    ],
)
def test_a_suspended_job_keeps_all_but_its_cores(broken: str, changes: dict[str, Any]) -> None:
    """What starts in its place finds half of the memory of the node and one licence less, until it continues there."""
    case: dict[str, Any] = {"memory": 512, "has": 2, "left": 30, "node": "n1", "again": 50} | changes
    given = instance(
        job("a", "1:ncpus=4:mem=512mb", queue="low", preemptible=ASLEEP, runtime=70, licenses={"x": 1}),
        job("u", f"1:ncpus=4:mem={case['memory']}mb", queue="high", runtime=10, licenses={"x": 1}),
        queues=QUEUES,
        preemption={},
        cluster=cluster({"names": "n[1-2]"}, x=case["has"]),
    )

    def run(name: str, start: int, seconds: int, size: int, node: str = "n1") -> Document:
        return at(name, start, on(node, cores=4, mem=size), walltime=seconds)

    jobs = [run("u", 40, 10, case["memory"])]
    jobs += [run("a", case["again"], case["left"], 512, case["node"])] if case["node"] else []
    said = record(jobs, [] if case["node"] else [waiting("a", "not_started")], run("a", 0, 40, 512))
    assert {one.rule for one in verify(given, said)} - {"objective"} == ({broken} if broken else set())


def test_a_plan_stops_running_jobs_only() -> None:
    """A plan may stop a running job and plan it again; it pays for the later end. Others have no attempts."""
    held = {"start": -50, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
    given = window(SAVED, running=held, runtime=None)
    run = {"id": "a", "start": -50, "end": 0, "segments": [segment(-50, 0, on("n1", None, None, cores=4))]}
    # 45 of its 50 s are saved, less 4 to begin again: it takes 59 s, and ends at 159 in place of 50
    late = {"value": 109 / 1800, "planner": 109 / 1800}
    plan_of = plan([whole("a", 100, 59), whole("u", 0, 100)], [], attempts=[run])
    plan_of["objective"] |= late
    assert verify(given, plan_of) == ()
    assert {one.rule for one in verify({**given, "preemption": {"exempt": 51}}, plan_of)} == {"stop"}
    assert {one.rule for one in verify({k: v for k, v in given.items() if k != "preemption"}, plan_of)} >= {"record"}
    # an outage that is to come is no reason to stop it
    cut = run | {"end": 20, "segments": [segment(-50, 20, on("n1", None, None, cores=4))]}
    down = {**given, "outages": [{"nodes": "n1", "start": 20, "end": 25}]}
    moved = plan([whole("a", 25, 44), whole("u", 70, 100)], [], attempts=[cut])
    assert "stop" in {one.rule for one in verify(down, moved)}
    assert len(verify(given, {**plan_of, "attempts": 5})) == len(verify(given, {**plan_of, "attempts": []})) + 1


@pytest.mark.parametrize(
    ("preemptible", "rules", "path"),
    [
        (SAVED | {"cost": 15}, {}, "jobs[0].preemptible.cost"),
        ({"by": "checkpoint"}, {}, "jobs[0].preemptible"),
        (LOST | {"cost": 1}, {}, "jobs[0].preemptible.cost"),
        ({"by": "hope"}, {}, "jobs[0].preemptible.by"),
        (LOST, {"queues": {"high": ["low"], "low": ["high"]}}, "preemption.queues"),
        (LOST, {"queues": {"high": ["none"]}}, "preemption.queues.high[0]"),
        (LOST, {"stops": 0}, "preemption.stops"),
    ],
)
def test_the_judge_refuses_what_makes_no_sense(preemptible: Document, rules: Document, path: str) -> None:
    """A checkpoint as long as its interval, queues that stop each other and unknown ones are named with their paths."""
    with pytest.raises(DocumentError) as refused:
        read_instance(window(preemptible, rules), "x")
    assert refused.value.faults[0].path == path


def test_a_job_with_a_deadline_is_not_stopped() -> None:
    """What could not begin again at another time cannot be stopped."""
    with pytest.raises(DocumentError):
        read_instance(instance(job(deadline=1000, preemptible=LOST)), "x")


def test_runs_are_counted_on_their_nodes() -> None:
    """The stopped run and the urgent one do not overlap on a node."""
    early = record([whole("a", 50, 70), whole("u", 39, 10)], [], whole("a", 0, 40))
    assert {"capacity", "stop"} <= {one.rule for one in verify(window(), early)}


def test_a_job_that_has_its_nodes_for_itself_is_not_suspended() -> None:
    """Nobody could take its cores, however the request says that."""
    with pytest.raises(DocumentError, match="share its nodes"):
        read_instance(instance(job("a", "1:ncpus=4:mem=1mb,place=excl", preemptible=ASLEEP)), "x")


@pytest.mark.parametrize(("left", "broken"), [(70, set()), (30, {"walltime"})])
def test_a_failure_takes_what_a_suspended_job_has_done(left: int, broken: set[str]) -> None:
    """A node that fails before the job continues takes the work in its memory: it begins anew, on any node."""
    given = instance(
        job("a", "1:ncpus=4:mem=1mb", queue="low", preemptible=ASLEEP, runtime=70),
        job("u", "1:ncpus=4:mem=1mb", queue="high", runtime=5),
        queues=QUEUES,
        preemption={},
        cluster=cluster({"names": "n[1-2]"}),
        outages=[{"nodes": "n1", "start": 45, "end": 48}],
    )

    def run(name: str, start: int, seconds: int, node: str) -> Document:
        return at(name, start, on(node, cores=4, mem=1), walltime=seconds)

    said = record([run("u", 40, 5, "n1"), run("a", 50, left, "n2")], [], run("a", 0, 40, "n1"))
    assert {one.rule for one in verify(given, said)} - {"objective"} == broken
