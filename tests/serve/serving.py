"""What tests of the server share: a small site with users, its tokens, and clients that ask the application."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from cpsched.domain import Instance
from cpsched.site.daemon import make_log
from cpsched.site.serve import DocumentSource, Opened, ServeSettings, Token, Visibility, make_app
from cpsched.site.serve.guard import Guard
from tests.bridge.small_world import job, site

__all__ = ["ALICE", "BOB", "OPERATOR", "TOKENS", "asking", "bearer", "opened", "users_site"]

ALICE, BOB, OPERATOR = "alice's token", "bob's token", "the operator's token"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


TOKENS = (
    Token(sha256=_hash(ALICE), user="alice"),
    Token(sha256=_hash(BOB), user="bob"),
    Token(sha256=_hash(OPERATOR), operator=True),
)


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


def users_site() -> Instance:
    """Make a site on which alice has both nodes, one until 50, and four jobs wait.

    ::

        n1 | r1 r1 a1 a1 .. then b2       r1, r2 run; a1 and b1 need a node; b2 needs both;
        n2 | r2 r2 r2 r2 b1               x asks for more than a node has
    """
    running = {
        "r1": {"start": 0, "allocation": [{"node": "n1", "resources": {"cores": 4}}]},
        "r2": {"start": 0, "allocation": [{"node": "n2", "resources": {"cores": 4}}]},
    }
    return site(
        job("r1", walltime=50, user="alice", running=running["r1"]),
        job("r2", walltime=100, user="alice", running=running["r2"]),
        job("a1", user="alice", project="secret-a"),
        job("b1", user="bob", group="staff"),
        job("b2", "2:ncpus=4", user="bob"),
        job("x", "ncpus=9", user="carol"),
        now=10,
        epoch="2026-01-01T00:00:00+01:00",
    )


def opened(instance: Instance | None = None, *, visibility: Visibility = Visibility.ALL) -> Opened:
    """Open a source of an instance and the planner's plan."""
    instance = users_site() if instance is None else instance
    return Opened(source=DocumentSource(instance), name=instance.name, visibility=visibility)


#: So that no test waits for a limit that it is not about.
_UNLIMITED = ServeSettings(tokens=TOKENS, rate=1e6, burst=10**6, poll=0.05)


class Client:
    """Asks an application that runs in another thread, as from an address. Mutable.

    Parameters
    ----------
    portal
        The thread with the event loop.
    client
        The client in that thread.
    """

    def __init__(self, portal: BlockingPortal, client: httpx.AsyncClient) -> None:
        self._portal, self._client = portal, client

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Return the answer to a request."""
        return self._portal.call(partial(self._client.request, method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Return the answer to a GET."""
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        """Return the answer to a POST."""
        return self.request("POST", path, **more)


@asynccontextmanager
async def _running(app: Guard, address: str) -> AsyncIterator[httpx.AsyncClient]:
    """Run the application, and give a client."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=(address, 50_000))
    async with (
        app.inner.router.lifespan_context(app.inner),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client,
    ):
        yield client


@contextmanager
def asking(source: Opened | None = None, *, address: str = "127.0.0.1", **settings: Any) -> Iterator[Client]:
    """Run the application, and give a client that asks it from an address."""
    app = make_app(source or opened(), replace(_UNLIMITED, **settings), log=make_log(level="error"))
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_running(app, address)) as client,
    ):
        yield Client(portal, client)
