"""Names from outside, numbers and times as text that is safe and easy to read."""

from __future__ import annotations

__all__ = ["duration", "percent", "printable"]

#: Stands for a character that a terminal would obey instead of show; one for one, so that carets keep their place.
_REPLACEMENT = "\ufffd"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return `text` with every control, format and unassigned character replaced; newlines stay where `keep_lines`."""
    return "".join(char if char.isprintable() or (keep_lines and char == "\n") else _REPLACEMENT for char in text)


def duration(seconds: float) -> str:
    """Return whole seconds as ``1d 02:03:04``, days only where there are any."""
    days, rest = divmod(abs(round(seconds)), 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{'-' if seconds < 0 else ''}{f'{days}d ' if days else ''}{clock}"


def percent(share: float) -> str:
    """Return a share as ``42.1 %``."""
    return f"{100 * share:.1f} %"
