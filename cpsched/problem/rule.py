"""A rule of the site as engines see it: a licence, resource or property with a name that no document can have."""

from __future__ import annotations

from dataclasses import dataclass

from cpsched.domain import OPTIONAL, WaitingReason

__all__ = ["MARK", "Rule", "is_made_up", "stated_name"]

#: Names that stand for rules begin with this; no text of a document has control characters.
MARK = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The rule that a made-up licence or resource stands for."""

    #: Its place in the document: ``limits[3]``.
    path: str
    #: The reason of a job that waits because of it.
    reason: WaitingReason
    #: What it allows, to whom: ``user alice may have 16 cores at a time``.
    words: str
    #: Whether it stands for a resource that chunks take only on nodes which have it.
    is_optional: bool = False

    @property
    def name(self) -> str:
        """The name of the licence or resource."""
        return f"{OPTIONAL if self.is_optional else MARK}{self.path}: {self.words}"


def is_made_up(name: str) -> bool:
    """Tell whether a licence, resource or property stands for a rule."""
    return name.startswith(MARK)


def stated_name(name: str) -> str:
    """Return the name in the document of a node or licence inside a reservation; of any other its own."""
    return name if is_made_up(name) else name.partition(MARK)[0]
