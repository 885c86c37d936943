r"""Host lists, ``cn[001-616],login1``: expanded in the order in which they are written, and folded again.

A backslash takes a bracket, a comma or another backslash into a name: ``uv\[13\]`` is the node ``uv[13]``.

Written by hand although ClusterShell reads the same syntax (the tests compare the two): its sets sort the names, where
a document's order counts; they expand before the names can be counted; and they do not report where a text is wrong.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from math import prod

from cpsched.domain import MAX_NAME
from cpsched.errors import SyntaxFault

#: The most nodes that a cluster may have (formats.md, limits of the documents).
MAX_NODES = 10**6

_MAX_DIGITS = 15
#: As many names are written once, and known from then on.
_MANY = 100
_LITERAL = re.compile(r"(?:[^\[\],\\@!&^*?\s\x00-\x1f\x7f-\x9f]|\\[\[\],\\])+")
_ESCAPED = re.compile(r"\\(.)")
_SPECIAL = re.compile(r"([\[\],\\])")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+)(?:/([0-9]+))?)?")
_NAMES_WITH_DASH = re.compile(r"(.*[^0-9])([0-9]{1,15})-\1([0-9]{1,15})")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]+)([^0-9]*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Range:
    """Numbers ``first, first + step, …`` up to `last`, each written with at least `width` digits."""

    first: int
    last: int
    step: int
    width: int

    def __len__(self) -> int:
        return len(range(self.first, self.last + 1, self.step))

    def texts(self) -> Iterable[str]:
        return (f"{number:0{self.width}d}" for number in range(self.first, self.last + 1, self.step))


#: Literal texts and brackets of one term, in turn.
_Term = list[str | list[_Range]]


class _Parser:
    """Recursive descent over one host list; mutable: the place in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def hostlist(self) -> list[_Term]:
        """``hostlist := term (',' term)*``."""
        terms = [self.term()]
        while self.at < len(self.text):
            if self.text[self.at] != ",":
                raise SyntaxFault(self.text, (self.at, self.at + 1), f"Expected ',', got {self.text[self.at]!r}")
            self.at += 1
            terms.append(self.term())
        return terms

    def term(self) -> _Term:
        """``term := (LITERAL | '[' ranges ']')+``."""
        start, parts = self.at, _Term()
        while True:
            if literal := _LITERAL.match(self.text, self.at):
                self.at = literal.end()
                parts.append(_ESCAPED.sub(r"\1", literal.group()))
            elif self.text.startswith("[", self.at):
                self.at += 1
                parts.append(self.ranges())
            else:
                break
        if not parts:
            got = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
            raise SyntaxFault(self.text, (self.at, self.at + 1), f"Expected a node name, got {got}")
        longest = sum(len(part) if isinstance(part, str) else max(len(str(r.last)) for r in part) for part in parts)
        widest = sum(len(part) if isinstance(part, str) else max(r.width for r in part) for part in parts)
        if max(longest, widest) > MAX_NAME:
            raise SyntaxFault(self.text, (start, self.at), f"Expected names of at most {MAX_NAME} characters")
        return parts

    def ranges(self) -> list[_Range]:
        """``ranges := range (',' range)*``, up to the closing bracket."""
        found = [self.range()]
        while self.text.startswith(",", self.at):
            self.at += 1
            found.append(self.range())
        if not self.text.startswith("]", self.at):
            got = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
            raise SyntaxFault(self.text, (self.at, self.at + 1), f"Expected ',' or ']', got {got}")
        self.at += 1
        return found

    def range(self) -> _Range:
        """``range := INT ['-' INT ['/' INT]]``; with leading zeros both ends have the same number of digits."""
        match = _RANGE.match(self.text, self.at)
        if match is None:
            raise SyntaxFault(self.text, (self.at, self.at + 1), "Expected a range of numbers such as 001-032")
        first, last, step = match.group(1), match.group(2) or match.group(1), match.group(3) or "1"
        if max(len(first), len(last), len(step)) > _MAX_DIGITS:
            raise SyntaxFault(self.text, match.span(), f"Expected numbers of at most {_MAX_DIGITS} digits")
        if len(first) != len(last) and (_is_padded(first) or _is_padded(last)):
            raise SyntaxFault(self.text, match.span(), "Expected both ends of a padded range to be equally wide")
        if int(first) > int(last) or int(step) == 0:
            raise SyntaxFault(self.text, match.span(), "Expected a rising range with a step >= 1")
        self.at = match.end()
        return _Range(int(first), int(last), int(step), len(first) if _is_padded(first) else 1)


def _is_padded(number: str) -> bool:
    return len(number) > 1 and number.startswith("0")


def expand_hostlist(text: str, *, limit: int = MAX_NODES) -> tuple[str, ...]:
    """Return the names of a host list in the order in which they are written, the last bracket varying fastest.

    Raises `SyntaxFault` if the text is no host list, or has more than `limit` names.

    `text`: a host list; zero padding is kept, ``cn[08-11]`` is cn08, cn09, cn10, cn11. `limit`: the most names that are
    accepted; they are counted before they are made.
    """
    if len(text) <= MAX_NAME and limit > 0 and "\\" not in text and _LITERAL.fullmatch(text):
        return (text,)  # most jobs are on one node
    terms = _Parser(text).hostlist()
    count = sum(prod(sum(map(len, part)) for part in term if not isinstance(part, str)) for term in terms)
    if count > limit:
        raise SyntaxFault(text, (0, len(text)), f"Expected at most {limit} nodes, got {count}")
    return tuple(
        "".join(pieces)
        for term in terms
        for pieces in product(
            *([part] if isinstance(part, str) else [t for r in part for t in r.texts()] for part in term)
        )
    )


def meant_range(name: str) -> str | None:
    """Return the host list that a name like ``node01-node04`` is meant to be, ``node[01-04]``; None of other names."""
    match = _NAMES_WITH_DASH.fullmatch(name)
    return f"{match[1]}[{match[2]}-{match[3]}]" if match and int(match[2]) < int(match[3]) else None


def fold_hostlist(names: Sequence[str]) -> str:
    """Write names as a short host list that expands to the same names in the same order.

    Neighbours that differ in their last number only share a bracket: n1, n2, n4 is ``n[1-2,4]``.
    """
    return _fold(names) if len(names) < _MANY else _folded(tuple(names))


@lru_cache(maxsize=16)
def _folded(names: tuple[str, ...]) -> str:
    """Write many names: those of a machine are written again and again."""
    return _fold(names)


def _fold(names: Sequence[str]) -> str:
    terms: list[str] = []
    for (prefix, suffix, has_number), group in groupby(map(_parts, names), key=lambda s: (s[0], s[2], bool(s[1]))):
        numbers = [number for _, number, _ in group]
        if has_number and len(numbers) > 1:
            terms.append(f"{prefix}[{','.join(_runs(numbers))}]{suffix}")
        else:
            terms.extend(f"{prefix}{number}{suffix}" for number in numbers)
    return ",".join(terms)


@lru_cache(maxsize=2**14)  # the nodes of a machine are written again and again
def _parts(name: str) -> tuple[str, str, str]:
    """Split a name around its last number, and write what is before and after it as a host list has it."""
    match = _LAST_NUMBER.fullmatch(name)
    if match is None or len(match[2]) > _MAX_DIGITS:
        return _SPECIAL.sub(r"\\\1", name), "", ""  # a name without a number is all prefix
    return _SPECIAL.sub(r"\\\1", match[1]), match[2], _SPECIAL.sub(r"\\\1", match[3])


def _runs(numbers: Sequence[str]) -> Iterable[str]:
    """Join written numbers that follow one another, with the same padding, into ranges."""
    start = 0
    for index in range(1, len(numbers) + 1):
        if index < len(numbers) and _follows(numbers[index - 1], numbers[index]):
            continue
        run = numbers[start:index]
        yield run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}"
        start = index


def _follows(before: str, after: str) -> bool:
    if len(before) != len(after) and (_is_padded(before) or _is_padded(after)):
        return False
    return int(after) == int(before) + 1
