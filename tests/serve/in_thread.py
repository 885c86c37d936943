"""Servers for pages: the real application in a thread, and stores that a real daemon has filled in virtual time."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import uvicorn

from cpsched.domain import Instance
from cpsched.site.daemon import Daemon
from cpsched.site.serve import DocumentSource, ServeSettings, Source, Visibility, make_app
from cpsched.site.serve.app import tcp_listener
from cpsched.site.serve.sources import Opened
from tests.bridge.played_world import PlayedWorld
from tests.daemon.making import LIVE, Lines, daemon_on
from tests.workloads.eurora_windows import eurora_window

__all__ = ["busy_evening", "live", "served"]

#: Looks at its source five times in a second, so that tests need not wait.
QUICK = ServeSettings(poll=0.2)


@contextmanager
def served(
    source: Source, *, port: int = 0, settings: ServeSettings = QUICK, visibility: Visibility = Visibility.ALL
) -> Iterator[str]:
    """Serve a source in a thread; yield the address of its page."""
    app = make_app(Opened(source=source, name="a test", visibility=visibility), settings, log=Lines().log)
    listener = tcp_listener("127.0.0.1", port)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))

    async def serve() -> None:
        await server.serve(sockets=[listener])
        # a browser's connection that outlives the grace would be collected in a later test, and fail that
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server has ended before it began")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        app.inner.state.parts.streams.close_soon()
        thread.join(timeout=20)
        listener.close()
        source.close()


def live(instance: Instance, folder: Path) -> Daemon:
    """Make a daemon that gives orders to a machine in memory, which is this instance; its store is in the folder."""
    daemon, _ = daemon_on(
        PlayedWorld(instance, gate_is_closed=True), folder, replace(LIVE, policy=replace(LIVE.policy, grain=60))
    )
    return daemon


def busy_evening(folder: Path, *, jobs: int = 160, cycles: int = 25, seed: int = 3) -> Daemon:
    """Run a daemon for some cycles on a machine like Eurora, to which jobs come that others then wait for.

    Jobs end earlier than they asked for, and urgent ones arrive: planned starts move both ways.
    """
    draw = random.Random(seed)
    window = eurora_window(jobs, seed, busy=0.9, demand=100.0)
    entries = tuple(
        replace(
            job,
            submit=window.now + draw.randrange(60 * cycles)
            if job.running is None and draw.random() < 0.4
            else job.submit,
            runtime=max(60, round(job.walltime * draw.uniform(0.1, 1.0))) if job.running is None else None,
        )
        for job in window.jobs
    )
    zone = "Europe/Rome"
    instance = replace(
        window, name="eurora", jobs=entries, time_zone=zone, epoch=datetime(2026, 3, 2, 17, 30, tzinfo=ZoneInfo(zone))
    )
    daemon = live(instance, folder)
    there = daemon.manager.world  # type: ignore[attr-defined]  # it is the one in memory
    for _ in range(cycles):
        daemon.cycle()
        there.advance(there.now + 60)
    return daemon


def document(instance: Instance) -> DocumentSource:
    """Return an instance as a source; the planner plans it."""
    return DocumentSource(instance)
