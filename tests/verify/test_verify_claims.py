"""What a plan says of the jobs in its waiting room, held against the oracle of openings: it names start and nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cpsched.verify import verify
from tests.sizes import some
from tests.verify.openings import EFFORT, SHARE, Openings, openings_of, strictly_verified
from tests.verify.random_claims import judged, random_claims
from tests.verify.small_documents import Document, at, cluster, instance, job, on, plan, planned, segment, waiting

CASES = Path(__file__).resolve().parents[1] / "cases"


def _load(name: str) -> Any:
    return json.loads((CASES / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("case", "opening"),
    [("false-unsatisfiable", "0 on n1"), ("false-too-late", "0 on n1"), ("false-too-late-2", "0 on n2")],
)
def test_a_false_claim_is_refused_with_start_and_node(case: str, opening: str) -> None:
    """A claim that one start on a free node proves wrong is a violation that names both."""
    violations = strictly_verified(_load(f"{case}.json"), _load(f"{case}.plan.json"))
    assert [violation.rule for violation in violations] == ["waiting_room"]
    assert f"it could start at {opening}, beside all that is planned" in violations[0].message


#: Has n1 until 100 and n2 until 50, all of their cores.
FULL = [at("x", 0, on("n1", cores=4)), at("y", 0, on("n2", cores=4), walltime=50)]
XY = (job("x", "ncpus=4"), job("y", "ncpus=4", walltime=50))
STEPS = [{"walltime": 10, "request": "1:ncpus=4"}, {"walltime": 10, "request": "2:ncpus=4"}]


def _against(*jobs: Document, booked: list[Document], reason: str, **members: Any) -> list[str]:
    """Return the violations of the claim about the last of some jobs."""
    room = [waiting(jobs[-1]["id"], reason)]
    return [violation.message for violation in strictly_verified(instance(*jobs, **members), plan(booked, room))]


@pytest.mark.parametrize(
    ("entry", "start"),
    [
        (job("a", "ncpus=4", walltime=10, deadline=60), 50),
        (job("a", "ncpus=4", walltime=10, deadline=59), None),
        (job("a", "2:ncpus=4", walltime=10, deadline=110), 100),
        (job("a", "mem=1m", walltime=10, deadline=10), 0),
        (job("a", "mem=1m", walltime=10, deadline=59, place="free:excl"), None),
        (job("a", "mem=1m", walltime=10, deadline=60, place="free:excl"), 50),
        (job("a", walltime=None, request=None, steps=STEPS, deadline=110), 90),
        (job("a", walltime=None, request=None, steps=STEPS, deadline=109), None),
        (job("a", "ncpus=4", walltime=10, malleable={"shares": [0.5]}, deadline=60), 50),
        (job("a", "ncpus=4", walltime=10, start_at=50), 50),
        (job("a", "ncpus=4", walltime=10, start_at=49), None),
    ],
    ids=str,
)
def test_the_earliest_start_beside_the_plan(entry: Document, start: int | None) -> None:
    """Of a job that is said to be too late the judge names the first start at which it fits, to the second."""
    if "steps" in entry:
        entry = {key: value for key, value in entry.items() if key not in ("walltime", "request")}
    said = _against(*XY, entry, booked=FULL, reason="too_late")
    assert len(said) == (start is not None)
    assert start is None or f"it could start at {start} on" in said[0]


def test_the_verifier_looks_for_no_start() -> None:
    """That no start was found beside a plan is believed, whatever is free; to find one is the engines' work."""
    for reason in ("not_mapped", "too_late"):
        claim = plan([], [waiting("a", reason)])
        document = instance(job("a", deadline=500))
        assert verify(document, claim) == ()
        assert "could start at 0" in strictly_verified(document, claim)[0].message


def test_a_malleable_job_fits_on_a_share() -> None:
    """A malleable job that fits only on half of its cores is not too late: it takes twice as long there."""
    half = [at("x", 0, on("n1", cores=2)), at("y", 0, on("n2", cores=4), walltime=100)]
    jobs = (job("x"), job("y", "ncpus=4"), job("a", "ncpus=4", walltime=10, malleable={"shares": [0.5]}, deadline=20))
    assert "it could start at 0 on n1" in _against(*jobs, booked=half, reason="too_late")[0]


def test_limits_keep_a_job_out() -> None:
    """Where its user may have no more, a job does not fit beside the plan, however much is free."""
    jobs = (job("x", user="u"), job("a", user="u", deadline=150))
    limit = {"consumer": {"user": "u"}, "resource": "jobs", "items": "1"}
    assert _against(*jobs, booked=[at("x", 0)], reason="too_late", limits=[limit]) == []
    assert len(_against(*jobs, booked=[at("x", 0)], reason="too_late")) == 1


def test_licences_keep_a_job_out() -> None:
    """A job whose licence is taken until its last start is too late, one that may wait for it is not."""
    licensed = cluster({"names": "n[1-2]"}, abaqus=1)
    held = job("x", licenses={"abaqus": 1})
    for deadline, count in ((199, 0), (200, 1)):
        late = job("a", licenses={"abaqus": 1}, deadline=deadline)
        assert len(_against(held, late, booked=[at("x", 0)], reason="too_late", cluster=licensed)) == count


def test_an_evolving_job_on_the_empty_cluster() -> None:
    """An evolving job that fits on nodes that are down is not unsatisfiable; the judge names them."""
    steps = job("a", steps=STEPS)
    entry = {key: value for key, value in steps.items() if key not in ("walltime", "request")}
    down = cluster({"names": "n1"}, {"names": "n2", "state": "down"})
    said = _against(entry, booked=[], reason="unsatisfiable", cluster=down)
    assert said == ["it is said to be unsatisfiable, but on an empty, healthy cluster it could run on n1, n2"]
    assert _against(entry, booked=[], reason="unavailable", cluster=down) == []


def test_openings_fit_beside_each_other() -> None:
    """Of two jobs for which one node is free, the first one gets it, and the second one what comes after that."""
    jobs = [*XY, job("a", "ncpus=4", walltime=10), job("b", "ncpus=4", walltime=10)]
    room = [waiting("a", "not_mapped"), waiting("b", "not_mapped")]
    openings = openings_of(instance(*jobs), plan(FULL, room))
    assert [(entry["id"], entry["start"]) for entry in openings] == [("a", 50), ("b", 60)]
    assert openings[0] == planned("a", segment(50, 60, on("n2", cores=4)))
    assert not verify(instance(*jobs), plan([*FULL, *openings]))


def test_in_a_record_only_what_comes_after_counts() -> None:
    """Nobody knew beforehand what would be free: a claim of a record is false only if the job fits after all else."""
    jobs = (job("x", runtime=10), job("a", "ncpus=4", deadline=105))
    booked = [at("x", 0, walltime=10)]
    record = plan(booked, [waiting("a", "too_late")], record=True)
    assert strictly_verified(instance(*jobs), record) == ()
    late = (jobs[0], {**jobs[1], "deadline": 110})
    assert len(strictly_verified(instance(*late), record)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(60), 3))
def test_random_claims(seed: int) -> None:
    """Of random claims, the judge refuses no true one, and believes no false one that one kind of chunks decides."""
    wrong = [claim for verdict, claim in judged(seed) if verdict in ("true claim refused", "false claim believed")]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(60), 3))
def test_random_openings_keep_every_rule(seed: int) -> None:
    """A random plan with its openings booked breaks no rule that it did not break before."""
    document, answer, _ = random_claims(seed)
    taken = openings_of(document, answer)
    names = {entry["id"] for entry in taken}
    room = [entry for entry in answer["waiting_room"] if entry["id"] not in names]
    with_them = {**answer, "jobs": [*answer["jobs"], *taken], "waiting_room": room}
    before = {violation.rule for violation in verify(document, answer)} | {"waiting_room", "objective"}
    assert {violation.rule for violation in verify(document, with_them)} <= before


def test_the_effort_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting room of many jobs that each fit nowhere takes a bounded number of looks, though no two are alike."""
    looks: list[int] = []
    charge = Openings._charge

    def counted(self: Openings, number: int) -> None:
        charge(self, number)
        looks.append(number)

    monkeypatch.setattr(Openings, "_charge", counted)
    nodes = {"names": "n[1-300]", "resources": {"cores": 4}}
    booked = [at(f"x{number}", number, on(f"n{number + 1}", cores=3)) for number in range(300)]
    running = [job(f"x{number}", "ncpus=3") for number in range(300)]
    late = [job(f"a{number}", "ncpus=2", walltime=101 + number, deadline=202 + number) for number in range(300)]
    document = instance(*running, *late, cluster={"nodes": [nodes]})
    answer = plan(booked, [waiting(entry["id"], "too_late") for entry in late])
    violations = strictly_verified(document, answer)
    assert {violation.rule for violation in violations} <= {"waiting_room"}
    assert EFFORT / 2 < sum(looks) <= EFFORT + SHARE


def test_no_opening_is_looked_for_where_a_rule_always_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job beyond a limit that always holds is laid on no nodes; beyond one that ends it is, after that."""

    def refuse(*_: object) -> None:
        raise AssertionError("nodes were looked for")

    limit = {"consumer": {"user": "u"}, "resource": "cores", "items": "1"}
    claim = plan([], [waiting("a", "limit")])
    with monkeypatch.context() as patched:
        patched.setattr(Openings, "_at", refuse)
        assert strictly_verified(instance(job(user="u"), limits=[limit]), claim) == ()
    ends = {**limit, "validity": {"until": 50}}
    (violation,) = strictly_verified(instance(job(user="u"), limits=[ends]), claim)
    assert "could start at 50" in violation.message
