"""Documents that are changed at random: bytes, values, keys, nesting and numbers."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

__all__ = ["change_bytes", "change_document", "change_text"]


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


#: What a value may be replaced by: wrong types, bounds, and texts of every notation.
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 10**12, 10**18, -(10**18), 10**400, 0.5, float("nan"), float("inf")),
    *("", "x", "cn1", "1", "2", "r1", "3[4]", "cn[1-3]", "cn[1-99999999]", "@a", "ncpus=1", "9:ncpus=0", "0-9"),
    *("5-1:0", "*", "\ud800", "30/45%", "excl", "always", "* * * * *", "L L L L L", "\n", "x" * 300),
    *([], {}, [[]], {"": 1}, {"cron": "@daily"}, _nested(200), {"\ud800\n": 0}, {"user": "a", "each": "user"}),
)
#: What a part of a line may be replaced by.
_WORDS = ("", "-1", "0", "1", "x", "9" * 5000, "1e999", "nan", "-0", "[" * 5000, "'", '"', "=", "\n", "\0", "\u2028")


def change_document(random: Random, document: dict[str, Any]) -> None:
    """Change one thing: replace, remove, add, misspell, double or copy a value from elsewhere, or vary a number."""
    places = _places(document)
    if not places:
        return
    container, key = random.choice(places)
    kind = random.choice(["replace", "remove", "add", "misspell", "double", "copy", "vary", "vary"])
    value = container[key]
    if kind == "vary" and isinstance(value, int):
        container[key] = random.choice([0, 1, value - 1, value + 1, value // 2, 2 * value, 1000 * value])
    elif kind in ("replace", "vary"):
        container[key] = copy.deepcopy(random.choice(_VALUES))
    elif kind == "remove":
        del container[key]
    elif kind == "copy":
        other, other_key = random.choice(places)
        container[key] = copy.deepcopy(other[other_key])
    elif isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    elif kind == "add":
        name = random.choice(["job", "place", "runing", "", "min", "\ud800"])
        container[name] = copy.deepcopy(random.choice(_VALUES))
    else:
        container[f"{key}s"] = container.pop(key)


def change_text(random: Random, text: str) -> str:
    """Change one thing of a text of lines: replace a word, or double, remove or exchange lines."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    kind = random.choice(["word", "word", "word", "double", "remove", "exchange"])
    if kind == "word":
        sign = random.choice([" ", "=", ";", ",", ".", ":"])
        words = lines[at].split(sign)
        words[random.randrange(len(words))] = random.choice(_WORDS)
        lines[at] = sign.join(words)
    elif kind == "double":
        lines.insert(random.randrange(len(lines)), lines[at])
    elif kind == "remove":
        del lines[at]
    else:
        other = random.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def change_bytes(random: Random, content: bytes) -> bytes:
    """Change up to three bytes, and cut the end off in every second case."""
    changed = bytearray(content)
    for _ in range(random.randint(0, 3)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed[: random.randrange(len(changed)) if random.random() < 0.5 else len(changed)])


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    pending = [document]
    while pending:
        value = pending.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            found.append((value, key))
            pending.append(inner)
    return found
