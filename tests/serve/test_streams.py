"""Event streams: what is published arrives in order, once, also for those who come again."""

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


def number(text: str) -> str:
    """Return the id of an event."""
    (line,) = [line for line in text.splitlines() if line.startswith("id: ")]
    return line.removeprefix("id: ")


def test_a_listener_hears_everything_once_and_in_order() -> None:
    """A stream begins with the newest event, then has all that come."""

    async def listen() -> None:
        streams = Streams(most=2, heartbeat=5)
        for count in range(3):
            streams.publish("state", {"count": count})
        stream = streams.open("me", None)
        assert '"count": 2' in (await events(stream, 1))[0]
        for count in (3, 4):
            streams.publish("state", {"count": count})
        heard = await events(stream, 2)
        assert ['"count": 3' in heard[0], '"count": 4' in heard[1]] == [True, True]
        assert all(text.startswith("id: ") and text.endswith("\n\n") for text in heard)

    asyncio.run(listen())


def test_who_comes_again_misses_nothing() -> None:
    """After an event that is known a stream goes on with the next; after one that is not, with the newest."""

    async def listen() -> None:
        streams = Streams(most=20, heartbeat=5)
        for count in range(600):
            streams.publish("state", {"count": count})
        first = streams.open("a", None)
        last = number((await events(first, 1))[0])
        for count in (600, 601):
            streams.publish("state", {"count": count})
        again = await events(streams.open("b", last), 2)
        assert '"count": 600' in again[0]
        for place, strange in enumerate(
            ("", "other-5", last.partition("-")[0] + "-3", last.partition("-")[0] + "-999999", "x", "-")
        ):
            assert '"count": 601' in (await events(streams.open(f"c{place}", strange), 1))[0]

    asyncio.run(listen())


def test_nothing_that_happens_is_said() -> None:
    """A stream on which nothing happens has heartbeats, and ends when the server does."""

    async def listen() -> None:
        streams = Streams(most=2, heartbeat=0.01)
        stream = streams.open("me", None)
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
        held = [streams.open("me", None) for _ in range(8)]
        for stream in held:
            await events(stream, 1)
        with pytest.raises(Problem, match="streams"):
            streams.open("me", None)
        held += [streams.open(client, None) for client in ("a", "b")]
        for stream in held[8:]:
            await events(stream, 1)
        with pytest.raises(Problem, match="streams"):
            streams.open("c", None)

    asyncio.run(listen())
