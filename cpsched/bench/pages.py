"""Putting the tables of a campaign into a page that people have written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cpsched.errors import DocumentError, Fault

__all__ = ["filled"]

#: ``<!-- table NAME -->``, whatever stands there now, ``<!-- end -->``.
_PLACE = re.compile(r"(<!-- table ([^ ]+) -->\n)(?:.*?\n)??(<!-- end -->)", flags=re.DOTALL)


def filled(page: Path, tables: Mapping[str, str]) -> str:
    """Return the text of a page with each table between its marks: ``<!-- table NAME -->`` and ``<!-- end -->``.

    Raises
    ------
    DocumentError
        If the page has a place for a table that is none of these, or none at all.
    OSError
        If it cannot be read.
    """
    text = page.read_text(encoding="utf-8")
    names = [match[2] for match in _PLACE.finditer(text)]
    faults = [Fault(f"table {name}", f"Expected one of {', '.join(tables)}") for name in names if name not in tables]
    if not names:
        faults.append(Fault("", "Expected a place for a table: <!-- table NAME -->, and <!-- end --> on a later line"))
    if faults:
        raise DocumentError(str(page), faults)
    return _PLACE.sub(lambda match: f"{match[1]}\n{tables[match[2]]}\n{match[3]}", text)
