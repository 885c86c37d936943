"""Names from documents as text that cannot control a terminal."""

from __future__ import annotations

__all__ = ["printable"]

#: Replaces each character that would control a terminal; one for one, so that carets keep their place.
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return `text` with every control, format and unassigned character replaced; newlines stay where `keep_lines`."""
    return "".join(char if char.isprintable() or (keep_lines and char == "\n") else _REPLACEMENT for char in text)
