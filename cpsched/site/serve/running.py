"""The server as a process: uvicorn around the application, which ends cleanly when it is told to."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import socket
from collections.abc import Sequence
from types import FrameType

import uvicorn

from cpsched.errors import DocumentError, Fault
from cpsched.site.daemon import Log
from cpsched.site.serve.access import Token
from cpsched.site.serve.app import make_app
from cpsched.site.serve.guard import Guard
from cpsched.site.serve.parts import Parts
from cpsched.site.serve.settings import ServeSettings
from cpsched.site.serve.sources import Opened

#: The thresholds of Python's garbage collector. A view of 10,000 jobs is millions of objects, none of them in a cycle:
#: with the usual thresholds reading one takes twice as long, half of it in pauses of up to 0.5 s, in which nobody is
#: answered.
_COLLECTIONS = (50_000, 5, 400)
#: Seconds that requests get to end when the server is told to end.
_GRACE = 5


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine's loopback interface."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_open_host(host: str, tokens: Sequence[Token]) -> None:
    """Refuse to serve others than this machine without tokens.

    Raises `DocumentError` if the host is another one than loopback, and there are no tokens.
    """
    if not is_loopback(host) and not tokens:
        message = f"Expected tokens (--tokens) for a host other than loopback, got {host} without any"
        raise DocumentError("serve", [Fault("host", message)])


class _Server(uvicorn.Server):
    """A server whose event streams end as soon as it is told to end.

    `config`: of uvicorn. `app`: the application in it.
    """

    def __init__(self, config: uvicorn.Config, app: Guard) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, then the server."""
        super().handle_exit(sig, frame)
        parts: Parts = self._app.inner.state.parts
        parts.streams.close_soon()


def run_server(opened: Opened, settings: ServeSettings, *, host: str, port: int, log: Log) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises `DocumentError` if the host is another one than loopback, and there are no tokens. Raises `OSError` if the
    port cannot be had.
    """
    refuse_open_host(host, settings.tokens)
    app = make_app(opened, settings, log=log)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=32 * 2**10,
        limit_concurrency=1000,
        ws="none",
    )
    gc.set_threshold(*_COLLECTIONS)
    # uvicorn raises the signal once more when all is ended
    with tcp_listener(host, port) as listener, contextlib.suppress(KeyboardInterrupt):
        _Server(config, app).run(sockets=[listener])


def tcp_listener(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the first address of a host.

    It says that it is one of TCP: else asyncio does not switch off Nagle's algorithm, which delays answers by 40 ms.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
