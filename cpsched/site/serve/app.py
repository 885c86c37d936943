"""The application: its parts, its endpoints, and the guard before them; and its server."""

import asyncio
import contextlib
import gc
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from types import FrameType

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from cpsched.errors import DocumentError, Fault
from cpsched.site.daemon import Log, make_log
from cpsched.site.serve import asking, reading, submitting
from cpsched.site.serve.access import Token
from cpsched.site.serve.guard import Guard
from cpsched.site.serve.parts import Parts
from cpsched.site.serve.problems import ProblemModel, say_problems
from cpsched.site.serve.reference import reference_page
from cpsched.site.serve.settings import ServeSettings
from cpsched.site.serve.sources import Opened


def make_app(opened: Opened, settings: ServeSettings | None = None, *, log: Log = None) -> Guard:
    """Make the application that serves a source.

    Its lifespan has to be run: it reads the source before the first request and after, and ends what is under way.

    `opened`: the source. `settings`: how it is served; None: on loopback, without tokens. `log`: as
    `cpsched.site.daemon.make_log` makes it; None: on standard error.
    """
    settings = settings or ServeSettings()
    log = log or make_log()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts = Parts(opened, settings, log)
        app.state.parts = parts
        await parts.look()
        tasks = [asyncio.create_task(parts.watch()), asyncio.create_task(parts.warm())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await parts.close()

    app = FastAPI(
        title="cpsched",
        version=version("cpsched"),
        description="What runs, what waits, why, and what if. Times are seconds on the instance's clock.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    say_problems(app)
    for router in (reading.router, asking.router, submitting.router):
        app.include_router(router)
    _add_to_openapi(app, settings)

    @app.get("/docs", include_in_schema=False)
    async def reference() -> HTMLResponse:
        """Return the page about the API, which knows nothing of jobs: it needs no token, as the live page."""
        return HTMLResponse(reference_page(app.openapi()))

    static = files("cpsched.site.serve").joinpath("static")
    app.mount("/", StaticFiles(directory=str(static), html=True), name="page")
    return Guard(app, settings, log)


def _add_to_openapi(app: FastAPI, settings: ServeSettings) -> None:
    """Describe errors and tokens in the OpenAPI document."""
    made = app.openapi

    def openapi() -> dict[str, object]:
        if app.openapi_schema is None:
            schema = made()
            components = schema.setdefault("components", {})
            found = ProblemModel.model_json_schema(ref_template="#/components/schemas/{model}")
            components.setdefault("schemas", {}).update(found.pop("$defs", {}))
            components["schemas"]["ProblemModel"] = found
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, operations in schema["paths"].items():
                needed = path.startswith("/v1/plans") or not settings.is_loopback
                for operation in operations.values():
                    operation["security"] = [{"token": []}] if needed else [{"token": []}, {}]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


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
