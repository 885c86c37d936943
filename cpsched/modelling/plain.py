"""Plain values for documents, made of what Python programs have: numpy's numbers, tuples, mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: object) -> Any:
    """Return a value as JSON has it: numpy's scalars as Python's numbers, mappings as dicts, sequences as lists.

    What is none of these is returned as it is, and the reader of documents refuses it.
    """
    if isinstance(value, Mapping):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    return value
