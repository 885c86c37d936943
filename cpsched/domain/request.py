"""The request of a job: chunks, each of which runs on one node, and how they may be placed."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from cpsched.domain.annotations import Asks, Count, Key, Name, Text
from cpsched.domain.frozen import Amounts, FrozenMap


class Arrangement(StrEnum):
    """How the chunks of one job may be distributed over nodes (OCCS-18)."""

    FREE = "free"
    PACK = "pack"
    SCATTER = "scatter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Arrangement of the chunks, whether the job shares its nodes, and how near to each other they are."""

    arrangement: Arrangement = Arrangement.FREE
    exclusive: bool = False
    #: The level of the topology of which all chunks are in one group; None: they may be anywhere.
    within: str | None = None
    #: How many are in one group of that level: a multiple of `segment`, or at most `spread`; None for both: all.
    segment: int | None = None
    spread: int | None = None

    def most_in_group(self, need: int, room: int) -> int:
        """Return how many of `need` chunks may be in a group of the level in which so many find room."""
        most = min(need if self.spread is None else self.spread, need, room)
        unit = (need if self.spread is None else 1) if self.segment is None else self.segment
        return most - most % unit

    @property
    def is_packed(self) -> bool:
        """Whether all chunks are on one node."""
        return self.arrangement is Arrangement.PACK

    @property
    def is_scattered(self) -> bool:
        """Whether each chunk is on a node of its own."""
        return self.arrangement is Arrangement.SCATTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Equal units, each of which is allocated on one node and never split (OCCS-17, BRIDI-2)."""

    count: Annotated[Count, Key("How many of them")]
    #: At least one, each positive.
    resources: Annotated[Asks, Key("What one unit takes; mem in MiB")]
    where: Annotated[FrozenMap[Name, Text], Key("Properties that the node must have")] = FrozenMap()

    def taken(self, count: int) -> Amounts:
        """Return the amounts that `count` of these units take together."""
        return Amounts({name: amount * count for name, amount in self.resources.items()})


@dataclass(frozen=True, kw_only=True)
class Request:
    """All chunks of a job (or of one step of an evolving job); a chunk's kind is its index here."""

    chunks: tuple[Chunk, ...]
    place: Place = Place()

    @cached_property
    def totals(self) -> Amounts:
        """The amounts that all chunks take together (jRS of OCCS-13, without licences)."""
        totals: dict[str, int] = {}
        for chunk in self.chunks:
            for name, amount in chunk.resources.items():
                totals[name] = totals.get(name, 0) + amount * chunk.count
        return Amounts(totals)
