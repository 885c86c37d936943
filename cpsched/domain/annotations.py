"""What fields of nouns may hold, and how documents say it: `cpsched.formats` derives readers, writers, schemas.

A field is a key of the document of the same name. It may be left out where it has a default, and is not written then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from cpsched.domain.frozen import FrozenMap

#: The largest amount of a resource, and the most elements of an array (formats.md, limits of the documents).
MAX_AMOUNT = 2**31 - 1
MAX_ARRAY = 10**6
#: Walltimes, durations and delays of a document (s).
MAX_DURATION = 10**10
#: The most characters of a name.
MAX_NAME = 256
#: The most equal chunks of one kind.
MAX_COUNT = 10**6


@dataclass(frozen=True, slots=True)
class Key:
    """The key of a field in documents, and what it means."""

    says: str = ""
    #: None: the name of the field.
    name: str | None = None
    #: The only key of an object in which the value is, or None.
    inside: str | None = None
    examples: tuple[str, ...] = ()
    #: Whether null says something: that there is no limit, or that nothing is known.
    is_nullable: bool = False
    #: Whether it has to be there even where the field has a default, and whether it is always written.
    is_needed: bool = False
    is_always: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a number, one on each side, and the unit that a message says."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Letters:
    """How many characters a text has; none of them is a control character."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """The least number of entries of a list or an object."""

    least: int


@dataclass(frozen=True, slots=True)
class Several:
    """One entry may stand in place of the list that has it alone."""


@dataclass(frozen=True, slots=True)
class Check:
    """What else has to be true of a value."""

    #: Returns what is wrong with it, or None.
    wrong: Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class Resource:
    """A name of a countable resource, or one of the others that it may be: ``licenses``, ``jobs``."""

    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """How a document says a value that has a notation of its own: the name of that notation."""

    notation: str


Name = Annotated[str, Letters(1, MAX_NAME)]
Text = Annotated[str, Letters()]
Words = Annotated[str, Letters(1)]
NodeNames = Annotated[tuple[str, ...], Written("host list")]

Time = Annotated[int, Bounds(-(10**12), 10**12, unit="seconds")]
PlanTime = Annotated[int, Bounds(-(10**17), 10**17, unit="seconds")]
Seconds = Annotated[int, Bounds(0, MAX_DURATION, unit="seconds")]
Duration = Annotated[int, Bounds(above=0, most=MAX_DURATION, unit="seconds")]
Amount = Annotated[int, Bounds(0, MAX_AMOUNT)]
Count = Annotated[int, Bounds(above=0, most=MAX_COUNT)]
Priority = Annotated[int, Bounds(-MAX_AMOUNT, MAX_AMOUNT)]
UnitSeconds = Annotated[int, Bounds(0, 10**18)]

Number = Annotated[float, Bounds(-1e100, 1e100)]
Price = Annotated[float, Bounds(0, 1e100)]
Weight = Annotated[float, Bounds(above=0, most=1e100)]
Factor = Annotated[float, Bounds(1, 1e100)]

#: Amounts by resource or licence; of those that are asked for, 0 is the same as none.
Has = FrozenMap[Name, Amount]
Asks = Annotated[Has, Written("asked amounts")]
