"""An example for each kind of cause, on four nodes of four cores."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.answers import (
    Answers,
    Blocked,
    CauseKind,
    ChangeKind,
    Explanation,
    JobState,
    explanation_lines,
    first_line,
)
from cpsched.domain import Instance
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, parse_plan, plan_to_document
from cpsched.verify import verify
from tests.answers.judged import could_start, planned


def window(*jobs: dict[str, Any], **others: Any) -> Instance:
    """Return an instance with these waiting jobs, submitted at 0 for 100 s unless they say more."""
    document = {
        "format": "cpsched-instance/1",
        "name": "four-nodes",
        "cluster": {"nodes": [{"names": "n[1-4]", "resources": {"cores": 4}}], "licenses": {"abaqus": 3}},
        "jobs": [{"submit": 0, "walltime": 100, "user": "ann", **job} for job in jobs],
    }
    return parse_instance({**document, **others})


def told(instance: Instance, job: str, at: int | None = None) -> Explanation:
    """Return the explanation of a job in the planner's plan."""
    return Answers(instance, planned(instance)).explain(job, at)


def only(explanation: Explanation) -> Blocked:
    """Return the only interval of an explanation."""
    (blocked,) = explanation.blocked
    return blocked


def holders(blocked: Blocked) -> dict[str, tuple[str, ...]]:
    """Return the jobs of a cause with their nodes."""
    return {holder.job: holder.nodes for holder in blocked.cause.holders}


ALL = {"request": "4:ncpus=4"}


def test_jobs_that_hold_nodes_are_named() -> None:
    """A job on three nodes waits for the two jobs that it cannot do without: one has two of the four nodes, one one."""
    instance = window(
        {"id": "wide", "request": "2:ncpus=4", "priority": 9, "walltime": 50},
        {"id": "thin", "request": "1:ncpus=4", "priority": 8},
        {"id": "slim", "request": "1:ncpus=4", "priority": 7, "walltime": 50},
        {"id": "asked", "request": "3:ncpus=4"},
    )
    explanation = told(instance, "asked")
    blocked = only(explanation)
    assert (explanation.state, explanation.start, blocked.start, blocked.end) == (JobState.PLANNED, 50, 0, 50)
    assert blocked.cause.kind is CauseKind.RESOURCE
    assert blocked.cause.resources == ("cores",)
    assert "0 of 3 chunks" in blocked.cause.detail
    named = set(holders(blocked))
    assert "wide" in named
    assert len(named) == 2
    assert explanation.free_start == 50


def test_a_promise_to_a_later_job_is_named_with_the_hole_before_it() -> None:
    """A long job would hold nodes that a job planned for 60 gets: it fits before it if its walltime is at most 60 s."""
    instance = window(
        {"id": "now", "request": "3:ncpus=4", "priority": 9, "walltime": 60},
        {"id": "all", **ALL, "priority": 8},
        {"id": "asked", "request": "1:ncpus=4", "walltime": 70},
    )
    explanation = told(instance, "asked")
    first = explanation.blocked[0]
    assert first.cause.kind is CauseKind.PROMISE
    assert set(holders(first)) == {"all"}
    changes = {change.kind: change for change in explanation.changes}
    assert changes[ChangeKind.WALLTIME].detail == "with a walltime of at most 60 s (1 min)"
    assert changes[ChangeKind.WALLTIME].start == 0
    assert "promise" in "\n".join(explanation_lines(instance, explanation))


def test_licences_are_named_with_the_jobs_that_hold_them() -> None:
    """Of three licences two are held: a job that asks for two waits for one of the holders, or takes one less."""
    instance = window(
        {"id": "one", "request": "ncpus=1", "licenses": {"abaqus": 1}, "priority": 9},
        {"id": "two", "request": "ncpus=1", "licenses": {"abaqus": 1}, "priority": 8, "walltime": 40},
        {"id": "asked", "request": "ncpus=1", "licenses": {"abaqus": 2}},
    )
    explanation = told(instance, "asked")
    blocked = only(explanation)
    assert blocked.cause.kind is CauseKind.LICENSE
    assert blocked.cause.resources == ("abaqus",)
    assert blocked.cause.nodes == ()
    assert set(holders(blocked)) == {"two"}
    (change,) = (change for change in explanation.changes if change.kind is ChangeKind.LICENSE)
    assert (change.detail, change.start) == ("with 1 of its 2 licences abaqus", 0)


def test_dependencies_come_before_resources() -> None:
    """A job that waits for two others waits until each of them ends; without them it would start at once."""
    instance = window(
        {"id": "a", "request": "ncpus=1"},
        {"id": "b", "request": "ncpus=1", "walltime": 30},
        {"id": "asked", "request": "ncpus=1", "after": [{"job": "a", "type": "afterok"},
                                                       {"job": "b", "type": "afterany", "delay": 5}]},
    )  # fmt: skip
    explanation = told(instance, "asked")
    first, second = explanation.blocked
    assert (first.start, first.end, second.end) == (0, 35, 100)
    assert set(holders(first)) == {"a", "b"}
    assert set(holders(second)) == {"a"}
    assert {(change.kind, change.start) for change in explanation.changes} == {(ChangeKind.DEPENDENCY, 0)}


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({"submit": 40}, "is submitted later"),
        ({"not_before": 40}, "may not start before its not_before"),
        ({"start_at": 40}, "may start only at its start_at"),
    ],
)
def test_own_times_are_named(times: dict[str, int], words: str) -> None:
    """A job that may not start before 40 says why, and without `not_before` or `start_at` could start at once."""
    explanation = told(window({"id": "asked", "request": "ncpus=1", **times}), "asked")
    blocked = only(explanation)
    assert (blocked.cause.kind, blocked.start, blocked.end) == (CauseKind.TIME, 0, 40)
    assert blocked.cause.detail == words
    kinds = {change.kind for change in explanation.changes}
    assert kinds == (set() if "submit" in times else {ChangeKind.TIME})


def test_a_guard_is_named_where_nodes_are_free_behind_it() -> None:
    """Node g is free, but admits chunks of four cores only: a job of two cores waits for the other node."""
    instance = window(
        {"id": "first", "request": "ncpus=4", "priority": 9},
        {"id": "asked", "request": "ncpus=2"},
        cluster={"nodes": [{"names": "n", "resources": {"cores": 4}},
                           {"names": "g", "resources": {"cores": 4}, "admits": [{"min": {"cores": 4}}],
                            "priority": 1}]},
    )  # fmt: skip
    blocked = only(told(instance, "asked"))
    assert blocked.cause.kind is CauseKind.GUARD
    assert blocked.cause.nodes == ("g",)


def test_drained_nodes_are_among_the_changes() -> None:
    """A job that waits for the only node that is up could start at once if the other one were up."""
    instance = window(
        {"id": "first", "request": "ncpus=4", "priority": 9},
        {"id": "asked", "request": "ncpus=4"},
        cluster={"nodes": [{"names": "n", "resources": {"cores": 4}},
                           {"names": "d", "resources": {"cores": 4}, "state": "drain"}]},
    )  # fmt: skip
    explanation = told(instance, "asked")
    assert only(explanation).cause.kind is CauseKind.RESOURCE
    (change,) = (change for change in explanation.changes if change.kind is ChangeKind.NODES)
    assert change.start == 0


def test_a_limit_is_named_with_the_jobs_of_its_consumer() -> None:
    """Ann may have 4 cores: her second job waits for her first one, and not for those of others."""
    instance = window(
        {"id": "hers", "request": "ncpus=3", "priority": 9},
        {"id": "other", "request": "ncpus=3", "user": "bob", "priority": 8},
        {"id": "asked", "request": "ncpus=2"},
        limits=[{"consumer": {"user": "bob"}, "resource": "cores", "items": "8"},
                {"consumer": {"user": "ann"}, "resource": "cores", "items": "4"}],
    )  # fmt: skip
    explanation = told(instance, "asked")
    blocked = only(explanation)
    assert blocked.cause.kind is CauseKind.LIMIT
    assert blocked.cause.rule == "limits[1]"
    assert set(holders(blocked)) == {"hers"}
    assert (ChangeKind.CORES, "with 1 of its 2 cores in each chunk", 0) in {
        (change.kind, change.detail, change.start) for change in explanation.changes
    }


def test_a_free_pool_is_named() -> None:
    """8 of 16 cores are kept for others: the third job of 4 cores of those without access waits for one of two."""
    instance = window(
        *({"id": name, "request": "ncpus=4", "priority": 9} for name in "ab"),
        {"id": "asked", "request": "ncpus=4"},
        free_pools=[{"resource": "cores", "items": "8", "open_to": {"users": ["eve"]}}],
    )
    blocked = only(told(instance, "asked"))
    assert (blocked.cause.kind, blocked.cause.rule) == (CauseKind.FREE_POOL, "free_pools[0]")
    assert len(holders(blocked)) == 1


def test_a_limit_that_holds_for_a_time_is_a_rule_of_its_own() -> None:
    """While nobody may run for longer than 50 s, a job of 100 s cannot start whatever the others do."""
    instance = window(
        {"id": "asked", "request": "ncpus=1"},
        limits=[{"consumer": {"each": "user"}, "resource": "cores", "duration": 50,
                 "validity": {"from": 0, "until": 70}}],
    )  # fmt: skip
    explanation = told(instance, "asked")
    blocked = only(explanation)
    assert (blocked.cause.kind, blocked.cause.rule, blocked.end) == (CauseKind.RULE, "limits[0]", 70)
    assert blocked.cause.holders == ()
    (change,) = (change for change in explanation.changes if change.kind is ChangeKind.WALLTIME)
    assert (change.detail, change.start) == ("with a walltime of at most 50 s (50 s)", 0)


def test_a_job_without_a_start_says_why_and_what_would_help() -> None:
    """A job of five chunks of a whole node has no start on four nodes; with four of them it could start."""
    instance = window({"id": "asked", "request": "5:ncpus=4"})
    explanation = told(instance, "asked")
    assert explanation.state is JobState.WAITING_ROOM
    assert explanation.reason == "unsatisfiable"
    assert (ChangeKind.CHUNKS, "with 4 of its 5 chunks") in {(one.kind, one.detail) for one in explanation.changes}
    assert "at most 4 fit" in first_line(instance, explanation)


def test_a_running_job_has_nothing_to_explain() -> None:
    """What runs is a fact."""
    running = {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
    instance = window({"id": "asked", "request": "ncpus=4", "running": running})
    explanation = told(instance, "asked")
    assert (explanation.state, explanation.end, explanation.blocked) == (JobState.RUNNING, 100, ())


def test_one_second_can_be_asked_about() -> None:
    """At 120 nothing keeps the job from starting, though the plan has it at 100; at 20 another job does."""
    instance = window({"id": "first", **ALL, "priority": 9}, {"id": "asked", **ALL})
    assert only(told(instance, "asked", at=20)).cause.kind is CauseKind.RESOURCE
    assert only(told(instance, "asked", at=120)).cause.kind is CauseKind.NOTHING


def test_a_plan_that_starts_a_job_late_is_told_so() -> None:
    """A job that the plan starts at 10 for no reason could start at 0."""
    instance = window({"id": "asked", "request": "ncpus=1"})
    document = plan_to_document(planned(instance))
    document["jobs"][0] |= {"start": 10, "end": 110}
    document["jobs"][0]["segments"][0] |= {"start": 10, "end": 110}
    explanation = Answers(instance, parse_plan(document)).explain("asked")
    assert only(explanation).cause.kind is CauseKind.NOTHING
    assert explanation.free_start == 0
    assert "could start at now + 0 s" in first_line(instance, explanation)


def test_an_evolving_job_is_looked_for_as_its_steps() -> None:
    """The second step of four nodes collides with a job that begins at 50: that one is named."""
    instance = parse_instance(_evolving())
    explanation = told(instance, "asked")
    assert explanation.start == 150
    assert explanation.form is not None
    for blocked in explanation.blocked:
        assert set(holders(blocked)) == {"fixed"}


def _evolving() -> dict[str, Any]:
    """Return a window with a job that is fixed at 50, and an evolving one."""
    document: dict[str, Any] = instance_to_document(window({"id": "fixed", **ALL, "start_at": 50, "priority": 9}))
    steps = [{"walltime": 40, "request": "2:ncpus=4"}, {"walltime": 40, "request": "4:ncpus=4"}]
    document["jobs"].append({"id": "asked", "submit": 0, "steps": steps})
    return document


def test_a_question_leaves_no_trace() -> None:
    """The same question twice has the same answer, and other questions between do not change it."""
    instance = window(
        *({"id": f"j{number}", "request": f"{1 + number % 3}:ncpus={2 + number % 3}", "walltime": 10 + number}
          for number in range(20)),
    )  # fmt: skip
    answers = Answers(instance, planned(instance))
    first = [answers.explain(f"j{number}") for number in range(20)]
    assert [answers.explain(f"j{number}") for number in range(20)] == first


def test_plans_that_are_none_of_the_instance_are_refused() -> None:
    """A plan of another instance, one of a later second, one whose jobs collide, and a record have no answers."""
    instance = window({"id": "a", **ALL}, {"id": "b", **ALL})
    document = plan_to_document(planned(instance))
    collided: dict[str, Any] = plan_to_document(planned(instance))
    for job in collided["jobs"]:
        job |= {"start": 0, "end": 100}
        job["segments"][0] |= {"start": 0, "end": 100}
    for wrong in ({**document, "instance": "other"}, {**document, "now": 1}, collided, {**document, "record": True}):
        with pytest.raises(DocumentError):
            Answers(instance, parse_plan(wrong))


def test_a_plan_may_have_a_job_beside_a_reservation_of_which_guests_want_whole_nodes() -> None:
    """Engines keep such a node free as a whole; a plan that has not done so has answers too."""
    reservation = {"id": "r", "start": 20, "end": 150, "request": "1:ncpus=2"}
    reservation["allocation"] = [{"node": "n1", "resources": {"cores": 2}}]
    guest = {"id": "guest", "request": "2:ncpus=2", "reservation": "r", "place": "free:excl"}
    instance = window({"id": "a", "request": "1:ncpus=2", "not_before": 30}, guest, reservations=[reservation])
    document: dict[str, Any] = plan_to_document(planned(instance))
    document["jobs"][0]["segments"][0]["allocation"][0]["node"] = "n1"
    answers = Answers(instance, parse_plan(document))
    assert verify(instance_to_document(instance), document) == ()
    assert answers.explain("a").start == 30


def test_many_causes_are_sampled_evenly() -> None:
    """A job that waits behind many others has a dozen causes, from now to the last second before its start."""
    jobs = [{"id": f"j{number:02}", **ALL, "walltime": 10, "priority": 90 - number} for number in range(40)]
    instance = window(*jobs, {"id": "asked", **ALL})
    explanation = told(instance, "asked")
    assert not explanation.is_whole
    assert len(explanation.blocked) == 12
    assert explanation.blocked[0].start == 0
    assert explanation.blocked[-1].start == 399
    plan = planned(instance)
    for blocked in explanation.blocked:
        assert could_start(instance, plan, "asked", blocked.start, without=set(holders(blocked)))


@pytest.mark.parametrize(("at", "words"), [(50, "earlier"), (0, "so the plan has it")])
def test_a_second_at_which_a_job_could_start_is_held_against_its_plan(at: int, words: str) -> None:
    """A job alone is planned for second 0: at 50 it could start, too, and is not told to be later."""
    instance = window({"id": "asked", "request": "ncpus=1"})
    line = first_line(instance, told(instance, "asked", at))
    assert line.startswith(f"could start at now + {at} s")
    assert line.endswith(words)


def test_an_element_of_an_array_stays_one_when_it_is_changed() -> None:
    """Elements of arrays may take 20 s up to second 80: a walltime of 20 s is suggested, none that is longer."""
    instance = window(
        {"id": "many", "request": "ncpus=1", "array": {"indices": "0-1"}},
        limits=[{"consumer": {"user": "ann"}, "resource": "arrayjobs", "duration": 20,
                 "validity": {"from": 0, "until": 80}}],
    )  # fmt: skip
    (change,) = (one for one in told(instance, "many[1]").changes if one.kind is ChangeKind.WALLTIME)
    assert (change.amount, change.start) == (20, 0)


def test_a_downtime_is_named_by_its_place() -> None:
    """All nodes are down from 50 to 80: a job of 100 s starts behind that, one of at most 50 s before it."""
    instance = window(
        {"id": "asked", "request": "ncpus=1"},
        reservations=[{"id": "weekly", "start": 50, "end": 80, "request": "4:ncpus=4,place=scatter:excl",
                       "kind": "downtime"}],
    )  # fmt: skip
    explanation = told(instance, "asked")
    blocked = only(explanation)
    assert (blocked.cause.kind, blocked.cause.rule, blocked.end) == (CauseKind.RULE, "reservations[0]", 80)
    assert "weekly" in blocked.cause.detail
    (change,) = (change for change in explanation.changes if change.kind is ChangeKind.WALLTIME)
    assert (change.amount, change.start) == (50, 0)


def test_jobs_of_a_reservation_have_its_nodes_only() -> None:
    """In a reservation of one node from 30 on the second job waits for the first one, whose node has its own name."""
    instance = window(
        {"id": "first", "request": "ncpus=4", "reservation": "course", "priority": 9},
        {"id": "asked", "request": "ncpus=4", "reservation": "course"},
        reservations=[{"id": "course", "start": 30, "end": 500, "request": "1:ncpus=4", "users": ["ann"]}],
    )  # fmt: skip
    explanation = told(instance, "asked")
    before, behind = explanation.blocked
    assert (before.cause.kind, before.cause.rule, before.end) == (CauseKind.RULE, "reservations[0]", 30)
    assert (behind.cause.kind, behind.end, explanation.start) == (CauseKind.RESOURCE, 130, 130)
    ((name, nodes),) = holders(behind).items()
    assert name == "first"
    assert set(nodes) <= {"n1", "n2", "n3", "n4"}


def test_jobs_of_a_queue_have_its_nodes_only() -> None:
    """A queue of one node: its second job waits for the first, though other nodes are free."""
    instance = window(
        {"id": "first", "request": "ncpus=4", "queue": "gpu", "priority": 9},
        {"id": "asked", "request": "ncpus=4", "queue": "gpu"},
        queues={"gpu": {"expected_wait": 60, "nodes": "n3"}},
    )
    blocked = only(told(instance, "asked"))
    assert blocked.cause.kind is CauseKind.RESOURCE
    assert holders(blocked) == {"first": ("n3",)}


def test_a_malleable_job_is_looked_for_on_one_share() -> None:
    """A job that can run on half its cores has no cause for waiting where half of them are free, but for its price: it
    would end as late as on all of them later, and pay for each second that it takes longer.
    """
    instance = window(
        {"id": "first", "request": "2:ncpus=4", "priority": 9},
        {"id": "asked", "request": "4:ncpus=4", "malleable": {"shares": [0.5]}},
    )
    explanation = told(instance, "asked")
    assert explanation.form is not None
    assert "50 %" in explanation.form
    assert (explanation.start, explanation.free_start) == (100, 0)
    (blocked,) = explanation.blocked
    assert (blocked.start, blocked.end, blocked.cause.kind) == (0, 100, CauseKind.NOTHING)


def test_running_jobs_that_share_too_little_are_named_together() -> None:
    """Two running jobs hold the same whole node, a fact: a third one could have it only without both of them."""
    instance = window(
        *({"id": name, "request": "ncpus=2,place=excl", "walltime": walltime,
           "running": {"start": 0, "allocation": [{"node": "n", "resources": {"cores": 2}}]}}
          for name, walltime in (("r", 50), ("s", 80))),
        {"id": "asked", "request": "ncpus=4"},
        cluster={"nodes": [{"names": "n", "resources": {"cores": 4}}]},
    )  # fmt: skip
    first, second = told(instance, "asked").blocked
    assert (set(holders(first)), first.end) == ({"r", "s"}, 50)
    assert (set(holders(second)), second.end) == ({"s"}, 80)


def test_a_limit_for_ever_leaves_no_start() -> None:
    """From 50 on, for ever, nobody may have more than one core: a job of two cores and 100 s has no start at all."""
    instance = window(
        {"id": "asked", "request": "ncpus=2"},
        {"id": "other", "request": "ncpus=2", "walltime": 10},
        limits=[{"consumer": {"each": "user"}, "resource": "cores", "items": "1", "validity": {"from": 50}}],
    )
    explanation = told(instance, "asked")
    assert (explanation.state, explanation.free_start) == (JobState.WAITING_ROOM, None)
    assert "free: at no second could it start, beside all other jobs" in list(explanation_lines(instance, explanation))
    assert {change.kind: change.start for change in explanation.changes} == {
        ChangeKind.CORES: 0,
        ChangeKind.WALLTIME: 0,
    }


def test_a_rule_is_named_no_longer_than_it_holds() -> None:
    """Until 30 ann may have no cores, and from then on her job waits for its reservation, which begins at 80."""
    instance = window(
        {"id": "asked", "request": "ncpus=1", "reservation": "lesson", "walltime": 10},
        limits=[{"consumer": {"user": "ann"}, "resource": "cores", "items": "0", "validity": {"until": 30}}],
        reservations=[{"id": "lesson", "start": 80, "end": 200, "request": "ncpus=4", "users": ["ann"]}],
    )
    explanation = told(instance, "asked")
    assert [(one.start, one.end, one.cause.rule) for one in explanation.blocked] == [
        (0, 30, "limits[0]"),
        (30, 80, "reservations[0]"),
    ]


@pytest.mark.parametrize(
    "rules", [{}, {"limits": [{"consumer": {"each": "user"}, "resource": "jobs", "items": "9"}]}], ids=["free", "ruled"]
)
def test_what_is_consumed_is_counted_as_it_is_left(rules: dict[str, Any]) -> None:
    """Of five licences a running job took three, and another job takes two: none is left for a third."""
    running = {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 1}}]}
    jobs = (
        {"id": "runs", "request": "1:ncpus=1", "licenses": {"gold": 3}, "running": running},
        {"id": "takes", "request": "1:ncpus=1", "licenses": {"gold": 2}, "priority": 9},
        {"id": "lacks", "request": "1:ncpus=1", "licenses": {"gold": 1}},
    )
    cluster = {"nodes": [{"names": "n1", "resources": {"cores": 4}}], "licenses": {"gold": 5}, "consumed": ["gold"]}
    found = told(window(*jobs, cluster=cluster, now=1, **rules), "lacks")
    assert found.state is JobState.WAITING_ROOM
    for words in (found.detail, only(found).cause.detail):
        assert words is not None
        assert "0 of 5" in words


def test_what_an_alternative_would_start_is_told_apart_from_its_own_request() -> None:
    """A job for all four nodes waits for one of two; on two it would start at once, by its alternative too, and take so
    long that the plan does not choose it.
    """
    asked = {"id": "asked", "request": "4:ncpus=4", "alternatives": [{"walltime": 900, "request": "2:ncpus=4"}]}
    instance = window({"id": "first", "request": "2:ncpus=4", "priority": 9}, asked)
    explanation = told(instance, "asked")
    assert (explanation.start, explanation.end, explanation.free_start) == (100, 200, 0)
    amounts = {one.kind: (one.start, one.amount) for one in explanation.changes}
    assert amounts == {
        ChangeKind.CHUNKS: (0, 2),
        ChangeKind.CORES: (0, 2),
        ChangeKind.ALTERNATIVE: (0, None),
    }
