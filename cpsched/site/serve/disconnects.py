"""Work for a client that waits for it: it ends when the client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from cpsched.site.serve.problems import Problem

T = TypeVar("T")


async def while_present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the outcome of some work; it is cancelled when the sender of the request closes the connection.

    `request`: its body has been read. `work`: what is to be done.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Problem(408, "The client has gone")
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Return when the sender of a request has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
