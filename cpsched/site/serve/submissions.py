"""Instances that were sent to be planned: a bounded queue of them, and what became of them."""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cpsched.errors import EngineError
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.children import Children
from cpsched.site.serve.problems import Problem
from cpsched.site.serve.settings import ServeSettings

_State = Literal["queued", "running", "done", "failed", "cancelled"]


@dataclass(slots=True, kw_only=True)
class Submitted:
    """A submitted instance. Mutable: its state changes."""

    id: str
    #: Who has sent it.
    owner: str
    engine: str
    budget: float
    #: Seconds of Unix time.
    submitted: float
    state: _State = "queued"
    error: str | None = None
    plan: dict[str, Any] | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state in ("done", "failed", "cancelled")


class Submissions:
    """Plans what was sent, in its order. Mutable. `children`: the processes that plan. `settings`: the limits."""

    def __init__(self, children: Children, settings: ServeSettings) -> None:
        self._children, self._settings = children, settings
        self._all: OrderedDict[str, Submitted] = OrderedDict()

    def _queued(self) -> list[Submitted]:
        return [one for one in self._all.values() if one.state == "queued"]

    @property
    def num_queued(self) -> int:
        """How many wait."""
        return len(self._queued())

    def position(self, one: Submitted) -> int | None:
        """Return how many wait before one; None: it does not wait."""
        queued = self._queued()
        return queued.index(one) if one in queued else None

    def check_room(self) -> None:
        """Refuse another one where too many wait. Raises `Problem` if the queue is full."""
        if self.num_queued >= self._settings.most_queued:
            raise Problem(
                429,
                f"Expected at most {self._settings.most_queued} instances that wait, got more",
                headers={"Retry-After": str(max(1, round(self._settings.most_seconds)))},
            )

    def submit(self, viewer: Viewer, task: Mapping[str, Any]) -> Submitted:
        """Queue an instance that is in order. Raises `Problem` if the queue is full."""
        self.check_room()
        self._forget()
        one = Submitted(
            id=secrets.token_urlsafe(12),
            owner=viewer.key,
            engine=task["engine"],
            budget=task["budget"],
            submitted=time.time(),
        )
        self._all[one.id] = one
        one.task = asyncio.create_task(self._work(one, task))
        return one

    async def _work(self, one: Submitted, task: Mapping[str, Any]) -> None:
        """Plan one when its turn has come."""
        try:

            def begun() -> None:
                one.state = "running"

            outcome = await self._children.run(task, budget=one.budget, begun=begun)
        except asyncio.CancelledError:
            one.state = "cancelled"
            raise
        except EngineError as error:
            one.state, one.error = "failed", str(error)
        else:
            one.plan, one.error = outcome.get("plan"), outcome.get("error")
            one.state = "done" if one.plan is not None else "failed"

    def find(self, viewer: Viewer, name: str) -> Submitted:
        """Return one that a reader has sent, or may see as an operator. Raises `Problem` if there is none."""
        self._forget()
        one = self._all.get(name)
        if one is None or not (viewer.is_operator or viewer.key == one.owner):
            raise Problem(404, "There is no submitted instance of this id, or it is too old")
        return one

    async def cancel(self, one: Submitted) -> None:
        """Cancel one that is not over, and forget it."""
        del self._all[one.id]
        if one.task is not None and not one.is_over:
            one.task.cancel()
            await asyncio.gather(one.task, return_exceptions=True)
            one.state = "cancelled"

    def _forget(self) -> None:
        """Forget what is over and old, or too much."""
        oldest = time.time() - self._settings.keep_seconds
        over = [one for one in self._all.values() if one.is_over]
        excess = len(self._all) - self._settings.most_kept
        for index, one in enumerate(over):
            if one.submitted < oldest or index < excess:
                del self._all[one.id]

    async def close(self) -> None:
        """Cancel everything."""
        tasks = [one.task for one in self._all.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
