"""One way in which a plan breaks the contract."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule of ``docs/formats.md`` that a plan does not keep.

    `rule`: the rule's short name: ``capacity``, ``deadline``, ``objective``, …. `subject`: what breaks it: a job's id,
    a node's name, or a path in the plan. `message`: what was expected and what was got, in words.
    """

    rule: str
    subject: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.message}"
