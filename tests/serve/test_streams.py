"""Event streams: the newest of what is published arrives, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from cpsched.site.serve.parts import Streams
from cpsched.site.serve.problems import Problem


async def events(stream: AsyncIterator[str], count: int) -> list[str]:
    """Return the next events of a stream, without what is no event."""
    found: list[str] = []
    while len(found) < count:
        text = await asyncio.wait_for(anext(stream), 5)
        if not text.startswith("retry"):
            found.append(text)
    return found


def test_a_listener_hears_the_newest_once() -> None:
    """A stream begins with the newest event; of several at once it has the last, and an equal one again."""

    async def listen() -> None:
        streams = Streams(most=2, heartbeat=5)
        for count in range(3):
            streams.publish("state", {"count": count})
        stream = streams.open("me")
        assert '"count": 2' in (await events(stream, 1))[0]
        for count in (3, 4):
            streams.publish("state", {"count": count})
        heard = await events(stream, 1)
        streams.publish("state", {"count": 4})
        assert heard == await events(stream, 1) == ['event: state\ndata: {"count": 4}\n\n']

    asyncio.run(listen())


def test_nothing_that_happens_is_said() -> None:
    """A stream on which nothing happens has heartbeats, and ends when the server does."""

    async def listen() -> None:
        streams = Streams(most=2, heartbeat=0.01)
        stream = streams.open("me")
        assert (await events(stream, 2)) == ["event: heartbeat\ndata: {}\n\n"] * 2
        assert streams.num_open == 1
        streams.close_soon()
        assert [text async for text in stream if "heartbeat" not in text] == []
        assert streams.num_open == 0

    asyncio.run(listen())


def test_streams_are_bounded() -> None:
    """One client has eight streams at most, and all together as many as the server allows."""

    async def listen() -> None:
        streams = Streams(most=10, heartbeat=5)
        streams.publish("state", {})
        held = [streams.open("me") for _ in range(8)]
        for stream in held:
            await events(stream, 1)
        with pytest.raises(Problem, match="streams"):
            streams.open("me")
        held += [streams.open(client) for client in ("a", "b")]
        for stream in held[8:]:
            await events(stream, 1)
        with pytest.raises(Problem, match="streams"):
            streams.open("c")

    asyncio.run(listen())
