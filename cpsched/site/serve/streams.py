"""Server-sent events: what has changed, for whoever listens, from where it stopped listening."""

import asyncio
import json
import secrets
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from cpsched.site.serve.problems import Problem

#: Events that are kept for listeners that come again.
_MOST_KEPT = 256
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
        #: Of this process: the numbers of another one mean nothing here.
        self._epoch = secrets.token_hex(4)
        self._number = 0
        self._kept: deque[tuple[int, str]] = deque(maxlen=_MOST_KEPT)
        self._changed = asyncio.Event()
        self._open: Counter[str] = Counter()
        self._is_closed = False

    @property
    def num_open(self) -> int:
        """How many listen."""
        return self._open.total()

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell all listeners."""
        self._number += 1
        text = f"id: {self._epoch}-{self._number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
        self._kept.append((self._number, text))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def open(self, client: str, last_id: str | None) -> AsyncIterator[str]:
        """Return a stream that goes on after an event; where that is not known any more, it begins with the newest one.

        Raises `Problem` if too many listen.
        """
        if self.num_open >= self._most or self._open[client] >= _MOST_OF_ONE:
            raise Problem(429, "Too many event streams are open", headers={"Retry-After": "30"})
        return self._events(client, self._place(last_id))

    def _place(self, last_id: str | None) -> int:
        """Return the number of the event after which a stream goes on."""
        epoch, _, number = (last_id or "").partition("-")
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if epoch == self._epoch and number.isdecimal() and oldest - 1 <= int(number) <= self._number:
            return int(number)
        return max(0, self._number - 1)

    async def _events(self, client: str, place: int) -> AsyncIterator[str]:
        self._open[client] += 1
        try:
            yield f"retry: {_RETRY}\n\n"
            while not self._is_closed:
                changed = self._changed
                for number, text in tuple(self._kept):
                    if number > place:
                        place = number
                        yield text
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
