"""The judge on malleable jobs that run: how their share may change from now on, and what that is worth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.verify import Judge, verify
from cpsched.verify.model import Malleable
from cpsched.verify.shares import share_of
from tests.verify.small_documents import (
    Document,
    at,
    cluster,
    instance,
    job,
    on,
    plan,
    planned,
    segment,
    stretched,
    waiting,
)

HALF = {"shares": [0.5]}
HOUR = 3600
#: A job of 4 cores and 100 s of which 40 s have passed.
FULL = {"start": -40, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}
FACT = planned("r", segment(-40, 60, on("n1", None, None, cores=4)))


def _one(running: Document = FULL, *others: Document, malleable: Document | None = HALF, **members: Any) -> Document:
    request = members.pop("request", "1:ncpus=4")
    top = {key: members.pop(key) for key in ("limits", "objective", "queues", "reservations") if key in members}
    return instance(job("r", request, running=running, malleable=malleable, **members), *others, **top)


def _runs(*pieces: tuple[int, int], start: int = -40, node: str = "n1", **resources: int) -> Document:
    """Return a running job with (end, cores) pieces."""
    segments = []
    for end, cores in pieces:
        segments.append(segment(start, end, on(node, None, None, cores=cores, **resources)))
        start = end
    return planned("r", *segments)


def _worth(document: Document, value: float) -> Document:
    return {**document, "objective": {**document["objective"], "value": value, "planner": value}}


def _shrunk(end: int = 120, *others: Document, value: float | None = None) -> Document:
    """Return a plan in which the job runs on half of its cores from now on, beside others."""
    exact = (end - 60) / 1800 + sum(entry["start"] for entry in others) / 1800
    return _worth(plan([_runs((0, 4), (end, 2)), *others]), exact if value is None else value)


def _rules(document: Document, answer: Document) -> set[str]:
    return {violation.rule for violation in verify(document, answer)}


def test_a_running_job_makes_room_for_another() -> None:
    """From now on at half share it runs for 120 s instead of 60, and who waited has its place."""
    document = _one(FULL, job("a"))
    assert verify(document, _shrunk(120, at("a", 0))) == ()
    assert verify(document, plan([FACT, at("a", 0, on("n2", cores=2))])) == ()
    assert _rules(document, plan([FACT, at("a", 0)])) == {"capacity"}


def test_it_may_expand_again() -> None:
    """Cores that were given up for some time come back: 40 + 60 / 2 + 30 s of work."""
    answer = _worth(plan([_runs((0, 4), (60, 2), (90, 4))]), 30 / 1800)
    assert verify(_one(), answer) == ()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (_runs((0, 4), (119, 2)), "segments do 99.5 s"),
        (_runs((0, 4), (121, 2)), "segments do 100.5 s"),
        (_runs((-10, 4), (110, 2)), "as the instance states them"),
        (_runs((-10, 4), (0, 4), (120, 2)), "as the instance states them"),
        (_runs((0, 4), (60, 2), (120, 2)), "one segment per change"),
        (_runs((0, 4), (240, 1)), "none of its shares"),
        (_runs((0, 4), (20, 8), (20 + 20, 4)), "none of its shares"),
        (planned("r", *_runs((0, 4))["segments"], *_runs((130, 2), start=10)["segments"]), "without hole"),
        (planned("r", *_runs((0, 4))["segments"], segment(0, 120, on("n2", None, None, cores=2))), "its nodes"),
        (planned("r", *_runs((0, 4))["segments"], segment(0, 120, on("n1", None, None, cores=2, mem=1))), "1 mem"),
        ({**_runs((0, 4), (120, 2)), "end": 130}, "the job at 130"),
        ({**_runs((0, 4), (120, 2)), "start": -30}, "as the instance states them"),
        (planned("r", *_runs((0, 4))["segments"], segment(0, 120, on("n1", 0, 1, cores=2))), "chunk and count"),
    ],
)
def test_what_no_plan_may_change(wrong: Document, words: str) -> None:
    """The past, the nodes, the memory and the work stay; one segment stands for each change (SD-1)."""
    said = [violation for violation in verify(_one(), plan([wrong])) if violation.rule == "running"]
    assert said
    assert any(words in violation.message for violation in said)
    assert all(violation.subject == "r" for violation in said)


@pytest.mark.parametrize(
    "document",
    [
        _one(malleable=None),
        _one({**FULL, "allocation": [{"node": "n1", "resources": {"cores": 3}}]}),
        _one({**FULL, "allocation": [{"node": "n1", "resources": {"cores": 4}}]}, request="1:ncpus=1+1:ncpus=3"),
        _one({"start": -40, "segments": [{"start": -40, "end": 61, "allocation": FULL["allocation"]}]}),
        _one({**FULL, "start": -140}),
    ],
    ids=["rigid", "an unknown part of its cores", "chunks of two kinds", "longer than its work", "overdue"],
)
def test_facts_stay_as_they_are(document: Document) -> None:
    """A job whose chunks or whose work are not known runs as the instance says, and counts so."""
    wrong = verify(document, plan([_runs((0, 4), (120, 2))]))
    assert any(one.rule == "running" and "no plan may change this job" in one.message for one in wrong)


def test_two_kinds_of_chunks_are_known_where_the_document_says_them() -> None:
    """With chunk and count the share of each node is known, and each may change by itself."""
    chunks = [
        {"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}},
        {"node": "n2", "chunk": 1, "count": 1, "resources": {"cores": 4}},
    ]
    document = _one({"start": -40, "allocation": chunks}, request="1:ncpus=2+1:ncpus=4")
    past = segment(-40, 0, on("n1", None, None, cores=2), on("n2", None, None, cores=4))
    half = segment(0, 90, on("n1", None, None, cores=2), on("n2", None, None, cores=2))
    assert verify(document, _worth(plan([planned("r", past, half)]), 30 / 1800)) == ()


#: Chunks of two kinds on one node: 2 cores and 4 cores.
BOTH = [on("n1", 0, 1, cores=2), on("n1", 1, 1, cores=4)]


@pytest.mark.parametrize(
    ("coming", "words"),
    [
        ([on("n1", 0, 1, cores=2), on("n1", 1, 1, cores=2)], None),
        ([on("n1", 0, 1, cores=1), on("n1", 1, 1, cores=2)], "do 85 s"),
        ([on("n1", None, None, cores=4)], "chunk and count"),
        ([on("n1", 0, 1, cores=2), on("n1", 1, 2, cores=2)], "2 chunks of kind 1"),
        ([on("n1", 0, 1, cores=2), on("n2", 1, 1, cores=2)], "its share may change"),
        ([on("n1", 1, 1, cores=2), on("n1", 1, 1, cores=2)], "its share may change"),
    ],
)
def test_two_kinds_on_a_node_have_shares_of_their_own(coming: list[Document], words: str | None) -> None:
    """Which of two kinds on a node has how many cores is what the plan says, chunk by chunk, not their sum."""
    document = _one({"start": -40, "allocation": BOTH}, request="1:ncpus=2+1:ncpus=4")
    document["cluster"]["nodes"][0]["resources"]["cores"] = 6
    changed = planned("r", segment(-40, 0, *BOTH), segment(0, 90, *coming))
    said = verify(document, _worth(plan([changed]), 30 / 1800))
    assert [one.rule for one in said if one.rule == "running"] == ([] if words is None else ["running"])
    assert words is None or any(words in one.message for one in said)


@pytest.mark.parametrize(
    ("repeated", "is_right"),
    [
        (BOTH, True),
        ([on("n1", None, None, cores=6)], True),
        ([on("n1", 0, 1, cores=4), on("n1", 1, 1, cores=2)], False),
        ([on("n1", 0, 1, cores=2), on("n1", None, None, cores=4)], False),
        ([on("n1", 1, 1, cores=2), on("n1", 0, 1, cores=4)], False),
        ([on("n1", 0, 2, cores=2), on("n1", 1, 1, cores=4)], False),
    ],
)
def test_a_plan_repeats_stated_chunks_or_leaves_them_out(repeated: list[Document], is_right: bool) -> None:
    """Of a rigid job that runs a plan says no other chunks than the instance does."""
    document = _one({"start": -40, "allocation": BOTH}, malleable=None, request="1:ncpus=2+1:ncpus=4")
    document["cluster"]["nodes"][0]["resources"]["cores"] = 6
    assert _rules(document, plan([planned("r", segment(-40, 60, *repeated))])) == (set() if is_right else {"running"})


def test_each_segment_of_an_evolving_job_states_the_chunks_of_its_step() -> None:
    """The second step has a second kind of chunks, the first one has not."""
    steps = [{"walltime": 10, "request": "ncpus=1"}, {"walltime": 10, "request": "ncpus=1+ncpus=2"}]
    first = segment(-5, 5, on("n1", 0, 1, cores=1))
    second = segment(5, 15, on("n1", 0, 1, cores=1), on("n1", 1, 1, cores=2))
    running = {"start": -5, "segments": [first, second]}
    document = instance({"id": "e", "submit": -5, "steps": steps, "running": running})
    assert verify(document, plan([planned("e", first, second)])) == ()
    swapped = {"start": -5, "segments": [{**first, "allocation": second["allocation"]}, second]}
    with pytest.raises(DocumentError, match="kinds of chunks from 0 to 0"):
        verify(instance({"id": "e", "submit": -5, "steps": steps, "running": swapped}), plan())


def test_a_job_that_runs_shrunk_lasts_until_its_work_is_done() -> None:
    """At half share since second -40 it would end at 160; from now on with all its cores it ends at 80."""
    chunks = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    document = _one({"start": -40, "allocation": chunks})
    assert verify(document, plan([_runs((160, 2))])) == ()
    gain = _worth(plan([_runs((0, 2), (80, 4))]), -80 / 1800)
    assert verify(document, gain) == ()
    assert _rules(document, plan([_runs((100, 2))])) == {"running"}


def test_past_segments_count() -> None:
    """60 s at half share and then 30 s at full share are 60 s of work: 40 are left."""
    allocation = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    whole = [{**allocation[0], "resources": {"cores": 4}}]
    segments = [
        {"start": -90, "end": -30, "allocation": allocation},
        {"start": -30, "end": 40, "allocation": whole},
    ]
    document = _one({"start": -90, "segments": segments})
    assert verify(document, plan([_runs((-30, 2), (40, 4), start=-90)])) == ()
    assert verify(document, _worth(plan([_runs((-30, 2), (0, 4), (80, 2), start=-90)]), 40 / 1800)) == ()
    assert "running" in _rules(document, plan([_runs((-30, 2), (0, 4), (79, 2), start=-90)]))


def test_who_waits_for_its_end_waits_for_that_in_the_plan() -> None:
    """A dependency on the end of a running job follows it when the plan changes it."""
    document = _one(FULL, job("a", after=[{"job": "r", "type": "afterany"}]))
    assert verify(document, _shrunk(120, at("a", 120))) == ()
    assert _rules(document, _shrunk(120, at("a", 60, on("n2", cores=2)))) == {"dependency"}


def test_it_does_not_end_after_its_deadline() -> None:
    """A plan may not shrink a job beyond its deadline; one that the instance has beyond it may only end earlier."""
    assert verify(_one(deadline=120), _shrunk(120)) == ()
    assert _rules(_one(deadline=119), _shrunk(120)) == {"deadline"}
    assert verify(_one(deadline=50), plan([FACT])) == ()


def test_limits_hold_for_what_is_more_than_the_instance_gives() -> None:
    """Cores that a user has by the instance are a fact; those that a plan gives back to its job are a choice."""
    limits = [{"consumer": {"user": "u"}, "resource": "cores", "items": "3"}]
    chunks = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    expanded = _worth(plan([_runs((0, 2), (80, 4))]), -80 / 1800)
    assert _rules(_one({"start": -40, "allocation": chunks}, user="u", limits=limits), expanded) == {"limit"}
    assert verify(_one(user="u", limits=limits), plan([FACT])) == ()
    assert verify(_one(user="u", limits=limits), _shrunk(120)) == ()


def test_an_exclusive_node_is_a_fact_for_so_long_as_the_instance_says() -> None:
    """Two running jobs share a node that one of them wants alone, until one ends; the other may not be late there."""
    both = _one(
        {**FULL, "allocation": [{"node": "n1", "resources": {"cores": 2}}]},
        job("f", "1:ncpus=1", 200, place="excl", running={"start": 0, "allocation": [on("n1", None, None, cores=1)]}),
        request="1:ncpus=2",
    )
    other = planned("f", segment(0, 200, on("n1", None, None, cores=1)))
    assert verify(both, plan([_runs((60, 2)), other])) == ()
    assert _rules(both, _worth(plan([_runs((0, 2), (120, 1)), other]), 60 / 1800)) == {"exclusive"}


@pytest.mark.parametrize(
    ("objective", "cost"),
    [
        ("weighted_wait", Fraction(60, 100)),
        ("wait", 60),
        ("completion", 60),
        ("slowdown", Fraction(60, 100)),
        ("tardiness", 0),
        ("makespan", 0),
        ("waste", 0),
        ({"wait": 0.5, "slowdown": 2.0}, 30 + Fraction(120, 100)),
    ],
)
def test_what_a_later_end_costs(objective: object, cost: Fraction) -> None:
    """60 s of delay of a running job of 100 s whose queue expects a wait of 100 s (docs/formats.md, objective)."""
    document = _one(queue="q", queues={"q": {"expected_wait": 100}}, objective=objective)
    answer = _shrunk(120, value=float(cost))
    answer["objective"]["name"] = objective if isinstance(objective, str) else "a sum"
    assert verify(document, answer) == ()
    answer["objective"]["value"] += 0.001
    assert _rules(document, answer) == {"objective"}


def test_gap_of_a_value_below_zero() -> None:
    """What running jobs gain can make the value negative; the gap is measured by its size."""
    chunks = [{"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": 2}}]
    document = _one({"start": -40, "allocation": chunks}, objective="wait")
    answer = _worth(plan([_runs((0, 2), (80, 4))]), -80)
    answer["objective"] |= {"name": "wait", "bound": -100.0, "gap": 0.25}
    assert verify(document, answer) == ()
    assert _rules(document, {**answer, "objective": {**answer["objective"], "gap": -0.25}}) == {"objective"}


def test_one_judge_for_plans_with_and_without_changes() -> None:
    """A judge that has seen a plan judges the next one, in which a running job has changed, by itself."""
    judge = Judge(_one(FULL, job("a")))
    first, second = plan([FACT, at("a", 0, on("n2", cores=2))]), _shrunk(120, at("a", 0))
    assert [judge.violations(one) for one in (first, second, first)] == [(), (), ()]


def test_a_running_malleable_job_does_not_wait() -> None:
    """Whatever its shares, a job that has started stands among the jobs."""
    assert "running" in _rules(_one(), plan([], [waiting("r", "not_mapped")]))


LARGE = cluster({"names": "n[1-2]", "resources": {"cores": 48}})


def _two_nodes(*pieces: tuple[int, int, int]) -> Document:
    """Return a plan of a job on two nodes, by (seconds, cores of one, cores of the other)."""
    time, segments = 0, []
    for length, first, second in pieces:
        segments.append(segment(time, time + length, on("n1", cores=first), on("n2", cores=second)))
        time += length
    return plan([planned("a", *segments)])


@pytest.mark.parametrize(("model", "increase"), [("ideal", 1.0), ("worst", 1.5)])
def test_worked_example_of_the_runtime_models(model: str, increase: float) -> None:
    """2 nodes x 48 cores, (24, 48) for 2 h and (24, 24) for 1 h: 1.0 h longer by the ideal model, 1.5 h by the worst
    (SD-3); a second more or less is refused, in either part.
    """
    walltime = int((3 - increase) * HOUR)
    document = instance(job("a", "2:ncpus=48", walltime, malleable={"shares": [0.5], "model": model}), cluster=LARGE)
    assert verify(document, stretched(document, _two_nodes((2 * HOUR, 24, 48), (HOUR, 24, 24)))) == ()
    for length in (HOUR - 1, HOUR + 1):
        assert _rules(document, stretched(document, _two_nodes((2 * HOUR, 24, 48), (length, 24, 24)))) == {"malleable"}
    for length in (2 * HOUR - 2, 2 * HOUR + 2):
        assert _rules(document, stretched(document, _two_nodes((length, 24, 48), (HOUR, 24, 24)))) == {"malleable"}


@pytest.mark.parametrize("model", ["ideal", "worst"])
def test_first_part_of_the_worked_example(model: str) -> None:
    """(24, 48) for 2 h does 1.5 h of work by the ideal model, 1.0 h by the worst one (SD-3)."""
    walltime = 5400 if model == "ideal" else 3600
    document = instance(job("a", "2:ncpus=48", walltime, malleable={"shares": [0.5], "model": model}), cluster=LARGE)
    assert verify(document, stretched(document, _two_nodes((2 * HOUR, 24, 48)))) == ()


@pytest.mark.parametrize(("cores", "is_share"), [(1, False), (2, True), (3, True), (4, True), (5, False), (6, True)])
def test_shares_are_rounded_in_each_chunk(cores: int, is_share: bool) -> None:
    """Two chunks of 3 cores on a node have 1 or 2 cores each at half share: 2 to 4 together, or all 6."""
    document = instance(
        job("a", "2:ncpus=3", malleable=HALF), cluster=cluster({"names": "n1", "resources": {"cores": 8}})
    )
    answer = plan([planned("a", segment(0, -(-600 // cores), on("n1", 0, 2, cores=cores)))])
    assert (verify(document, stretched(document, answer)) == ()) == is_share


def test_worst_is_the_chunk_that_has_least() -> None:
    """Of a whole chunk and a half one on one node the half one rules: 100 s take 200 s, not 134 s."""
    malleable = {"shares": [0.5], "model": "worst"}
    document = instance(
        job("a", "1:ncpus=2+1:ncpus=4", malleable=malleable),
        cluster=cluster({"names": "n1", "resources": {"cores": 8}}),
    )

    def lasting(seconds: int) -> Document:
        return plan([planned("a", segment(0, seconds, on("n1", 0, 1, cores=2), on("n1", 1, 1, cores=2)))])

    assert verify(document, stretched(document, lasting(200))) == ()
    assert _rules(document, stretched(document, lasting(150))) == {"malleable"}


def test_waste_is_what_is_held_in_vain() -> None:
    """A step of 4 cores that is held for 30 s more than it asks for wastes 120 core seconds (EVO-12)."""
    steps = [{"walltime": 100, "request": "1:ncpus=4"}, {"walltime": 50, "request": "2:ncpus=4"}]
    document = instance(
        job("a", None, None, steps=steps, expand_limit=2),
        objective="waste",
    )
    answer = plan(
        [planned("a", segment(0, 130, on("n1", cores=4)), segment(130, 180, on("n1", cores=4), on("n2", cores=4)))]
    )
    answer["objective"] |= {"name": "waste", "value": 120.0}
    assert verify(document, answer) == ()
    answer["objective"]["value"] = 0.0
    assert _rules(document, answer) == {"objective"}


@pytest.mark.parametrize("cores", [0, 1, 2])
def test_each_chunk_keeps_at_least_one_core(cores: int) -> None:
    """Three chunks of 3 cores on a quarter of them, 0.75 each, have a core each or none of the shares (SD-9)."""
    quarter = Malleable(shares=(Fraction(1, 4),), model="ideal", stretch={})
    assert share_of(cores, 3, 3, quarter) is None
    assert share_of(3, 3, 3, quarter) == Fraction(1, 4)
