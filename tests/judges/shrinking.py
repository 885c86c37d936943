"""Smaller documents that fail in the same way: what is left out makes no difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from cpsched.errors import DocumentError
from cpsched.formats import parse_instance
from tests.judges.ruled_windows import Document

__all__ = ["shrunk"]

#: What a document may leave out, but the windows of the judges always have.
KEPT = (("now",), ("jobs",), ("queues",))


def shrunk(document: Document, fails: Callable[[Document], bool]) -> Document:
    """Return a document that still fails, and of which no single part can be left out or be less.

    Parameters
    ----------
    document
        An instance that fails.
    fails
        Whether an instance that can be read does.
    """
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(document):
            if _can_be_read(candidate) and fails(candidate):
                document, is_smaller = candidate, True
                break
    return document


def _can_be_read(document: Document) -> bool:
    try:
        parse_instance(document, source="shrunk")
    except DocumentError:
        return False
    return True


def _smaller(document: Document) -> Iterator[Document]:
    """Yield copies from which one value is missing, or in which one number is smaller; large parts first."""
    places = sorted(_places(document, ()), key=len)
    for place in places:
        if place in KEPT:
            continue
        copy = json.loads(json.dumps(document))
        parent = copy
        for key in place[:-1]:
            parent = parent[key]
        del parent[place[-1]]
        yield copy
    for place in places:
        value: Any = document
        for key in place:
            value = value[key]
        for less in {0, 1, value // 2, value - 1} if isinstance(value, int) and value > 0 else ():
            if less < value:
                copy = json.loads(json.dumps(document))
                parent = copy
                for key in place[:-1]:
                    parent = parent[key]
                parent[place[-1]] = less
                yield copy


def _places(value: object, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*place, key)
            yield from _places(inner, (*place, key))
