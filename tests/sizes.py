"""How large the properties are: a part of the cases by default, all of them with ``pytest --large``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings

__all__ = ["LARGE", "examples", "seeds", "some"]

T = TypeVar("T")

#: Set by ``--large`` (see ``conftest.py``), so that it reaches the workers of pytest-xdist as well.
LARGE = os.environ.get("CPSCHED_LARGE_TESTS") == "1"

#: One case of so many is run by default: fewer where kernels are interpreted, fifty times as slow, which got all these
#: compiled.
_PART = 40 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 10


def examples(number: int, **options: Any) -> settings:
    """Make the settings of a property with `number` examples when it is large, and a part of them otherwise."""
    return settings(max_examples=number if LARGE else -(-number // _PART), **options)


def seeds(number: int) -> list[int]:
    """List seeds from 0 on as values of a parameter: `number` of them when it is large, and a part otherwise."""
    return list(range(number if LARGE else -(-number // _PART)))


def some(values: Sequence[T], every: int) -> Sequence[T]:
    """List all values when it is large, and otherwise the first one and each `every`-th after it."""
    return values if LARGE else values[::every]
