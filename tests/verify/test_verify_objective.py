"""The judge recomputes the objective: worked examples by hand, and every stated number that is wrong is refused."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from cpsched.errors import DocumentError
from cpsched.verify import verify, verify_files
from tests.verify.small_documents import Document, at, instance, job, plan

#: One job of 100 s that came at -60 and starts at 40, one of 4 s that came and starts at 140.
JOBS = (job("a", submit=-60, queue="q"), job("b", submit=140, walltime=4))
QUEUES = {"q": {"expected_wait": 30}}
STARTS = (at("a", 40), at("b", 140, walltime=4))

#: Term, value and suffered part of it, in exact figures.
WORKED = [
    ("wait", 100 + 0, 60 + 0),
    ("weighted_wait", 100 / 30, 60 / 30),
    ("completion", 200 + 4, 160 + 4),
    ("makespan", 144, 144),
    ("tardiness", 70, 30),
    ("slowdown", 200 / 100 + 1, 160 / 100 + 1),
    ({"wait": 0.5, "makespan": 2}, 50 + 288, 30 + 288),
]


#: The job of 30 s of expected wait starts 100 s after it came: 60 of them at second 0.
PRESSED = [
    # 100 - 40 s and 60 - 40 s beyond max_wait, at 10 for each 30 s
    ({"max_wait": {"seconds": 40}}, None, 10 * 60 / 30, 10 * 20 / 30),
    ({"max_wait": {"seconds": 40, "price": 0.25, "hard": True}}, None, 0.25 * 60 / 30, 0.25 * 20 / 30),
    ({"max_wait": {"seconds": 100, "hard": True}}, None, 0, 0),
    ({"max_wait": {"seconds": 70, "price": 0}}, None, 0, 0),
    # told 10, starts at 40; told -15, which has passed; told 41, which is kept
    ({}, {"start": 10}, 1 * 30 / 30, 0),
    ({}, {"start": -15, "price": 3.5}, 3.5 * 55 / 30, 3.5 * 15 / 30),
    ({}, {"start": 41, "price": 99}, 0, 0),
    # both
    ({"max_wait": {"seconds": 50, "price": 2}}, {"start": 35, "price": 0.5}, 2 * 50 / 30 + 0.5 * 5 / 30, 2 * 10 / 30),
]


@pytest.mark.parametrize(("queue", "told", "value", "suffered"), PRESSED)
@pytest.mark.parametrize(("objective", "plain", "before"), WORKED)
def test_surcharges(
    objective: object,
    plain: float,
    before: float,
    queue: Document,
    told: Document | None,
    value: float,
    suffered: float,
) -> None:
    """To any objective comes what overdue and postponed jobs cost, and to the suffered part what that was at now."""
    document = instance(
        job("a", submit=-60, queue="q", told=told), JOBS[1], queues={"q": QUEUES["q"] | queue}, objective=objective
    )
    name = objective if isinstance(objective, str) else "a sum"
    stated = {"name": name, "value": plain + value, "suffered": before + suffered}
    assert verify(document, _stated(**stated)) == ()
    for key, wrong in (("value", plain), ("suffered", before)):
        found = [violation.subject for violation in verify(document, _stated(**stated | {key: wrong}))]
        assert found == ([] if stated[key] == wrong else [f"objective.{key}"])


def _stated(**score: Any) -> Document:
    answer = plan(STARTS)
    answer["objective"].update(score)
    return answer


@pytest.mark.parametrize(("objective", "value", "suffered"), WORKED)
def test_worked_examples(objective: object, value: float, suffered: float) -> None:
    """Value and suffered part are those of the formulas, and a millionth more is refused."""
    document = instance(*JOBS, queues=QUEUES, objective=objective)
    name = objective if isinstance(objective, str) else "a sum"
    assert verify(document, _stated(name=name, value=value, suffered=suffered)) == ()
    for wrong in ({"value": value * 1.000001}, {"suffered": suffered * 0.999999}):
        answer = _stated(**{"name": name, "value": value, "suffered": suffered, **wrong})
        assert [violation.subject for violation in verify(document, answer)] == [f"objective.{next(iter(wrong))}"]


def test_an_expected_runtime_counts_in_the_slowdown_alone() -> None:
    """A job that holds its nodes for 100 s, and is expected to run for 20, is as slow as one of 20 s; the sums of other
    terms are those of its start and of what it holds.
    """
    expecting = (job("a", submit=-60, queue="q", expected=20), JOBS[1])
    for objective, value, suffered in WORKED[:5]:
        stated = _stated(name=objective, value=value, suffered=suffered)
        assert verify(instance(*expecting, queues=QUEUES, objective=objective), stated) == ()
    document = instance(*expecting, queues=QUEUES, objective="slowdown")
    assert verify(document, _stated(name="slowdown", value=120 / 20 + 1, suffered=80 / 20 + 1)) == ()
    assert verify(document, _stated(name="slowdown", value=200 / 100 + 1, suffered=160 / 100 + 1)) != ()


#: The first job is malleable, and runs from 40 on half of its cores, for 200 s: 100 s longer than on all of them.
STRETCHED = [
    ("wait", 100 + 100, 60),
    ("weighted_wait", 200 / 30, 60 / 30),
    ("completion", 300 + 4, 160 + 4),
    ("makespan", 240, 144),
    ("tardiness", 70, 30),
    ("slowdown", 200 / 100 + 100 / 100 + 1, 160 / 100 + 1),
    ({"wait": 0.5, "makespan": 2}, 100 + 480, 30 + 288),
]


@pytest.mark.parametrize(("objective", "value", "suffered"), STRETCHED)
def test_stretching_costs(objective: object, value: float, suffered: float) -> None:
    """A malleable job pays for each second that it takes longer than at full share; without that it is refused."""
    first = job("a", submit=-60, queue="q", request="ncpus=4", malleable={"shares": [0.5]})
    document = instance(first, JOBS[1], queues=QUEUES, objective=objective)
    name = objective if isinstance(objective, str) else "a sum"
    answer = deepcopy(_stated(name=name, value=value, suffered=suffered))
    (shrunk,) = (one for one in answer["jobs"] if one["id"] == "a")
    shrunk["end"] = shrunk["segments"][0]["end"] = 240
    assert verify(document, answer) == ()
    answer["objective"]["value"] = value * 1.000001
    assert [violation.subject for violation in verify(document, answer)] == ["objective.value"]


#: The same where the first job has the weight 2.5 and the other one 0.1, of its own.
WEIGHED = [
    ("wait", 2.5 * 100, 2.5 * 60),
    ("weighted_wait", 2.5 * 100 / 30, 2.5 * 60 / 30),
    ("completion", 2.5 * 200 + 0.1 * 4, 2.5 * 160 + 0.1 * 4),
    ("makespan", 144, 144),
    ("tardiness", 2.5 * 70, 2.5 * 30),
    ("slowdown", 2.5 * 200 / 100 + 0.1, 2.5 * 160 / 100 + 0.1),
    ({"wait": 0.5, "makespan": 2}, 2.5 * 50 + 288, 2.5 * 30 + 288),
]


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize(("objective", "value", "suffered"), WEIGHED)
def test_weights_multiply_sums(objective: object, value: float, suffered: float, *, is_own: bool) -> None:
    """What a job adds to a sum is multiplied by its own weight or else its queue's, prices of delays too."""
    queue = QUEUES["q"] | {"max_wait": {"seconds": 90, "price": 3}} | ({} if is_own else {"weight": 2.5})
    first = job("a", submit=-60, queue="q", told={"start": 25}, weight=2.5 if is_own else None)
    document = instance(first, job("b", submit=140, walltime=4, weight=0.1), queues={"q": queue}, objective=objective)
    name = objective if isinstance(objective, str) else "a sum"
    value += 2.5 * (3 * 10 / 30 + 15 / 30)
    assert verify(document, _stated(name=name, value=value, suffered=suffered)) == ()
    for wrong in ({"value": value * 1.000001}, {"suffered": suffered * 0.999999}):
        answer = _stated(**{"name": name, "value": value, "suffered": suffered, **wrong})
        assert [violation.subject for violation in verify(document, answer)] == [f"objective.{next(iter(wrong))}"]


@pytest.mark.parametrize(
    ("bound", "gap", "subjects"),
    [
        (75.0, 0.25, []),
        (100.0, 0.0, []),
        (75.0, 0.2, ["objective.gap"]),
        (75.0, None, ["objective.gap"]),
        (None, 0.2, ["objective.gap"]),
        (101.0, -0.01, ["objective.bound"]),
        (True, 0.25, ["objective.bound"]),
        ("75", 0.25, ["objective.bound"]),
        (float("nan"), 0.25, ["objective.bound"]),
        (10**400, 0.25, ["objective.bound"]),
        (-(1 << 20_000), 0.25, ["objective.bound"]),
        (-1e30 / 3, 1e28 / 3, []),
        (-1e30 / 3, 1.0001e28 / 3, ["objective.gap"]),
    ],
    ids=range(13),
)
def test_bound_and_gap(bound: object, gap: object, subjects: list[str]) -> None:
    """The bound is at most the value, and the gap is what the formula says, to nine digits where it is large."""
    document = instance(*JOBS, queues=QUEUES, objective="wait")
    answer = _stated(name="wait", value=100, suffered=60, bound=bound, gap=gap)
    assert [violation.subject for violation in verify(document, answer)] == subjects


@pytest.mark.parametrize(
    ("keys", "rules"),
    [
        ({"bound": 75.0, "gap": 0.25, "proof": "Smith's rule"}, []),
        ({"bound": None, "gap": None, "proof": "Smith's rule"}, ["objective"]),
        ({"bound": 75.0, "gap": 0.25, "proof": ""}, ["structure"]),
        ({"bound": 75.0, "gap": 0.25, "proof": None}, ["structure"]),
        ({"bound": 75.0, "gap": 0.25, "proof": "a\nb"}, ["structure"]),
    ],
    ids=range(5),
)
def test_a_proof_is_of_a_bound(keys: Document, rules: list[str]) -> None:
    """How the bound was proven is said in words, and only where there is one."""
    document = instance(*JOBS, queues=QUEUES, objective="wait")
    violations = verify(document, _stated(name="wait", value=100, suffered=60, **keys))
    assert [(one.rule, one.subject) for one in violations] == [(rule, "objective.proof") for rule in rules]


def test_events_are_part_of_a_plan() -> None:
    """When, to whom and what: with all three the plan is valid."""
    assert verify(instance(), plan(events=[{"at": 0.5, "by": "cp", "what": "ended by itself"}])) == ()


@pytest.mark.parametrize(
    ("work", "is_valid"),
    [
        ({"by": "cp", "seconds": 1.5, "what": "7 neighbourhoods"}, True),
        ({"by": "cp", "seconds": 0}, True),
        ({"by": "cp", "seconds": -1}, False),
        ({"by": "cp", "seconds": 1, "what": ""}, False),
        ({"by": "", "seconds": 1}, False),
        ({"by": "cp"}, False),
    ],
)
def test_work_of_solvers_is_part_of_a_plan(work: Document, is_valid: bool) -> None:
    """A solver, its seconds, and words that may be left out."""
    assert (verify(instance(), plan(work=[work])) == ()) == is_valid


def test_nothing_planned_has_gap_zero() -> None:
    """With a value of 0 the gap is 0."""
    answer = plan()
    answer["objective"].update(bound=0, gap=0)
    assert verify(instance(), answer) == ()


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        (("instance",), "other", "identity"),
        (("now",), 1, "identity"),
        (("now",), None, "identity"),
        (("now",), 1 << 20_000, "identity"),
        (("objective", "name"), "wait", "objective"),
        (("objective", "planner"), "12", "structure"),
        (("objective", "value"), float("inf"), "structure"),
        (("objective", "extra"), 1, "structure"),
        (("objective",), [], "structure"),
        (("engine", "version"), "", "engine"),
        (("engine", "budget"), -1, "engine"),
        (("engine", "extra"), 1, "engine"),
        (("engine",), 7, "engine"),
        (("extra",), 1, "structure"),
        (("waiting_room",), {}, "structure"),
        (("waiting_room",), [{"id": "a"}], "structure"),
        (("waiting_room",), [{"id": "a", "reason": "lazy", "detail": "x"}], "structure"),
        (("waiting_room",), [{"id": "a", "reason": "too_late", "detail": ""}], "structure"),
        (("reservations",), [{"id": "r", "start": 0, "end": 1, "allocation": []}], "structure"),
        (("incumbents",), [{"at": -1, "value": 1, "by": "x"}], "structure"),
        (("events",), [{"at": -1, "by": "x", "what": "y"}], "structure"),
        (("events",), [{"at": 1, "by": "", "what": "y"}], "structure"),
        (("events",), [{"at": 1, "by": "x", "what": ""}], "structure"),
        (("events",), [{"at": 1, "by": "x", "what": "y", "extra": 1}], "structure"),
        (("events",), {}, "structure"),
        (("jobs",), [5], "structure"),
        (("jobs",), [{**at("a", 0), "extra": 1}], "structure"),
        (("jobs",), [{**at("a", 0), "start": 0.0}], "structure"),
        (("jobs",), [{**at("a", 0), "end": 10**18}], "structure"),
        (("jobs",), [{**at("a", 0), "end": 0}], "structure"),
        (("jobs",), [{**at("a", 0), "segments": []}], "structure"),
        (("jobs",), [at("a", 0, {"node": "n9", "chunk": 0, "count": 1, "resources": {"cores": 2}})], "structure"),
        (("jobs",), [at("a", 0, {"node": "n1", "chunk": -1, "count": 1, "resources": {"cores": 2}})], "structure"),
        (("jobs",), [at("a", 0, {"node": "n1", "chunk": 0, "count": 1, "resources": {"cores": -2}})], "structure"),
        (("jobs",), [at("a", 0, {"node": ["n1"], "chunk": 0, "count": 1, "resources": {}})], "structure"),
    ],
    ids=range(35),
)
def test_malformed_parts_are_violations(path: tuple[str, ...], value: object, rule: str) -> None:
    """A part of a plan that cannot be read is said in words, and nothing is raised."""
    answer = deepcopy(plan([at("a", 0)]))
    place = answer
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    violations = verify(instance(job()), answer)
    assert rule in {violation.rule for violation in violations}
    assert all(violation.message and violation.subject for violation in violations)


@pytest.mark.parametrize("key", ["instance", "now", "objective", "engine"])
def test_what_a_plan_must_have(key: str) -> None:
    """Each required key that is missing is said by its name."""
    answer = plan()
    del answer[key]
    assert [(one.rule, one.subject) for one in verify(instance(), answer)] == [("structure", key)]


def test_unknown_keys_are_named_with_what_was_meant() -> None:
    """A slip of the pen gets a hint."""
    answer = plan([{**at("a", 0), "segmets": []}])
    assert "did you mean segments?" in " ".join(map(str, verify(instance(job()), answer)))


def test_numbers_that_no_float_holds() -> None:
    """A gap of 10^400 is told in full: a value may be as small, and a bound as large, as a document can say."""
    cases = Path(__file__).parents[1] / "cases"
    found = verify_files(cases / "verify-overflow.json", cases / "verify-overflow.plan.json")
    assert [str(violation) for violation in found] == ["objective: objective.gap: expected 1.00000000000e+400, got 1"]


#: Aims in order, and the values of the second one.
AIMS = [(["wait", "makespan"], [144]), ([["tardiness"], {"wait": 0.5, "makespan": 2}, "completion"], [338, 204])]


@pytest.mark.parametrize(("objective", "later"), AIMS)
def test_later_aims_are_recomputed(objective: list[Any], later: list[float]) -> None:
    """Each later aim is judged as an objective of its own: its value, its bound, its gap, and that it is there."""
    document = instance(*JOBS, queues=QUEUES, objective=objective)
    first = next(value for name, value, _ in WORKED if [name] == objective[:1] or [name] == objective[0])
    before = next(before for name, _, before in WORKED if [name] == objective[:1] or [name] == objective[0])
    then = [{"name": "later", "value": value, "bound": None, "gap": None} for value in later]

    def subjects(then: Any) -> list[str]:
        answer = _stated(name="aims", value=first, suffered=before)
        answer["objective"]["then"] = then
        return [violation.subject for violation in verify(document, answer)]

    assert subjects(then) == []
    assert subjects([*then, then[0]]) == ["objective.then"]
    assert subjects(then[1:]) == ["objective.then"]
    last = len(then) - 1
    for wrong, key in (
        ({"value": later[-1] + 1}, "value"),
        ({"bound": later[-1] + 1, "gap": 0}, "bound"),
        ({"bound": later[-1] / 2, "gap": 0.4}, "gap"),
        ({"gap": 0.4}, "gap"),
    ):
        found = subjects([*then[:-1], then[-1] | wrong])
        assert f"objective.then[{last}].{key}" in found
    assert subjects([*then[:-1], then[-1] | {"value": "much"}]) == [f"objective.then[{last}].value"]
    assert subjects("much") == ["objective.then", "objective.then"]


@pytest.mark.parametrize(
    "objective",
    [
        [],
        [[]],
        [["wait", "wait"]],
        ["wait", {"wait": 1}],
        ["wait", {"wait": 2, "tolerance": 1}],
        [{"tolerance": 1}, "wait"],
        [{"makespan": 1, "tolerance": -1}, "wait"],
    ],
)
def test_aims_that_are_none(objective: list[Any]) -> None:
    """The judge reads the aims of an instance as strictly as engines do."""
    with pytest.raises(DocumentError):
        verify(instance(*JOBS, queues=QUEUES, objective=objective), plan())
