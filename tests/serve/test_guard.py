"""What stands before the endpoints: who may ask at all, how often, how much, and what every answer has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cpsched.formats import instance_to_document
from cpsched.site.serve.guard import RateLimit
from tests.serve.serving import ALICE, OPERATOR, asking, bearer, users_site

PROBLEM = "application/problem+json"
#: Requests of each kind, and their answers: on loopback without a token, with a user's, with an operator's token.
MATRIX = [
    ("GET", "/v1/state", None, (200, 200, 200)),
    ("GET", "/v1/health", None, (200, 200, 200)),
    ("GET", "/v1/openapi.json", None, (200, 200, 200)),
    ("POST", "/v1/what-if", {"submit": {"request": "ncpus=4", "walltime": "10"}}, (200, 200, 200)),
    ("POST", "/v1/plans?budget=1000", {}, (401, 422, 422)),
    ("GET", "/v1/plans/none", None, (401, 404, 404)),
    ("DELETE", "/v1/plans/none", None, (401, 404, 404)),
]


@pytest.mark.parametrize(("method", "path", "body", "expected"), MATRIX)
def test_who_may_do_what(method: str, path: str, body: object, expected: tuple[int, int, int]) -> None:
    """On loopback reading and asking needs no token; having things planned does; from elsewhere everything does."""
    with asking(most_seconds=0.01) as client:
        found = tuple(
            client.request(method, path, json=body, headers=bearer(token) if token else {}).status_code
            for token in (None, ALICE, OPERATOR)
        )
        assert found == expected
        assert client.request(method, path, json=body, headers=bearer("wrong")).status_code == 401
    with asking(address="192.0.2.1", most_seconds=0.01) as client:
        refused = client.request(method, path, json=body)
        assert (refused.status_code, refused.headers["content-type"]) == (401, PROBLEM)
        assert refused.headers["www-authenticate"] == "Bearer"
        assert client.request(method, path, json=body, headers=bearer(ALICE)).status_code == expected[1]
    with asking(is_loopback=False, most_seconds=0.01) as client:
        assert client.request(method, path, json=body).status_code == 401


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_a_proxy_on_this_machine_does_not_let_others_in(header: str) -> None:
    """A request that was forwarded is not from this machine, wherever the proxy runs."""
    with asking() as client:
        assert client.get("/v1/state", headers={header: "192.0.2.1"}).status_code == 401
        assert client.get("/v1/state", headers={header: "192.0.2.1", **bearer(ALICE)}).status_code == 200


def test_what_nginx_forwards_by_default_is_not_from_this_machine() -> None:
    """It speaks HTTP/1.0 and names this machine; so speaks nothing else any more."""
    asked: list[int] = []

    async def ask() -> None:
        from cpsched.site.daemon import make_log
        from cpsched.site.serve import make_app
        from tests.serve.serving import opened

        app = make_app(opened(), log=make_log(level="error"))

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                asked.append(message["status"])

        scope = {
            "type": "http", "http_version": "1.0", "method": "GET", "path": "/v1/state", "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:8765")], "client": ("127.0.0.1", 5),
        }  # fmt: skip
        await app(scope, receive, send)

    asyncio.run(ask())
    assert asked == [401]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[::1].evil", ""])
def test_another_name_for_this_machine_reads_nothing(host: str) -> None:
    """DNS rebinding gives a page of another site this address under that site's name: it is refused."""
    with asking() as client:
        assert client.get("/v1/state", headers={"Host": host}).status_code == 403
        assert client.get("/v1/state", headers={"Host": host, **bearer(ALICE)}).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765"])
def test_names_of_this_machine_are_let_in(host: str) -> None:
    """The names of loopback are served, on any port: one may be forwarded by ssh."""
    with asking() as client:
        assert client.get("/v1/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_pages_of_other_sites_ask_nothing(headers: dict[str, str]) -> None:
    """A browser that another site's page makes ask is refused, and no answer allows other origins."""
    question = {"submit": {"request": "ncpus=4", "walltime": "10"}}
    with asking() as client:
        assert client.post("/v1/what-if", json=question, headers=headers).status_code == 403
        own = client.post("/v1/what-if", json=question, headers={"Origin": "http://localhost:8765"})
        assert own.status_code == 200
        assert "access-control-allow-origin" not in own.headers


@pytest.mark.parametrize("path", ["/", "/v1/state", "/v1/nothing", "/nothing", "/v1/gantt"])
def test_every_answer_has_the_headers_of_security(path: str) -> None:
    """Answers, errors and pages have a policy, may not be framed, and are what they say they are."""
    with asking() as client:
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers.get_list("content-security-policy") == [headers["content-security-policy"]]
    with asking(is_loopback=False) as client:
        assert "content-security-policy" in client.get("/v1/state").headers


def test_answers_of_the_api_are_not_kept() -> None:
    """What one reader may see no cache keeps for another one."""
    with asking() as client:
        assert client.get("/v1/jobs").headers["cache-control"] == "no-store"


def test_who_asks_too_often_waits() -> None:
    """After a burst a client is refused with the seconds that it has to wait; another one is served meanwhile."""
    with asking(rate=0.001, burst=3) as client:
        assert [client.get("/v1/health").status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = client.get("/v1/health")
        assert refused.headers["content-type"] == PROBLEM
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/v1/health", headers=bearer(ALICE)).status_code == 200


def test_guessing_tokens_is_slow() -> None:
    """Wrong tokens count for the address that sends them, however many different ones these are."""
    with asking(rate=0.001, burst=3) as client:
        codes = [client.get("/v1/health", headers=bearer(f"guess {number}")).status_code for number in range(5)]
        assert codes == [401, 401, 401, 429, 429]


def test_the_limit_fills_again() -> None:
    """A bucket of two is empty after two, has one again after a second's rate, and never more than two."""
    now = [0.0]
    limit = RateLimit(rate=1.0, burst=2, clock=lambda: now[0])
    assert [limit.wait("a") > 0 for _ in range(3)] == [False, False, True]
    now[0] = 1.0
    assert [limit.wait("a") > 0 for _ in range(2)] == [False, True]
    now[0] = 1000.0
    assert [limit.wait("a") > 0 for _ in range(3)] == [False, False, True]
    assert limit.wait("b") == 0


def test_clients_that_are_many_do_not_fill_the_memory() -> None:
    """Of very many addresses those that asked last are remembered."""
    limit = RateLimit(rate=1.0, burst=2)
    for number in range(limit.MOST + 10):
        limit.wait(f"client {number}")
    assert len(limit._left) == limit.MOST


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    """By its length, or where that is not said as soon as it is more; instances may be larger than questions."""
    instance = instance_to_document(users_site())

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(2):
            yield b"[" * 600

    with asking(most_bytes=20_000, most_question_bytes=1000) as client:
        long = {"submit": {"request": "x" * 2000, "walltime": "1"}}
        refused = client.post("/v1/what-if", json=long)
        assert (refused.status_code, refused.headers["content-type"]) == (413, PROBLEM)
        assert client.post("/v1/what-if", content=pieces()).status_code == 413
        lying = {"Content-Length": "-1"}
        assert client.post("/v1/what-if", content=b"{}", headers=lying).status_code == 413
        assert client.post("/v1/plans", json={**instance, "name": "n" * 2000}, headers=bearer(ALICE)).status_code == 422
        padded = b" " * 30_000
        assert client.post("/v1/plans", content=padded, headers=bearer(ALICE)).status_code == 413
