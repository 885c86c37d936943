"""What engines have in place of a rule, where documents have the name of a licence, resource, property or node."""

from typing import Self

from cpsched.domain import Amounts, WaitingReason


class _Key(str):
    """A name that is equal to no name of a document, whatever its text says."""

    __slots__ = ("marks",)
    #: Keys of the same kind, text and marks are equal.
    marks: tuple[str | int, ...]

    def __new__(cls, text: str, *marks: str | int) -> Self:
        """Return the key with a text for people."""
        key = super().__new__(cls, text)
        key.marks = marks
        return key

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.marks == other.marks and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[type[Self], tuple[str | int, ...]]:
        return type(self), (str(self), *self.marks)


class Rule(_Key):
    """A rule of the site, of which jobs take as of a licence or resource, or which nodes have as a property.

    Its text is what it allows, to whom: ``user alice may have 16 cores at a time``; its marks are its place in the
    document, ``limits[3]``, and the reason of a job that waits because of it.
    """

    __slots__ = ()

    @property
    def path(self) -> str:
        """Its place in the document."""
        return str(self.marks[0])

    @property
    def reason(self) -> WaitingReason:
        """The reason of a job that waits because of it."""
        return WaitingReason(str(self.marks[1]))


class RuleOnNodes(Rule):
    """A rule of some nodes: chunks take of it only there, and may also be on others."""

    __slots__ = ()


class Part(_Key):
    """The part of a node or licence that a reservation has for its jobs; its marks are the reservation and a start."""

    __slots__ = ()


class Choice(_Key):
    """The id of one of the choices of a job, while rules are compiled; its mark is its number."""

    __slots__ = ()

    @property
    def number(self) -> int:
        """Which of the job's choices it is."""
        return int(self.marks[0])


def level_rule(level: str) -> Rule:
    """Return the property of nodes whose value is their group of a level of the topology."""
    return Rule(f"one {level} for all chunks", f"cluster.topology.{level}", WaitingReason.UNSATISFIABLE)


def is_optional(name: str) -> bool:
    """Tell whether a chunk takes of a resource only on nodes which have it."""
    return isinstance(name, RuleOnNodes)


def stated_node(name: str) -> str:
    """Return the node of the document that a node is, or is a part of."""
    return str(name) if isinstance(name, Part) else name


def without_rules(amounts: Amounts) -> Amounts:
    """Return those amounts that documents have a name for."""
    if not any(isinstance(name, Rule) for name in amounts):
        return amounts
    return Amounts({name: amount for name, amount in amounts.items() if not isinstance(name, Rule)})
