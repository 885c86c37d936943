"""Collecting everything that is wrong with a document, and saying it in the document's own words."""

from collections.abc import Callable, Collection, Iterable
from typing import NoReturn, TypeVar

from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.text import did_you_mean, printable

T = TypeVar("T")
U = TypeVar("U")
#: Keys and indices from the top of the document down to the place of a fault.
Location = tuple[str | int, ...]

_LONGEST_SHOWN = 64
_CARET_WINDOW = 60
#: The lists of both documents whose entries have names: what an entry is called, and which key has its name.
_ENTRIES = dict.fromkeys(("jobs", "waiting_room", "attempts"), ("job", "id"))
_ENTRIES |= {"reservations": ("reservation", "id")}
#: The most names that a message lists.
_MOST_NAMED = 5
#: The most candidates compared for "did you mean" in one document: suggestions must not make a refusal slow.
_COMPARISONS = 20_000
#: The most faults of one document that are reported; after mending these the document is read again.
MOST_FAULTS = 1_000


class UnusableLine(Exception):  # noqa: N818 - control flow, never seen outside
    """A line is no job; the text says why."""


def read_each(entries: Iterable[tuple[int, T]], read: Callable[[T, int], None]) -> list[Fault]:
    """Read the numbered entries of a log, and return a fault for each that is no job."""
    faults = []
    for number, entry in entries:
        try:
            read(entry, number)
        except UnusableLine as reason:
            faults.append(Fault(f"line {number}", str(reason)))
    return faults


def _printable(text: str) -> str:
    clipped = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return printable(clipped)


def shown(value: object) -> str:
    """Show a value from outside in a message: on one line, printable, and never long."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 128:
            return "an integer of more than 38 digits"
        case int() | float():
            return repr(value)
        case str():
            return f'"{_printable(value)}"'
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a Python {type(value).__name__}"


def path_of(location: Location) -> str:
    """Write a location as ``jobs[17].walltime``; the document as a whole is ``document``."""
    parts: list[str] = []
    for part in location:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(f".{_printable(part)}" if parts else _printable(part))
    return "".join(parts) or "document"


def caret_message(fault: SyntaxFault) -> str:
    """Write a syntax fault with its caret, clipped to the surroundings of the place where the text is long."""
    start, end = fault.span
    first = max(0, start - _CARET_WINDOW)
    last = min(len(fault.text), start + _CARET_WINDOW)
    clipped = "".join(char if char.isprintable() else "?" for char in fault.text[first:last])
    return str(SyntaxFault(clipped, (start - first, min(end, last) - first), fault.message))


def refuse_other_kind(document: object, source: str, expected: str) -> None:
    """Refuse an instance where a plan is expected, and a plan where an instance is, before all else.

    `document`: decoded JSON. `source`: where it is from. `expected`: ``instance`` or ``plan``. Raises `DocumentError`
    with one fault, which says what the document is.
    """
    written = document.get("format") if isinstance(document, dict) else None
    for kind, noun in (("instance", "an instance"), ("plan", "a plan")):
        if kind != expected and isinstance(written, str) and written.startswith(f"cpsched-{kind}/"):
            message = (
                f'Expected "cpsched-{expected}/1", got {shown(written)}: this is {noun}; are the two files swapped?'
            )
            raise DocumentError(source, [Fault("format", message)])


class Faults:
    """Mutable: what is wrong with one document so far.

    `document`: the raw document, by which the faults are put in order. `keys`: candidates for unknown keys.
    """

    def __init__(self, document: object, keys: Collection[str] = ()) -> None:
        self._document = document
        #: Candidates for unknown keys.
        self.keys = keys
        #: Each once, in the order in which they were noted.
        self._found: dict[tuple[Location, str], None] = {}
        self._comparisons_left = _COMPARISONS
        #: Whether there are more faults than are reported.
        self.has_more = False

    def __bool__(self) -> bool:
        return bool(self._found)

    def locations(self) -> tuple[Location, ...]:
        """Return the place of each fault so far."""
        return tuple(location for location, _ in self._found)

    def ordered(self) -> list[tuple[Location, str]]:
        """Return the faults so far, in document order."""
        return sorted(self._found, key=_DocumentOrder(self._document))

    def add(self, location: Location, message: str) -> None:
        """Note a fault, unless there are too many already."""
        if len(self._found) < MOST_FAULTS or (location, message) in self._found:
            self._found[location, message] = None
        else:
            self.has_more = True

    def add_syntax(self, location: Location, fault: SyntaxFault) -> None:
        """Note a fault inside a short text, with its caret."""
        self.add(location, caret_message(fault))

    def add_unknown(self, location: Location, noun: str, name: str, known: Collection[str]) -> None:
        """Note that `name` is not among the `known` ones, with the nearest of them where there is one."""
        self.add(location, f"Expected a known {noun}, got {shown(name)}{self.suggestion(name, known)}")

    def add_repeated(self, expected: str, names: Iterable[tuple[Location, str]]) -> None:
        """Note each name that an earlier place has already."""
        first: dict[str, Location] = {}
        for location, name in names:
            if name in first:
                self.add(location, f"Expected {expected}, got {shown(name)}, as in {path_of(first[name])}")
            first.setdefault(name, location)

    def parsed(self, location: Location, parse: Callable[[str], T], text: str, otherwise: U) -> T | U:
        """Return what a short text says, or something else where it has a fault."""
        try:
            return parse(text)
        except SyntaxFault as error:
            self.add_syntax(location, error)
            return otherwise

    def suggestion(self, word: str, known: Collection[str] | None = None) -> str:
        """Return ``, did you mean X?``, or nothing where no known word (default: no key) is near."""
        known = self.keys if known is None else known
        if len(word) > _LONGEST_SHOWN or len(known) > self._comparisons_left:
            return ""
        self._comparisons_left -= len(known)
        # a key that is known elsewhere is no hint
        return did_you_mean(word, [name for name in known if len(name) <= _LONGEST_SHOWN])

    def fault(self, location: Location, message: str) -> Fault:
        """Return a fault as people read it: with its path, and the name of the entry that it is in."""
        return Fault(path_of(location), message, self._entry(location))

    def _entry(self, location: Location) -> str:
        """Name the entry of a list, such as a job, in which a location is; nothing where it has no name."""
        section, index, *_ = (*location, None, None)
        noun, key = _ENTRIES.get(str(section), ("", ""))
        entries = self._document.get(section) if noun and isinstance(self._document, dict) else None
        if not isinstance(entries, list) or not isinstance(index, int) or index >= len(entries):
            return ""
        name = entries[index].get(key) if isinstance(entries[index], dict) else None
        return f"{noun} {shown(name)}" if isinstance(name, str) else ""

    def raise_if_any(self, source: str) -> None:
        """Raise `DocumentError` with all the faults, in document order, if there are any."""
        if self._found:
            self.refuse(source)

    def refuse(self, source: str) -> NoReturn:
        """Raise `DocumentError` with all the faults, in document order; there are some."""
        faults = [self.fault(location, message) for location, message in self.ordered()]
        if self.has_more:
            faults.append(Fault("document", f"there are more faults than these {MOST_FAULTS}"))
        raise DocumentError(source, faults) from None


class _DocumentOrder:
    """Sort key of a location: the places of its keys in their objects; what is missing comes last."""

    def __init__(self, document: object) -> None:
        self._document = document
        self._places: dict[int, dict[object, int]] = {}

    def __call__(self, found: tuple[Location, str]) -> tuple[int, ...]:
        value = self._document
        places: list[int] = []
        for part in found[0]:
            if isinstance(value, dict):
                if id(value) not in self._places:
                    self._places[id(value)] = {key: place for place, key in enumerate(value)}
                places.append(self._places[id(value)].get(part, len(value)))
                value = value.get(part)
            else:
                places.append(part if isinstance(part, int) else 0)
                inside = isinstance(value, list) and isinstance(part, int) and part < len(value)
                value = value[part] if isinstance(value, list) and isinstance(part, int) and inside else None
        return tuple(places)


def first_few(names: Iterable[str]) -> str:
    """List names for a message: the first of them, and how many more there are."""
    listed = [_printable(name) for name in names]
    more = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
