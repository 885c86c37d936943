"""The verifier before every action: starts beside what runs now, on the nodes that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.domain import PlannedJob, Segment
from cpsched.site.bridge import MemoryManager, Start
from cpsched.site.daemon.judging import vetoes
from tests.bridge.played_world import PlayedWorld
from tests.bridge.small_world import job, on, site

#: Runs on all of n1 until 100.
RUNS = job("r", running={"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 4}}]})
#: Runs on half of n2 and of n3 until 100.
WIDE = job(
    "wide",
    "2:ncpus=2",
    running={"start": 0, "allocation": [{"node": node, "resources": {"cores": 2}} for node in ("n2", "n3")]},
)


def refused(*starts: tuple[str, int, tuple[str, ...], int], jobs: list[dict[str, Any]], **more: Any) -> dict[str, str]:
    """Judge starts (job, second, nodes, cores on each) beside jobs that run; return the rule that each one breaks."""
    world = PlayedWorld(site(*jobs, nodes="n[1-4]", **more), gate_is_closed=True)
    snapshot = MemoryManager(world).snapshot()
    orders = [
        Start(job=name, at=at, allocation=on(*nodes, cores=cores), revision=snapshot.jobs[name].revision)
        for name, at, nodes, cores in starts
    ]
    found = vetoes(snapshot, orders, [])
    return {name: words.partition(":")[0] for name, words in found.items()}


def test_starts_that_fit_are_let_through() -> None:
    """Beside what runs, and after its walltime, jobs may start."""
    jobs = [RUNS, WIDE, job("a"), job("b", "2:ncpus=2"), job("c")]
    starts = [("a", 0, ("n4",), 4), ("b", 0, ("n2", "n3"), 2), ("c", 100, ("n1",), 4)]
    assert refused(*starts, jobs=jobs) == {}


def test_a_busy_node_is_refused() -> None:
    """A job does not start where another one may still run, and the others of the batch are not to blame."""
    jobs = [RUNS, WIDE, job("a"), job("b"), job("c")]
    starts = [("a", 0, ("n4",), 4), ("b", 0, ("n2",), 4), ("c", 99, ("n1",), 4)]
    assert refused(*starts, jobs=jobs) == {"b": "capacity", "c": "capacity"}


@pytest.mark.parametrize(
    ("entry", "start", "more", "rule"),
    [
        (job("a", "2:ncpus=4"), ("a", 0, ("n4",), 4), {}, "request"),
        (job("a", submit=0, not_before=50), ("a", 0, ("n4",), 4), {}, "earliest_start"),
        (job("a", "ncpus=2,place=free:excl"), ("a", 0, ("n2",), 2), {}, "exclusive"),
        (job("a", after=[{"job": "r", "type": "afterok"}]), ("a", 50, ("n4",), 4), {}, "dependency"),
        (job("a", after=[{"job": "b", "type": "afterok"}]), ("a", 0, ("n4",), 4), {}, "dependency"),
        (
            job("a"),
            ("a", 0, ("n4",), 4),
            {"reservations": [{"id": "m", "kind": "downtime", "start": 50, "end": 90, "nodes": "n[3-4]"}]},
            "reservation",
        ),
        (
            job("a", user="u"),
            ("a", 0, ("n4",), 4),
            {"limits": [{"consumer": {"user": "u"}, "resource": "cores", "items": "3"}]},
            "limit",
        ),
    ],
)
def test_each_rule_is_asked(entry: dict[str, Any], start: Any, more: dict[str, Any], rule: str) -> None:
    """A start that breaks a rule of the site is refused by this rule."""
    found = refused(start, jobs=[RUNS, WIDE, entry, job("b")], **more)
    assert list(found) == ["a"]
    assert rule in found["a"] or found["a"] in rule, found


def test_a_start_that_is_ordered_already_counts() -> None:
    """What the manager is about to start takes its nodes."""
    world = PlayedWorld(site(job("a"), job("b"), nodes="n[1-4]"), gate_is_closed=True)
    snapshot = MemoryManager(world).snapshot()
    segment = Segment(start=20, end=120, allocation=on("n1"))
    ordered = PlannedJob(id="b", start=20, end=120, segments=(segment,))
    start = Start(job="a", at=0, allocation=on("n1"), revision=snapshot.jobs["a"].revision)
    assert set(vetoes(snapshot, [start], [ordered])) == {"a"}
    assert vetoes(snapshot, [start], []) == {}


def test_an_ordered_job_that_waits_for_its_nodes_is_no_fault_of_others() -> None:
    """It starts when they are free: until then others start elsewhere, and afterwards they are its own."""
    world = PlayedWorld(site(RUNS, job("a"), job("b"), job("c"), nodes="n[1-4]"), gate_is_closed=True)
    snapshot = MemoryManager(world).snapshot()
    segment = Segment(start=-5, end=95, allocation=on("n1"))
    ordered = PlannedJob(id="b", start=-5, end=95, segments=(segment,))
    starts = [
        Start(job=name, at=at, allocation=on(node), revision=snapshot.jobs[name].revision)
        for name, at, node in (("a", 0, "n4"), ("c", 100, "n1"))
    ]
    assert set(vetoes(snapshot, starts, [ordered])) == {"c"}


def test_of_names_that_begin_alike_the_one_is_named() -> None:
    """Job 10 is refused, and not job 1, which is elsewhere."""
    jobs = [RUNS, job("1"), job("10")]
    assert refused(("1", 0, ("n4",), 4), ("10", 0, ("n1",), 4), jobs=jobs) == {"10": "capacity"}


def test_licences_elsewhere_count() -> None:
    """A licence that a job on other nodes holds is not there for the start."""
    held = RUNS | {"licenses": {"matlab": 1}}
    assert refused(("a", 0, ("n4",), 4), jobs=[held, job("a", licenses={"matlab": 1})]) == {"a": "licenses"}


def test_one_conflict_is_no_fault_of_other_starts() -> None:
    """Jobs with orders that collide refuse the start that is in their way, and no other one."""
    world = PlayedWorld(site(*(job(name) for name in "abcd"), nodes="n[1-4]"), gate_is_closed=True)
    snapshot = MemoryManager(world).snapshot()
    ordered = [
        PlannedJob(id=name, start=20, end=120, segments=(Segment(start=20, end=120, allocation=on("n1")),))
        for name in "cd"
    ]
    starts = [
        Start(job=name, at=0, allocation=on(node), revision=snapshot.jobs[name].revision)
        for name, node in (("a", "n4"), ("b", "n1"))
    ]
    assert set(vetoes(snapshot, starts, ordered)) == {"b"}
    assert vetoes(snapshot, starts[:1], ordered) == {}
