"""Questions: why not earlier, when would a job start, and what would a change do."""

from __future__ import annotations

from typing import Any

import pytest

from cpsched.answers import Answers, explanation_lines, parse_submission
from cpsched.portfolio import solve
from tests.serve.serving import asking, users_site

WINDOW = users_site()


@pytest.fixture(scope="module")
def answers() -> Answers:
    """Answer about the planner's plan, which is the one that is served."""
    return Answers(WINDOW, solve(WINDOW, engine="planner", budget=0))


def what_if(question: dict[str, Any], status: int = 200) -> Any:
    """Ask on loopback."""
    with asking() as client:
        answer = client.post("/v1/what-if", json=question)
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.mark.parametrize("name", ["a1", "b1", "b2", "x", "r1"])
def test_an_explanation_is_that_of_the_answers(answers: Answers, name: str) -> None:
    """The API says, as data and in words, what `cpsched explain` says."""
    told = answers.explain(name)
    with asking() as client:
        said = client.get(f"/v1/jobs/{name}/explanation").json()
    assert said["words"] == list(explanation_lines(WINDOW, told))
    assert said["summary"] == said["words"][1]
    assert (said["state"], said["start"], said["free_start"]) == (str(told.state), told.start, told.free_start)
    assert [(one["start"], one["end"], one["cause"]["kind"]) for one in said["blocked"]] == [
        (one.start, one.end, str(one.cause.kind)) for one in told.blocked
    ]
    assert [(one["kind"], one["start"], one["amount"]) for one in said["changes"]] == [
        (str(one.kind), one.start, one.amount) for one in told.changes
    ]


def test_why_not_then(answers: Answers) -> None:
    """With a second it is about that one."""
    with asking() as client:
        said = client.get("/v1/jobs/b2/explanation", params={"at": 60}).json()
    assert len(said["blocked"]) == 1
    assert said["blocked"][0]["start"] == 60 == answers.explain("b2", 60).blocked[0].start


def test_when_would_a_new_job_start(answers: Answers) -> None:
    """A new job starts when the answers say, on the nodes that they say."""
    planned = answers.submit(parse_submission("2:ncpus=4,walltime=50s,queue=q", WINDOW)).planned
    said = what_if({"submit": {"request": "2:ncpus=4", "walltime": "50s", "queue": "q"}})
    assert planned is not None
    assert (said["start"], said["end"], said["wait"]) == (planned.start, planned.end, planned.start - WINDOW.now)
    assert said["nodes"] == "n[1-2]"
    assert said["words"][0].startswith("would start in ")
    impossible = what_if({"submit": {"request": "ncpus=9", "walltime": "1m"}})
    assert impossible["start"] is None
    assert impossible["detail"]


def test_what_if_i_asked_for_less() -> None:
    """Job b2 waits for both nodes; on one core it starts where a1 has not begun yet, if it is short enough."""
    whole = what_if({"instead": {"job": "b2"}})
    assert (whole["before"], whole["start"]) == (200, 200)
    less = what_if({"instead": {"job": "b2", "request": "ncpus=4"}})
    assert less["before"] == 200
    assert less["start"] < 200
    with asking() as client:  # nothing was kept
        assert client.get("/v1/jobs/b2").json()["start"] == 200


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ({}, ""),
        ({"submit": {"request": "ncpus=1", "walltime": "1"}, "instead": {"job": "b2"}}, ""),
        ({"submit": {"request": "ncpus=", "walltime": "1"}}, "request"),
        ({"submit": {"request": "ncpus=1", "walltime": "soon"}}, "walltime"),
        ({"submit": {"request": "ncpus=1", "walltime": "0"}}, "walltime"),
        ({"submit": {"request": "ncpus=1", "walltime": "1", "queue": "none"}}, "queue"),
        ({"submit": {"request": "ncpus=1", "walltime": "1", "colour": "red"}}, "submit.colour"),
        ({"submit": {"request": 7, "walltime": "1"}}, "submit.request"),
        ({"instead": {"job": "r1", "walltime": "1"}}, "instead.job"),
        ({"instead": {"job": "b2", "request": "(("}}, "request"),
        ({"changes": {"drop": ["a1"]}}, "changes"),
    ],
)
def test_questions_that_are_not_in_order(question: dict[str, Any], path: str) -> None:
    """They are refused with the path of what is wrong."""
    problem = what_if(question, 422)
    assert path in [fault["path"] for fault in problem["faults"]], problem


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'"x"', b"[" * 60_000, b'{"submit": NaN}', b"\xff\xfe"])
def test_bodies_that_are_no_questions(body: bytes) -> None:
    """Whatever is sent is refused as a problem, and is no error of the server."""
    with asking() as client:
        refused = client.post("/v1/what-if", content=body, headers={"Content-Type": "application/json"})
        assert refused.status_code in (400, 422)
        assert refused.headers["content-type"] == "application/problem+json"


def test_a_name_that_is_taken_does_not_hinder_a_question() -> None:
    """A window whose job is called as new jobs are is asked about like any other."""
    from cpsched.answers import SUBMITTED
    from tests.bridge.small_world import job, site
    from tests.serve.serving import opened

    with asking(opened(site(job(SUBMITTED), job(f"{SUBMITTED}-1")))) as client:
        said = client.post("/v1/what-if", json={"submit": {"request": "ncpus=1", "walltime": "1"}})
        assert said.status_code == 200, said.text
