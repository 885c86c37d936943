"""Tokens come from a file that nobody else can read; what readers see of the jobs of others is the site's choice."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.site.serve import Visibility, read_tokens
from cpsched.site.serve.access import Token, of_token
from tests.serve.serving import ALICE, BOB, OPERATOR, TOKENS, asking, bearer, opened

HASH = hashlib.sha256(b"a token").hexdigest()


def tokens_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    """Write a file of tokens."""
    path = folder / "tokens.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_tokens_are_read(tmp_path: Path) -> None:
    """A user's and an operator's token are what the file says."""
    other = "0" * 64
    text = f'[[tokens]]\nuser = "alice"\nsha256 = "{HASH}"\n[[tokens]]\noperator = true\nsha256 = "{other}"\n'
    assert read_tokens(tokens_file(tmp_path, text)) == (
        Token(sha256=HASH, user="alice"),
        Token(sha256=other, operator=True),
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever can read or write the file besides its owner makes it useless."""
    path = tokens_file(tmp_path, f'[[tokens]]\nuser = "alice"\nsha256 = "{HASH}"\n', mode)
    with pytest.raises(DocumentError, match="mode 0600"):
        read_tokens(path)


def test_all_faults_of_a_file_are_told(tmp_path: Path) -> None:
    """Unknown keys, hashes that are none, tokens twice and tokens of nobody are told together, or kind by kind."""
    shape = '[[tokens]]\nuser = "alice"\nsha256 = "secret"\n[[tokens]]\nusr = "bob"\n'
    with pytest.raises(DocumentError) as shapes:
        read_tokens(tokens_file(tmp_path, shape))
    assert {fault.path for fault in shapes.value.faults} == {"tokens[0].sha256", "tokens[1].usr", "tokens[1].sha256"}
    twice = f'[[tokens]]\nuser = "a"\nsha256 = "{HASH}"\n[[tokens]]\nsha256 = "{HASH}"\n'
    with pytest.raises(DocumentError) as relations:
        read_tokens(tokens_file(tmp_path, twice))
    assert {fault.path for fault in relations.value.faults} == {"tokens[1].sha256", "tokens[1]"}


def test_a_token_is_found_by_its_hash() -> None:
    """The text of a token finds it; its hash, or nothing, finds none."""
    assert of_token(BOB, TOKENS) == TOKENS[1]
    assert of_token(TOKENS[1].sha256, TOKENS) is None
    assert of_token("", TOKENS) is None
    assert of_token("caf\udce9", TOKENS) is None


def names(visibility: Visibility, token: str | None) -> dict[str, str | None]:
    """Return the jobs that a reader sees, with their users."""
    with asking(opened(visibility=visibility)) as client:
        jobs = client.get("/v1/jobs", headers=bearer(token) if token else {}).json()["jobs"]
        return {job["id"]: job["user"] for job in jobs}


EVERYTHING = {"r1": "alice", "r2": "alice", "a1": "alice", "b1": "bob", "b2": "bob", "x": "carol"}


@pytest.mark.parametrize("token", [None, ALICE, OPERATOR])
def test_where_all_is_visible_everybody_sees_it(token: str | None) -> None:
    """With `all` every reader sees all jobs and users."""
    assert names(Visibility.ALL, token) == EVERYTHING


@pytest.mark.parametrize("visibility", list(Visibility))
def test_an_operator_sees_everything(visibility: Visibility) -> None:
    """Whatever users see, operators see all."""
    assert names(visibility, OPERATOR) == EVERYTHING


def test_anonymous_jobs_have_other_names_and_no_users() -> None:
    """With `anonymous` alice sees hers, and three others of which neither name nor user is told."""
    seen = names(Visibility.ANONYMOUS, ALICE)
    assert {job: user for job, user in seen.items() if user} == {"r1": "alice", "r2": "alice", "a1": "alice"}
    others = [job for job, user in seen.items() if user is None]
    assert len(others) == 3
    assert all(job.startswith("other-") for job in others)
    assert list(names(Visibility.ANONYMOUS, None).values()) == [None] * 6


def test_own_jobs_only() -> None:
    """With `own` alice sees hers, and who has no token nothing; the counts of all are the same for everybody."""
    assert set(names(Visibility.OWN, ALICE)) == {"r1", "r2", "a1"}
    assert names(Visibility.OWN, None) == {}
    with asking(opened(visibility=Visibility.OWN)) as client:
        assert client.get("/v1/state").json()["counts"]["running"] == 2


@pytest.mark.parametrize("visibility", [Visibility.ANONYMOUS, Visibility.OWN])
def test_nothing_of_the_jobs_of_others_is_told_anywhere(visibility: Visibility) -> None:
    """No answer to alice has a name, user, group or project of another one's job, nor does a search find it."""
    with asking(opened(visibility=visibility)) as client:
        mine = bearer(ALICE)
        texts = [
            client.get(path, headers=mine).text
            for path in (
                "/v1/state", "/v1/jobs", "/v1/nodes", "/v1/metrics", "/v1/health", "/v1/jobs/a1",
                "/v1/jobs/a1/explanation", "/v1/jobs/a1/explanation?at=60", "/v1/plan", "/v1/instance", "/v1/gantt",
            )
        ]  # fmt: skip
        texts.append(client.post("/v1/what-if", json={"instead": {"job": "a1", "walltime": "5"}}, headers=mine).text)
        for text in texts:
            for secret in ("bob", "carol", "staff", '"b1"', '"b2"', "job b1", "job b2"):
                assert secret not in text
        for word in ("bob", "carol", "staff"):
            assert client.get("/v1/jobs", params={"search": word}, headers=mine).json()["total"] == 0
        for path in ("/v1/jobs/b1", "/v1/jobs/b1/explanation"):
            assert client.get(path, headers=mine).status_code == 404
        for path in ("/v1/plan", "/v1/instance", "/v1/gantt"):
            assert client.get(path, headers=mine).status_code == 403
        question = {"instead": {"job": "b1", "walltime": "5"}}
        assert client.post("/v1/what-if", json=question, headers=mine).status_code == 404


def test_an_explanation_names_other_jobs_as_lists_do() -> None:
    """The other name of a job in an explanation is that in the list, so that it can be looked up."""
    with asking(opened(visibility=Visibility.ANONYMOUS)) as client:
        told = client.get("/v1/jobs/b1/explanation", headers=bearer(BOB)).json()
        holders = {holder["job"] for one in told["blocked"] for holder in one["cause"]["holders"]}
        assert holders
        assert all(holder.startswith("other-") for holder in holders)
        assert holders <= {job["id"] for job in client.get("/v1/jobs", headers=bearer(BOB)).json()["jobs"]}
        assert any(f"job {next(iter(holders))}" in line for line in told["words"])


def test_nobody_asks_in_the_name_of_another_user() -> None:
    """A user's question about a new job is about one of that user."""
    with asking() as client:
        question = {"submit": {"request": "ncpus=4", "walltime": "10", "user": "bob"}}
        assert client.post("/v1/what-if", json=question, headers=bearer(ALICE)).status_code == 403
        assert client.post("/v1/what-if", json=question, headers=bearer(OPERATOR)).status_code == 200
        assert client.post("/v1/what-if", json=question, headers=bearer(BOB)).status_code == 200
        assert client.post("/v1/what-if", json=question).status_code == 200
    with asking(opened(visibility=Visibility.ANONYMOUS)) as client:
        assert client.post("/v1/what-if", json=question).status_code == 403
