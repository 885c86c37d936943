"""What an engine and its worker process say to each other, and how it is written on a pipe: a length, then a pickle."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from enum import Enum

from cpsched.cp.encoding import Encoding
from cpsched.cp.params import ModelParams
from cpsched.cp.solution import Placed
from cpsched.domain import Instance

__all__ = [
    "HEADER",
    "Bounded",
    "Done",
    "Failed",
    "Found",
    "Prove",
    "Proven",
    "Reply",
    "Request",
    "Solve",
    "Verdict",
    "pack",
    "unpack",
]

#: The length of a pickle in bytes.
HEADER = struct.Struct(">Q")
#: No message is longer (bytes); a length beyond is no length.
_LONGEST = 1 << 32


class Verdict(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Solve:
    """Solve a model."""

    encoding: Encoding
    params: ModelParams
    hint: tuple[Placed, ...]
    seed: int
    workers: int
    #: When to stop: after so many seconds, or after so much deterministic time.
    seconds: float
    deterministic_time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prove:
    """Prove a bound without a model."""

    instance: Instance
    jobs: tuple[str, ...]
    seconds: float
    seed: int


Request = Solve | Prove


@dataclass(frozen=True, slots=True)
class Found:
    """A solution, better than those before."""

    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Bounded:
    """No solution costs less, in whole numbers."""

    least: float


@dataclass(frozen=True, slots=True)
class Done:
    """The solver stopped."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Proven:
    """A bound on the objective, and how it was proven; None if there is none."""

    value: float | None
    how: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Something went wrong, in words."""

    what: str


Reply = Found | Bounded | Done | Proven | Failed


def pack(message: Request | Reply) -> bytes:
    """Write a message."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(body)) + body


def unpack(buffer: bytearray) -> list[object]:
    """Read all messages that are complete, and take them out of the buffer.

    Raises
    ------
    ValueError
        If it holds something else than messages.
    """
    messages = []
    while len(buffer) >= HEADER.size:
        (length,) = HEADER.unpack_from(buffer)
        if length > _LONGEST:
            raise ValueError(f"Expected the length of a message, got {bytes(buffer[:16])!r}")
        end = HEADER.size + length
        if len(buffer) < end:
            break
        try:
            messages.append(pickle.loads(bytes(buffer[HEADER.size : end])))  # noqa: S301 - from a process of our own
        except Exception as error:  # a pickle that is none can raise anything
            raise ValueError(f"Expected a message, got {error!r}") from error
        del buffer[:end]
    return messages
