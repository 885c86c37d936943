"""What the endpoints share: the source, the newest view of it, event streams, and those who answer."""

import asyncio
import json
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from fastapi import Request

from cpsched.answers import JobState
from cpsched.errors import CpschedError
from cpsched.site.daemon import Log
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.answering import Answering
from cpsched.site.serve.children import Children
from cpsched.site.serve.problems import Problem
from cpsched.site.serve.settings import ServeSettings
from cpsched.site.serve.sources import Opened
from cpsched.site.serve.submissions import Submissions
from cpsched.site.serve.view import View
from cpsched.site.serve.visibility import Sight

#: Streams of one client.
_MOST_OF_ONE = 8
#: Milliseconds after which a browser comes again.
_RETRY = 3000


class Streams:
    """Tells listeners what happens. Mutable.

    `most`: listeners at the same time. `heartbeat`: seconds after which a stream on which nothing happens says so.
    """

    def __init__(self, *, most: int, heartbeat: float) -> None:
        self._most, self._heartbeat = most, heartbeat
        self._loop = asyncio.get_running_loop()
        #: The newest event: it says all that those before it said.
        self._newest: str | None = None
        self._changed = asyncio.Event()
        self._open: Counter[str] = Counter()
        self._is_closed = False

    @property
    def num_open(self) -> int:
        """How many listen."""
        return self._open.total()

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell all listeners."""
        self._newest = f"event: {kind}\ndata: {json.dumps(data)}\n\n"
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def open(self, client: str) -> AsyncIterator[str]:
        """Return a stream of the newest event, and of each that is the newest then.

        Raises `Problem` if too many listen.
        """
        if self.num_open >= self._most or self._open[client] >= _MOST_OF_ONE:
            raise Problem(429, "Too many event streams are open", headers={"Retry-After": "30"})
        return self._events(client)

    async def _events(self, client: str) -> AsyncIterator[str]:
        self._open[client] += 1
        told: str | None = None
        try:
            yield f"retry: {_RETRY}\n\n"
            while not self._is_closed:
                changed = self._changed
                if self._newest is not None and self._newest is not told:
                    told = self._newest
                    yield told
                if changed.is_set() or self._is_closed:
                    continue
                try:
                    async with asyncio.timeout(self._heartbeat):
                        await changed.wait()
                except TimeoutError:
                    yield "event: heartbeat\ndata: {}\n\n"
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        self._wake()

    def close_soon(self) -> None:
        """End all streams; called by a handler of a signal."""
        self._loop.call_soon_threadsafe(self.close)


T = TypeVar("T")

#: Sights that are kept, of the readers that asked last.
_MOST_SIGHTS = 16


class Parts:
    """All that an application has. Mutable. `settings`: of the server. `log`: where it says what happens."""

    def __init__(self, opened: Opened, settings: ServeSettings, log: Log) -> None:
        self.opened, self.settings, self.log = opened, settings, log
        self.answering = Answering(settings.most_questions)
        self.streams = Streams(most=settings.most_streams, heartbeat=settings.heartbeat)
        self.children = Children(settings.most_children)
        self.submissions = Submissions(self.children, settings)
        #: The newest view; None: there is none yet.
        self.newest: View | None = None
        self._sights: OrderedDict[tuple[str, str | None, bool], Sight] = OrderedDict()
        self._made: tuple[str, dict[str, object]] = ("", {})
        self._has_failed = False

    @property
    def view(self) -> View:
        """The newest view. Raises `Problem` if that is nothing yet."""
        if self.newest is None:
            raise Problem(503, "Nothing is known yet: the daemon has made no cycle", headers={"Retry-After": "5"})
        return self.newest

    def sight(self, viewer: Viewer) -> Sight:
        """Return the part of the newest view that a reader may see."""
        view = self.view
        key = (view.version, viewer.user, viewer.is_operator)
        found = self._sights.pop(key, None) or Sight(view, viewer, self.opened.visibility)
        self._sights[key] = found
        if len(self._sights) > _MOST_SIGHTS:
            self._sights.popitem(last=False)
        return found

    def whole_sight(self, viewer: Viewer) -> View:
        """Return the newest view, for a reader that sees everything. Raises `Problem` if it does not."""
        if not viewer.sees_all(self.opened.visibility):
            raise Problem(403, "Expected a reader that may see the jobs of others, got one that may not")
        return self.view

    async def made(self, view: View, name: str, make: Callable[[View], T]) -> T:
        """Return something that is made of a view, in a thread, once."""
        if self._made[0] != view.version:
            self._made = (view.version, {})
        kept = self._made[1]
        if name not in kept:
            kept[name] = await asyncio.to_thread(make, view)
        return kept[name]  # type: ignore[return-value]  # what `make` has made

    async def look(self) -> None:
        """Look at the source once."""
        try:
            view = await asyncio.to_thread(self._read)
        except Exception as error:  # whatever it is: the next look may find what can be read
            if not self._has_failed:
                self.log.error("source cannot be read", error=str(error), exc_info=_if_strange(error))
            self._has_failed = True
            return
        self._has_failed = False
        if view is not None:
            self.newest = view
            self._sights.clear()  # each holds a whole view
            self.streams.publish("state", {"version": view.version, "now": view.instance.now, "counts": view.counts})

    def _read(self) -> View | None:
        """Read the source, and make what lists need; in a thread."""
        view = self.opened.source.read()
        if view is not None:
            _ = (view.rows, view.row_of, view.counts, view.used, view.num_running)
        return view

    async def warm(self) -> None:
        """Book the first plan and ask about one job, so that what that needs is compiled before somebody asks."""
        while (view := self.newest) is None:
            await asyncio.sleep(self.settings.poll)
        job = next((row.id for row in view.rows if row.id in view.entries and row.status is not JobState.RUNNING), None)
        try:
            await self.answering.ask(view, job, lambda _, answers: None if job is None else answers.explain(job))
        except Exception as error:  # whoever asks is told
            self.log.warning("the plan cannot be asked about", error=str(error), exc_info=_if_strange(error))

    async def watch(self) -> None:
        """Look at the source again and again."""
        while True:
            await asyncio.sleep(self.settings.poll)
            await self.look()

    async def close(self) -> None:
        """End what is under way."""
        self.streams.close()
        await self.submissions.close()
        await self.children.close()
        self.answering.close()
        self.opened.source.close()


def _if_strange(error: Exception) -> Exception | None:
    """Return an error that is a bug, whose traceback is wanted."""
    return None if isinstance(error, (CpschedError, Problem)) else error


def parts_of(request: Request) -> Parts:
    """Return the parts of the application that has a request."""
    parts: Parts = request.app.state.parts
    return parts


def viewer_of(request: Request) -> Viewer:
    """Return the sender of a request, as the guard has found it."""
    viewer: Viewer = request.state.viewer
    return viewer
