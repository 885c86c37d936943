"""Names from outside as text that a terminal shows and does not obey."""

from __future__ import annotations

__all__ = ["printable"]

#: Stands for a character that a terminal would obey instead of show; one for one, so that carets keep their place.
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return `text` with every control, format and unassigned character replaced; newlines stay where `keep_lines`."""
    return "".join(char if char.isprintable() or (keep_lines and char == "\n") else _REPLACEMENT for char in text)
