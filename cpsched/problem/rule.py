"""What engines have in place of a rule, where documents have the name of a licence, resource, property or node."""

from __future__ import annotations

from typing import Self

from cpsched.domain import Amounts, WaitingReason

__all__ = ["Part", "Rule", "is_optional", "stated_node", "without_rules"]


class _Key(str):
    """A name that is equal to no name of a document, whatever its text says."""

    __slots__ = ("_fields",)
    _fields: tuple[object, ...]

    def __new__(cls, text: str, *fields: object) -> Self:
        """Return the key with such a text for people; keys of the same text and fields are equal."""
        key = super().__new__(cls, text)
        key._fields = (text, *fields)
        return key

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._fields == other._fields)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._fields)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), self._fields


class Rule(_Key):
    """A rule of the site that takes amounts as a licence or resource does, or admits as a property does.

    Its text says what it allows, to whom: ``user alice may have 16 cores at a time``.
    """

    __slots__ = ()

    @classmethod
    def of(cls, path: str, reason: WaitingReason, words: str, *, is_optional: bool = False) -> Self:
        """Return a rule.

        Parameters
        ----------
        path
            Its place in the document: ``limits[3]``.
        reason
            The reason of a job that waits because of it.
        words
            Its text.
        is_optional
            Whether chunks take of it only on nodes which have it.
        """
        return cls(words, path, reason, is_optional)

    @property
    def path(self) -> str:
        """Its place in the document."""
        return str(self._fields[1])

    @property
    def reason(self) -> WaitingReason:
        """The reason of a job that waits because of it."""
        return WaitingReason(str(self._fields[2]))

    @property
    def is_optional(self) -> bool:
        """Whether chunks take of it only on nodes which have it."""
        return bool(self._fields[3])


class Part(_Key):
    """The part of a node or licence that a reservation has for its jobs."""

    __slots__ = ()

    @classmethod
    def of(cls, whole: str, reservation: str, start: int) -> Self:
        """Return the part of a node or licence that a reservation has at a time; its text is the name of the whole."""
        return cls(whole, reservation, start)


def is_optional(name: str) -> bool:
    """Tell whether a chunk takes of a resource only on nodes which have it, and may also be on others."""
    return isinstance(name, Rule) and name.is_optional


def stated_node(name: str) -> str:
    """Return the node of the document that a node is, or is a part of."""
    return str(name) if isinstance(name, Part) else name


def without_rules(amounts: Amounts) -> Amounts:
    """Return those amounts that documents have a name for."""
    if not any(isinstance(name, Rule) for name in amounts):
        return amounts
    return Amounts({name: amount for name, amount in amounts.items() if not isinstance(name, Rule)})
