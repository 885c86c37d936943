"""What stands before every endpoint: tokens, limits of requests and of their size, and headers of security."""

import asyncio
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from cpsched.site.daemon import Log
from cpsched.site.serve.access import Viewer, of_token
from cpsched.site.serve.problems import Problem
from cpsched.site.serve.settings import ServeSettings

_API = "/v1/"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: Headers of a proxy: the request comes from elsewhere.
_FORWARDED = (b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip")
#: What every answer has. The page loads scripts, styles and data from here alone, and nobody may frame it.
_HEADERS: Mapping[bytes, bytes] = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        b"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}


class RateLimit:
    """Counts the requests of each client, as buckets that fill again. Mutable.

    `rate`: requests of a client in a second, in the long run.
    `burst`: requests of a client at once.
    `clock`: returns seconds; replaced in tests.
    """

    #: Clients that are remembered; whoever asked longest ago is forgotten.
    MOST = 10_000

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Count a request, and return the seconds after which the client may ask again; 0: it may now."""
        now = self._clock()
        left, since = self._left.pop(client, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        waits = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[client] = (left - 1 if left >= 1 else left), now
        if len(self._left) > self.MOST:
            self._left.popitem(last=False)
        return waits


class Guard:
    """The outermost layer: an ASGI application around another one.

    `app`: the one behind it.
    `settings`: the tokens and the limits.
    `log`: where it says which addresses send unknown tokens.
    """

    def __init__(self, app: FastAPI, settings: ServeSettings, log: Log) -> None:
        self.inner, self._settings, self._log = app, settings, log
        self._limit = RateLimit(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer why it is refused."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return

        is_api = scope["path"].startswith(_API)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in _HEADERS.items() if name not in own]
                if is_api and b"cache-control" not in own:
                    more.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        try:
            viewer = self._viewer(scope)
            self._count(viewer)
            if is_api:
                self._check(scope, viewer)
            if scope["method"] not in ("GET", "HEAD"):
                receive = await self._whole_body(scope, receive)
        except Problem as problem:
            headers = {"Content-Type": "application/problem+json", **problem.headers}
            pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
            await with_headers({"type": "http.response.start", "status": problem.status, "headers": pairs})
            await send({"type": "http.response.body", "body": problem.body()})
            return
        scope.setdefault("state", {})["viewer"] = viewer
        await self.inner(scope, receive, with_headers)

    def _viewer(self, scope: Scope) -> Viewer:
        address = (scope.get("client") or ("?", 0))[0]
        header = _header(scope, b"authorization")
        if header is None:
            return Viewer(key=address)
        kind, _, text = header.partition(" ")
        token = of_token(text.strip(), self._settings.tokens) if kind.lower() == "bearer" else None
        if token is None:
            # counted like any other request of the address, so that guessing is slow
            self._count(Viewer(key=address))
            self._log.warning("unknown credentials", address=address)
            raise Problem(401, "The token is unknown", headers={"WWW-Authenticate": "Bearer"})
        return Viewer(key=f"token {token.sha256}", user=token.user, is_operator=token.operator, is_known=True)

    def _count(self, viewer: Viewer) -> None:
        """Refuse a client that asks too often."""
        if (seconds := self._limit.wait(viewer.key)) > 0:
            raise Problem(429, "Too many requests", headers={"Retry-After": str(max(1, round(seconds + 0.5)))})

    def _check(self, scope: Scope, viewer: Viewer) -> None:
        """Refuse a request that needs a token and has none, or that another site has made a browser send."""
        if viewer.is_known:
            return
        if not (self._settings.is_loopback and _is_local(scope)):
            raise Problem(401, "A token is needed", headers={"WWW-Authenticate": "Bearer"})
        if (host := _header(scope, b"host")) is not None and _without_port(host) not in _LOCAL_NAMES:
            raise Problem(403, "Expected the name localhost, 127.0.0.1 or [::1] in the header Host, got another one")
        if _header(scope, b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Problem(403, "Expected a request of this site's own pages, got one of another site's")
        origin = _header(scope, b"origin")
        if origin is not None and _without_port(origin.partition("://")[2]) not in _LOCAL_NAMES:
            raise Problem(403, "Expected a request of this site's own pages, got one of another site's")

    async def _whole_body(self, scope: Scope, receive: Receive) -> Receive:
        """Receive the body of a request up to the limit, and return what gives it again, and then what comes after."""
        settings = self._settings
        most = settings.most_bytes if scope["path"] == "/v1/plans" else settings.most_question_bytes
        too_large = Problem(413, f"Expected at most {most:,} bytes, got more", headers={"Connection": "close"})
        length = _header(scope, b"content-length")
        if length is not None and (not length.isdigit() or int(length) > most):
            raise too_large
        body = bytearray()

        async def read() -> bool:
            """Read all, and tell whether the client is still there."""
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return False
                body.extend(message.get("body", b""))
                if len(body) > most:
                    raise too_large
                if not message.get("more_body", False):
                    return True

        try:
            is_there = await asyncio.wait_for(read(), settings.patience)
        except TimeoutError:
            raise Problem(408, "The body did not come in time", headers={"Connection": "close"}) from None
        pending: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]
        if not is_there:
            pending = [{"type": "http.disconnect"}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        return again


def _header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def _is_local(scope: Scope) -> bool:
    """Tell whether a request comes from this machine, and not by a proxy.

    HTTP/1.0 is what nginx speaks by default, without a header that tells.
    """
    if scope["http_version"] == "1.0" or any(name in _FORWARDED for name, _ in scope["headers"]):
        return False
    client = scope.get("client")
    try:
        return client is None or ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    """Return a host without its port; what is no host with a port stays as it is."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
