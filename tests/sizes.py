"""How large the properties are: a part of the cases by default, all of them with ``pytest --large``."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

__all__ = ["LARGE", "examples", "seeds"]

#: Set by ``--large`` (see ``conftest.py``), so that it reaches the workers of pytest-xdist as well.
LARGE = os.environ.get("CPSCHED_LARGE_TESTS") == "1"

#: One case of so many is run by default.
_PART = 10


def examples(number: int, **options: Any) -> settings:
    """Make the settings of a property with `number` examples when it is large, and a tenth of them otherwise."""
    return settings(max_examples=number if LARGE else -(-number // _PART), **options)


def seeds(number: int) -> list[int]:
    """List seeds from 0 on as values of a parameter: `number` of them when it is large, and a tenth otherwise."""
    return list(range(number if LARGE else -(-number // _PART)))
