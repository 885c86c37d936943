"""The chunk syntax: ``8:ncpus=2:mem=10g:rack=8+ncpus=1,place=scatter:excl,abaqus=4`` (OCCS-17).

A recursive-descent parser, one function for each rule of the grammar, with the rule as its docstring.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from cpsched.domain import MAX_AMOUNT, MAX_COUNT, MAX_NAME, Amounts, Chunk, FrozenMap, Place, Request
from cpsched.errors import SyntaxFault
from cpsched.formats.notations import format_place, parse_place
from cpsched.text import did_you_mean

_ALIASES = {"ncpus": "cores", "ngpus": "gpus", "nmics": "mics"}
_TEXT_NAMES = {name: alias for alias, name in _ALIASES.items()}
#: These are counted in pieces, never in bytes, whatever other resources a site has.
_PIECES = frozenset({"cores", "gpus", "mics"})
_MEBIBYTE = 2**20
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

_COUNT = re.compile(r"([0-9]+):")
_NAME = re.compile(r"[^:+,=\s\x00-\x1f\x7f-\x9f]+")
_VALUE = re.compile(r"[^:+,\x00-\x1f\x7f-\x9f]+")
_PLACE_VALUE = re.compile(r"[^+,]*")
_AMOUNT = re.compile(r"([0-9]{1,18})(?:([kmgt])b?)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """The contents of the text of a request."""

    request: Request
    licenses: Amounts
    #: Whether the text has ``place``.
    has_place: bool


def parse_request(text: str, *, countable: Collection[str]) -> ParsedRequest:
    """Read a request in the chunk syntax.

    Raises `SyntaxFault` with the place in the text, if the syntax is wrong or an amount beyond all bounds.

    `text`: as in ``8:ncpus=2:mem=10g:rack=8``. A plain number for ``mem`` means MiB; sizes are rounded up to MiB.
    `countable`: names of the countable resources; a value of any other name is a property to match.
    """
    return _Parser(text, countable).request()


def format_request(request: Request) -> str:
    """Write a request in the chunk syntax. Raises `ValueError` if a name or property cannot be in it."""
    text = "+".join(_format_chunk(chunk) for chunk in request.chunks)
    return text if request.place == Place() else f"{text},place={format_place(request.place)}"


def _format_chunk(chunk: Chunk) -> str:
    items = [(_TEXT_NAMES.get(name, name), _format_amount(name, amount)) for name, amount in chunk.resources.items()]
    items += chunk.where.items()
    for name, value in items:
        if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ValueError(f"the chunk syntax cannot hold {name!r}={value!r}")
    return f"{chunk.count}:" + ":".join(f"{name}={value}" for name, value in items)


def _format_amount(name: str, amount: int) -> str:
    if name != "mem":
        return str(amount)
    return f"{amount // 1024}g" if amount % 1024 == 0 else f"{amount}m"


class _Parser:
    """Mutable: the place in one text."""

    def __init__(self, text: str, countable: Collection[str]) -> None:
        self.text = text
        self.countable = countable
        self.at = 0

    def request(self) -> ParsedRequest:
        """``request := chunk ('+' chunk)* (',' jobwide)*``, to the end of the text."""
        chunks = [self.chunk()]
        while self.takes("+"):
            chunks.append(self.chunk())
        place: Place | None = None
        licenses: dict[str, int] = {}
        while self.takes(","):
            start = self.at
            name = self.name()
            if name == "place":
                if place is not None:
                    raise self.fault((start, self.at), "Expected place once, got it twice")
                place = self.place()
            elif name in licenses:
                raise self.fault((start, self.at), f"Expected {name} once, got it twice")
            else:
                licenses[name] = self.amount(name, is_license=True)
        if self.at < len(self.text):
            raise self.fault((self.at, self.at + 1), f"Expected ':', '+', ',' or the end, got {self.text[self.at]!r}")
        return ParsedRequest(
            request=Request(chunks=tuple(chunks), place=place or Place()),
            licenses=Amounts({name: amount for name, amount in licenses.items() if amount}),
            has_place=place is not None,
        )

    def chunk(self) -> Chunk:
        """``chunk := [COUNT ':'] item (':' item)*``, with at least one unit of a countable resource."""
        start = self.at
        count = self.count()
        resources: dict[str, int] = {}
        where: dict[str, str] = {}
        self.item(resources, where)
        while self.takes(":"):
            self.item(resources, where)
        resources = {name: amount for name, amount in resources.items() if amount}
        if not resources:
            known = (*_ALIASES, *sorted(self.countable))
            hint = next(filter(None, (did_you_mean(name, known) for name in where)), "")
            raise self.fault((start, self.at), f"Expected at least one unit of a countable resource, got none{hint}")
        return Chunk(count=count, resources=Amounts(resources), where=FrozenMap(where))

    def count(self) -> int:
        """``COUNT := INT``, 1 to 10^6, and 1 where it is left out."""
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return 1
        self.at = match.end()
        if len(match[1]) > 7 or not 1 <= int(match[1]) <= MAX_COUNT:
            raise self.fault(match.span(1), f"Expected 1 to {MAX_COUNT} chunks, got {match[1][:20]}")
        return int(match[1])

    def item(self, resources: dict[str, int], where: dict[str, str]) -> None:
        """``item := NAME '=' (amount | VALUE)``: an amount of what is countable, else a property to match."""
        start = self.at
        written = self.name()
        name = _ALIASES.get(written, written)
        if name in resources or name in where:
            raise self.fault((start, self.at), f"Expected {name} once in a chunk, got it twice")
        if name in self.countable:
            resources[name] = self.amount(name)
        else:
            where[name] = self.value()[0]

    def name(self) -> str:
        """``NAME := any characters but ':+,=' and blanks``."""
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.fault((self.at, self.at + 1), f"Expected a name, got {self.got()}")
        if len(match.group()) > MAX_NAME:
            raise self.fault(match.span(), f"Expected a name of at most {MAX_NAME} characters")
        self.at = match.end()
        return match.group()

    def amount(self, name: str, *, is_license: bool = False) -> int:
        """``amount := INT [('k' | 'm' | 'g' | 't') ['b']]``: a size is in MiB, rounded up; a plain number is itself."""
        text, span = self.value()
        match = _AMOUNT.fullmatch(text)
        if match is None or (match[2] and (is_license or name in _PIECES)):
            kind = "an integer" if is_license or name in _PIECES else "an integer or a size such as 10g"
            raise self.fault(span, f"Expected {kind} for {name}, got {text[:40]!r}")
        amount = int(match[1])
        if match[2]:
            amount = -(-amount * _UNITS[match[2].lower()] // _MEBIBYTE)
        if amount > MAX_AMOUNT:
            raise self.fault(span, f"Expected at most {MAX_AMOUNT} of {name}, got {amount}")
        return amount

    def place(self) -> Place:
        """``place := '=' ARRANGEMENT [':' SHARING] | '=' SHARING``."""
        self.equals()
        match = _PLACE_VALUE.match(self.text, self.at)
        assert match is not None  # noqa: S101 -- the pattern matches the empty text too
        self.at = match.end()
        try:
            return parse_place(match.group())
        except SyntaxFault as error:
            start, end = error.span
            raise self.fault((match.start() + start, match.start() + end), error.message) from error

    def value(self) -> tuple[str, tuple[int, int]]:
        """``'=' VALUE``, VALUE := any characters but ``:+,``; returned with its span."""
        self.equals()
        match = _VALUE.match(self.text, self.at)
        if match is None:
            raise self.fault((self.at, self.at + 1), f"Expected a value, got {self.got()}")
        self.at = match.end()
        return match.group(), match.span()

    def equals(self) -> None:
        """``'='``."""
        if not self.takes("="):
            raise self.fault((self.at, self.at + 1), f"Expected '=', got {self.got()}")

    def takes(self, sign: str) -> bool:
        """Step over `sign` if it comes next."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += 1
        return True

    def got(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "the end"

    def fault(self, span: tuple[int, int], message: str) -> SyntaxFault:
        return SyntaxFault(self.text, span, message)
