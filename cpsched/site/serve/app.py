"""The application: its parts, its endpoints, and the guard before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from cpsched.site.daemon import Log, make_log
from cpsched.site.serve import asking, reading, streaming, submitting
from cpsched.site.serve.guard import Guard
from cpsched.site.serve.parts import Parts
from cpsched.site.serve.problems import ProblemModel, say_problems
from cpsched.site.serve.reference import reference_page
from cpsched.site.serve.settings import ServeSettings
from cpsched.site.serve.sources import Opened


def make_app(opened: Opened, settings: ServeSettings | None = None, *, log: Log = None) -> Guard:
    """Make the application that serves a source.

    Its lifespan has to be run: it reads the source once before the first request, and again and again after it, and
    ends all that is under way.

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
    for router in (reading.router, asking.router, submitting.router, streaming.router):
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
