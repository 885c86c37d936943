"""Names from outside as text for people: in a terminal, in a page, and in the cells of a table.

Imports nothing of cpsched. Whatever prints or draws a name does it through `printable`, whatever writes it to CSV
through `csv_cell`; documents keep names as they are.
"""

import re
from collections.abc import Iterable

_NUMBERS = re.compile(r"([0-9]+)")
#: A cell that begins with one of these is a formula for spreadsheets, which may run commands.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def how_to_install(extra: str) -> str:
    """Say how an extra of the package is installed: no index has cpsched yet, so from its checkout."""
    return f"in a checkout of cpsched: pip install '.[{extra}]'"


def printable(text: str, *, keep_lines: bool = False) -> str:
    """Return `text` on one line, with an escape for each character that is not shown as itself.

    These are control characters, separators of lines and of paragraphs (U+2028, U+2029), and those that change the
    direction of writing. Newlines stay where `keep_lines`.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (keep_lines and char == "\n") else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def csv_cell(text: str) -> str:
    """Return `text` as the cell of a table that no spreadsheet takes for a formula: such a one begins with ``'``."""
    shown = printable(text)
    return f"'{shown}" if text.startswith(_FORMULA) else shown


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean X?`` with the known word nearest to another one, or nothing where none is near."""
    from difflib import get_close_matches  # not before: only those who mistype need it

    candidates = [name for name in known if name != word]
    near = [name for name in candidates if name.casefold() == word.casefold()]
    near = near or get_close_matches(word, candidates, n=1)
    return f", did you mean {printable(near[0])}?" if near else ""


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return the key by which names are sorted so that c2 comes before c10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name))
