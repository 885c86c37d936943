"""The short texts inside an instance: host lists, requests, sizes, places, array indices and item bounds.

Every function raises `SyntaxFault`, which points at the offending part.
"""

import itertools
import math
import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import NamedTuple

from cpsched.errors import SyntaxFault
from cpsched.verify.documents import MAX_AMOUNT, MAX_NAME, MAX_SIZE
from cpsched.verify.model import Chunk, ItemBound

ARRANGEMENTS = ("free", "pack", "scatter")
SHARINGS = {"excl": True, "exclusive": True, "shared": False}
ALIASES = {"ncpus": "cores", "ngpus": "gpus", "nmics": "mics"}
#: Resources that are counted in pieces: a size makes no sense for them.
PIECES = ("cores", "gpus", "mics")
MIB = 2**20
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

#: A literal part of a host name, in which a backslash escapes a sign, or a bracket with its inside.
HOST_PART = re.compile(r"((?:[^\[\],\\@!&^*?\s\x00-\x1f\x7f-\x9f]|\\[\[\],\\])+)|\[([^\[\]]*)\]")
ESCAPE = re.compile(r"\\(.)")
HOST_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?:/([0-9]{1,15}))?)?")
INDEX_RANGE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")
NAME = re.compile(r"[^:+,=\s\x00-\x1f\x7f-\x9f]{1,256}")
WITHIN = re.compile(rf"(?:([^=]*):)?(?:(segment|spread)=([1-9][0-9]{{0,6}}):)?within=(.{{1,{MAX_NAME}}})")
SIZE = re.compile(r"([0-9]{1,18})(?:([kmgt])b?)?", re.IGNORECASE | re.ASCII)
ITEMS = re.compile(r"([0-9]{1,10})|(?:([0-9]{1,10})/)?([0-9]{1,3}(?:\.[0-9]{1,9})?)%")


class Place(NamedTuple):
    """How the chunks of a request may lie, as `Request` has it."""

    arrangement: str
    exclusive: bool
    within: str | None = None
    segment: int | None = None
    spread: int | None = None


def _fault(text: str, part: str, message: str) -> SyntaxFault:
    start = max(0, text.find(part))
    return SyntaxFault(text, (start, start + len(part)), message)


def expand_hosts(text: str) -> Iterator[str]:
    """Yield the names of a host list such as ``cn[001-616],login[1,3-5],r[1-2]n[0-15]``, in order."""
    total = at = 0
    while True:
        pieces: list[list[str]] = []
        begin = at
        while match := HOST_PART.match(text, at):
            pieces.append([ESCAPE.sub(r"\1", match[1])] if match[2] is None else list(_bracket(text, match[2])))
            at = match.end()
        term = text[begin:at]
        if not term or text[at : at + 1] not in ("", ","):
            raise _fault(text, text[at : at + 1], "expected a host list such as node[01-64]")
        if sum(max(map(len, piece)) for piece in pieces) > MAX_NAME:
            raise _fault(text, term, f"expected names of at most {MAX_NAME} characters")
        total += math.prod(map(len, pieces))
        if total > MAX_SIZE:
            raise _fault(text, term, f"expected a host list of at most {MAX_SIZE} nodes")
        yield from map("".join, itertools.product(*pieces))
        if at == len(text):
            return
        at += 1


def _bracket(text: str, inside: str) -> Iterator[str]:
    """Yield the numbers of ``001-616,700-800/2``, zero-padded as their first number is."""
    total = 0
    for part in inside.split(","):
        match = HOST_RANGE.fullmatch(part)
        if match is None:
            raise _fault(text, part, "expected a range of numbers such as 01-64")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        total += (last - first) // step + 1 if step else 0
        if last < first or step < 1 or total > MAX_SIZE:
            raise _fault(text, part, f"expected ascending ranges of at most {MAX_SIZE} numbers")
        width = max(len(end) if end.startswith("0") else 1 for end in (match[1], match[2] or match[1]))
        if width > 1 and len(match[1]) != len(match[2] or match[1]):
            raise _fault(text, part, "expected both ends of a padded range to be equally wide")
        for number in range(first, last + 1, step):
            yield str(number).zfill(width)


def expand_indices(text: str) -> tuple[int, ...]:
    """Return the indices of an array, ``1,3,5-9`` or ``0-20:5``, ascending; none may occur twice."""
    indices: list[int] = []
    for part in text.split(","):
        match = INDEX_RANGE.fullmatch(part)
        if match is None:
            raise _fault(text, part, "expected indices such as 0-9, 1,3,5-9 or 0-20:5")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or last > MAX_AMOUNT or (last - first) // step >= MAX_SIZE:
            raise _fault(text, part, f"expected an ascending range up to {MAX_AMOUNT} of at most {MAX_SIZE} indices")
        indices.extend(range(first, last + 1, step))
        if len(indices) > MAX_SIZE:
            raise _fault(text, part, f"expected at most {MAX_SIZE} indices")
    if len(set(indices)) != len(indices):
        raise _fault(text, text, "expected each index once")
    return tuple(sorted(indices))


def parse_place(text: str) -> Place:
    """Return a place: ``[free|pack|scatter][:excl|:exclusive|:shared]``, then ``[:within=LEVEL]``, before which is
    ``segment=N`` or ``spread=N`` if chunks may be in several groups.
    """
    if match := WITHIN.fullmatch(text):
        outer, key, number, level = match.groups()
        place = parse_place("free" if outer is None else outer)._replace(within=level)
        if key == "segment":
            return place._replace(segment=int(number))
        return place if key is None else place._replace(spread=int(number))
    first, colon, second = text.partition(":")
    if not colon and first in SHARINGS:
        return Place("free", SHARINGS[first])
    if first not in ARRANGEMENTS or (colon and second not in SHARINGS):
        raise _fault(text, text, "expected free, pack or scatter, then :excl, :exclusive or :shared, then :within=")
    return Place(first, SHARINGS.get(second, False))


def parse_request(text: str, countable: Collection[str]) -> tuple[tuple[Chunk, ...], str | None, dict[str, int]]:
    """Return the chunks of a request text, its place (None if it does not say) and its licences.

    The grammar is ``[N:]res=value[:res=value…][+[N:]…][,place=…][,NAME=N…]``.
    """
    first, *tail = text.split(",")
    chunks = tuple(_chunk(text, part, countable) for part in first.split("+"))
    place: str | None = None
    licenses: dict[str, int] = {}
    for part in tail:
        key, equals, value = part.partition("=")
        if not NAME.fullmatch(key) or not equals or key in licenses or (key == "place" and place is not None):
            raise _fault(text, part, "expected place=… or LICENCE=NUMBER, each once")
        if key == "place":
            place = value
        elif not re.fullmatch("[0-9]{1,18}", value) or int(value) > MAX_AMOUNT:
            raise _fault(text, part, f"expected a number of licences from 0 to {MAX_AMOUNT}")
        else:
            licenses[key] = int(value)
    return chunks, place, {name: amount for name, amount in licenses.items() if amount}


def _chunk(text: str, part: str, countable: Collection[str]) -> Chunk:
    """Parse ``[N:]res=value[:res=value…]``."""
    items = part.split(":")
    count = 1
    if "=" not in items[0]:
        head = items.pop(0)
        if not re.fullmatch("[0-9]{1,7}", head) or not 1 <= int(head) <= MAX_SIZE:
            raise _fault(text, head, f"expected a number of chunks from 1 to {MAX_SIZE}")
        count = int(head)
    asked: dict[str, int] = {}
    where: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        name = ALIASES.get(key, key)
        if not NAME.fullmatch(key) or not equals or not value or name in asked or name in where:
            raise _fault(text, item, "expected resource=value, each resource once")
        if name in countable:
            asked[name] = _amount(text, name, value)
        else:
            where[name] = value
    resources = {name: amount for name, amount in asked.items() if amount}
    if not resources:
        raise _fault(text, part, "expected a chunk that asks for at least one unit of a countable resource")
    return Chunk(count, resources, where)


def _amount(text: str, name: str, value: str) -> int:
    """Parse a number, or a size ``10g`` or ``10gb`` that is rounded up to MiB."""
    match = SIZE.fullmatch(value)
    if match is None or (match[2] and name in PIECES):
        raise _fault(text, value, f"expected a number of {name}" + ("" if name in PIECES else " or a size such as 10g"))
    amount = int(match[1])
    if match[2]:
        amount = -(-amount * UNITS[match[2].lower()] // MIB)
    if amount > MAX_AMOUNT:
        raise _fault(text, value, f"expected at most {MAX_AMOUNT}")
    return amount


def parse_items(text: str) -> ItemBound:
    """Parse ``30``, ``45%`` or ``30/45%``."""
    match = ITEMS.fullmatch(text)
    if match is None:
        raise _fault(text, text, "expected items such as 30, 45% or 30/45%")
    least = match[1] or match[2]
    bound = ItemBound(int(least) if least else None, Fraction(match[3]) if match[3] else None)
    if (bound.least or 0) > MAX_AMOUNT or (bound.percent or 0) > 100:
        raise _fault(text, text, f"expected at most {MAX_AMOUNT} items and 100 per cent")
    return bound
