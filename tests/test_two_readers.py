"""The contract has two readers that share no code: they accept the same documents, and refuse the same."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, PlannedJob, Segment, repeated, resumable
from cpsched.engine import Outcome
from cpsched.errors import DocumentError
from cpsched.formats import instance_to_document, parse_instance, parse_plan, plan_to_document
from cpsched.portfolio import plan_of
from cpsched.verify import Judge, verify
from tests.formats.format_documents import minimal_instance, small_instance
from tests.oracle.random_instances import instances, pressed
from tests.sizes import examples
from tests.verify.small_documents import at, instance, job, on, plan, waiting

Document = dict[str, Any]
Path = tuple[str | int, ...]

#: What is put in the place of anything: bounds of the format and one beyond, texts of its notations, wrong types.
VALUES: list[object] = [
    None, True, 0, 1, -1, 2**31 - 1, 2**31, 10**10, 10**10 + 1, 10**12, 10**12 + 1, 10**17, 10**17 + 1, 10**18,
    10**18 + 1, 0.5, 1.0, 1e100, 1e101, 10**350, "", "a", "1", "n\x00", "\ud800", "x" * 256, "x" * 257, [], {}, [{}],
    ["a"], {"a": 1}, [None], "cn1", "cn[1-2]", "cores", "jobs", "place", "always", "1/5%", "101%", "5-9", "user",
    "free:exclusive", "ncpus=1,place=pack", "2:ncpus=1+ngpus=1,abaqus=1", "ncpus=0", "* * * * *", "Asia/Kolkata",
    "../UTC", {"rack": "1"}, {"rack": "2"}, {"cn1": "up"}, {"cn[1-2]": "down"},
]  # fmt: skip

#: Pieces that texts are made of, with the place in a document where such a text stands.
NOTATIONS: dict[str, tuple[Path, list[str]]] = {
    "host list": (
        ("cluster", "nodes", 0, "names"),
        ["n", "1", "01", "[", "]", ",", "-", "/", "[1-2]", "[08-11]", "[8-011]", " ", "*", "\u0661"],
    ),
    "request": (
        ("jobs", 0, "request"),
        ["ncpus=1", "ncpus", "=", "1", ":", "2:", "+", ",", "mem=1gb", "place=", "pack", ":excl", "sim=1", "x=y", " "],
    ),
    "place": (
        ("jobs", 0, "place"),
        ["free", "pack", "scatter", ":", "excl", "exclusive", "shared", " ", "within=", "rack"],
    ),
    "indices": (("jobs", 0, "array", "indices"), ["0", "1", "5", "10", "-", ":", ",", " ", "2147483648"]),
    "items": (("limits", 0, "items"), ["1", "45", "100", "101", "/", "%", ".", " ", "unlimited"]),
    "epoch": (("epoch",), ["2014-03-31", "T18:00", "+02:00", "Z", ".5", ":00", " ", "T24:00", "20140331"]),
}

CRON_VALUES = ["*", "0", "1", "5", "7", "30", "31", "59", "60", "mon", "SUN", "feb", "fRi", "L", "5#2", "007", "0007"]


def _accepted(document: object) -> tuple[bool, bool]:
    """Return whether each reader accepts an instance."""
    try:
        parse_instance(copy.deepcopy(document))
        first = True
    except DocumentError:
        first = False
    try:
        verify(copy.deepcopy(document), plan())  # type: ignore[arg-type]  # wrong on purpose
        return first, True
    except DocumentError:
        return first, False


@st.composite
def _running_malleable(draw: st.DrawFn) -> Document:
    """Draw a running malleable job on one or two nodes, most often one that a plan may change, at second 0."""
    cores = draw(st.integers(1, 6))
    nodes = ["n1", "n2"][: draw(st.integers(1, 2))]
    shares = draw(st.lists(st.sampled_from([0.25, 0.3, 0.5, 0.7]), min_size=1, max_size=2, unique=True))
    counted = draw(st.booleans())

    def segment(start: int, end: int) -> Document:
        held = draw(st.sampled_from([cores, max(1, cores // 2), -(-cores // 2), cores]))
        return {"start": start, "end": end, "allocation": [
            {"node": node, "resources": {"cores": held}} | ({"chunk": 0, "count": 1} if counted else {})
            for node in nodes]}  # fmt: skip

    since, rest = draw(st.integers(1, 9)), draw(st.integers(1, 30))
    whole = {"start": -since, "allocation": segment(0, 1)["allocation"]}
    changed = {"start": -since, "segments": [segment(-since, -since + 1), segment(-since + 1, rest)]}
    malleable = {"shares": shares, "model": draw(st.sampled_from(["ideal", "worst"]))}
    running, request = draw(st.sampled_from([whole, changed])), f"{len(nodes)}:ncpus={cores}"
    return job("r", request, draw(st.integers(1, 30)), malleable=malleable, running=running)


@examples(150, deadline=None)
@given(_running_malleable())
def test_both_agree_on_who_may_change(entry: Document) -> None:
    """What the domain says of a running job is what the judge accepts: every mode from now on, or none at all."""
    cluster = {"nodes": [{"names": "n[1-2]", "resources": {"cores": 6}}]}
    document = instance(entry, cluster=cluster, objective="makespan")
    try:
        read = parse_instance(document)
    except DocumentError:
        assert not _accepted(document)[1]
        return
    (running,) = read.jobs
    left, stated, judge = resumable(running, 0), repeated(running), Judge(document)
    past = [segment for segment in stated.segments if segment.start < 0]
    if left is None:
        one_core = tuple(replace(held, resources=Amounts({"cores": 1})) for held in past[-1].allocation)
        tried = [(one_core, seconds) for seconds in range(1, 61)]
    else:
        lengths = [mode.time_for(left.work) for mode in left.modes]
        tried = list(zip(left.allocations, lengths, strict=True))
    for allocation, seconds in tried:
        segments = (*past[:-1], replace(past[-1], end=0), Segment(start=0, end=seconds, allocation=allocation))
        changed = PlannedJob(id="r", start=past[0].start, end=seconds, segments=segments)
        if allocation != past[-1].allocation and changed != stated:
            outcome = Outcome(jobs=(changed,), waiting_room=())
            answer = plan_to_document(plan_of(read, "hand", outcome, budget=0, elapsed=0))
            assert (judge.violations(answer) == ()) == (left is not None)


def test_a_step_beyond_the_machine_is_no_fault() -> None:
    """A step that asks for more than there is leaves the document in order: its job waits in the waiting room."""
    steps = [{"walltime": 5, "request": "ncpus=1"}, {"walltime": 5, "request": "99:ncpus=4"}]
    assert _accepted(instance({"id": "e", "submit": 0, "steps": steps})) == (True, True)


def _paths(value: object, path: Path = ()) -> list[Path]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in children for deeper in _paths(child, (*path, key)))]


def _part(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: Document, path: Path, new: object) -> Document:
    """Return a copy in which one part is another."""
    changed = copy.deepcopy(document)
    _part(changed, path[:-1])[path[-1]] = copy.deepcopy(new)
    return changed


def _mutated(document: Document, rng: random.Random) -> Document:
    """Return a copy in which a part has gone, stands twice, is another part of the same key, or anything."""
    paths = _paths(document)[1:]
    path = rng.choice(paths)
    kind = rng.randrange(4)
    if kind == 0:
        changed = copy.deepcopy(document)
        del _part(changed, path[:-1])[path[-1]]
        return changed
    if kind == 1:
        return _with(document, path, _part(document, rng.choice([other for other in paths if other[-1] == path[-1]])))
    if kind == 2 and isinstance(_part(document, path), list) and _part(document, path):
        return _with(document, path, _part(document, path) * 2)
    return _with(document, path, rng.choice(VALUES))


def _linked() -> Document:
    links = [{"from": "n1", "to": "s1"}, {"from": "n2", "to": "s[2-3]", "length": 1}, {"from": "s1", "to": "s2"}]
    topology = {"switches": "s[1-3]", "levels": {"switch": 2}, "links": links}
    nodes = [{"names": "n[1-2]", "resources": {"cores": 4}}]
    cluster = {"nodes": nodes, "topology": topology, "slowdown": {"switch": 5}}
    return instance(job(place="within=switch"), cluster=cluster)


@examples(300)
@given(st.randoms(use_true_random=False))
def test_mutated_instances(rng: random.Random) -> None:
    """An instance with everything in it, or one with links, changed in one place, is accepted by both or by neither."""
    first, second = _accepted(_mutated(rng.choice([small_instance(), _linked()]), rng))
    assert first == second


@examples(40)
@given(instances() | instances().flatmap(pressed), st.randoms(use_true_random=False))
def test_random_instances(drawn: Any, rng: random.Random) -> None:
    """What the planner's tests are made of is accepted as it is, and changed in one place by both or by neither."""
    document = instance_to_document(drawn)
    assert _accepted(document) == (True, True)
    first, second = _accepted(_mutated(document, rng))
    assert first == second


def _host(notation: str) -> Document:
    """Return an instance that has a text of that notation."""
    entry: Document = {"id": "1", "submit": 0, "walltime": 5, "request": "ncpus=1"}
    extra: dict[str, Document] = {"indices": {"array": {"indices": "1"}}, "place": {"place": "free"}}
    entry |= extra.get(notation, {})
    return minimal_instance(entry, limits=[{"consumer": {"user": "u"}, "resource": "*", "area": 1}])


@pytest.mark.parametrize("notation", NOTATIONS)
@examples(150)
@given(data=st.data())
def test_short_texts(notation: str, data: st.DataObject) -> None:
    """A text that is put together at random belongs to a notation for both readers or for neither."""
    path, pieces = NOTATIONS[notation]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=6)))
    first, second = _accepted(_with(_host(notation), path, text))
    assert first == second, text


@st.composite
def _cron_fields(draw: st.DrawFn) -> str:
    value = draw(st.sampled_from(CRON_VALUES))
    tail = draw(st.sampled_from(["", "", "-" + draw(st.sampled_from(CRON_VALUES))]))
    return value + tail + draw(st.sampled_from(["", "", "/2", "/0", "/60", "/1000"]))


@examples(400)
@given(st.lists(st.just("*") | _cron_fields(), min_size=5, max_size=5))
def test_cron_expressions(fields: list[str]) -> None:
    """The library on one side and the parser on the other know the same expressions."""
    document = _host("items") | {"epoch": "2014-03-31T18:00:00+02:00"}
    first, second = _accepted(_with(document, ("limits", 0, "validity"), {"cron": " ".join(fields)}))
    assert first == second, fields


KEPT = {"id": "k", "start": -5, "end": 9, "request": "ngpus=1", "allocation": [on("n2", gpus=1)]}
REFUSED = {"id": "e", "start": 2, "end": 9, "request": "3:ngpus=1"}
PLANNED = instance(
    job("a"),
    job("b"),
    job("w", "1:ncpus=99"),
    reservations=[{"id": "d", "start": 5, "end": 9, "request": "ngpus=1"}, KEPT, REFUSED],
)
PLAN = plan(
    [at("a", 0), at("b", 5, on("n2", cores=2))],
    [waiting("w", "unsatisfiable")],
    reservations=[
        {"id": "d", "start": 5, "end": 9, "allocation": [on("n1", gpus=1)]},
        {"id": "k", "start": -5, "end": 9, "allocation": [on("n2", gpus=1)]},
        {"id": "e", "start": 2, "end": 9, "reason": "words"},
    ],
    incumbents=[{"at": 0.5, "value": 1, "by": "x"}],
    events=[{"at": 0.5, "by": "x", "what": "words"}],
)
PLAN["objective"] |= {"bound": 0.0, "gap": 1.0, "proof": "words"}
HAPPENED = instance(job("a", runtime=70), job("b"), outages=[{"nodes": "n1", "start": 40, "end": 60}])
RECORD = plan(
    [at("a", 40, on("n2", cores=2), walltime=70)],
    [waiting("b", "not_started")],
    record=True,
    attempts=[at("a", 0, walltime=40)],
)


@pytest.mark.parametrize(("window", "good"), [(PLANNED, PLAN), (HAPPENED, RECORD)], ids=["plan", "record"])
def test_the_plan_is_valid(window: Document, good: Document) -> None:
    """The plans that the next test changes are good ones."""
    assert verify(window, good) == ()
    assert len(parse_plan(good).jobs) == len(good["jobs"])


@pytest.mark.parametrize(("window", "good"), [(PLANNED, PLAN), (HAPPENED, RECORD)], ids=["plan", "record"])
@examples(300)
@given(st.randoms(use_true_random=False))
def test_mutated_plans(window: Document, good: Document, rng: random.Random) -> None:
    """What is no plan for one reader breaks a rule of the other; what is none in shape is refused by both."""
    document = _mutated(good, rng)
    try:
        parse_plan(copy.deepcopy(document))
        refused = False
    except DocumentError:
        refused = True
    try:
        violations = verify(window, copy.deepcopy(document))
    except DocumentError:
        assert refused
    else:
        assert violations or not refused
        known = ("expected a node of the cluster", "expected a reservation of the instance")
        shape = [one for one in violations if one.rule in ("structure", "engine") and not one.message.startswith(known)]
        assert refused or not shape
