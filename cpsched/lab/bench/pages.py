"""Inserting the tables of a campaign into a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cpsched.errors import DocumentError, Fault

#: ``<!-- table NAME -->`` or ``<!-- table NAME of CAMPAIGN -->``, the present content, ``<!-- end -->``.
_PLACE = re.compile(
    r"(?P<mark><!-- table (?P<table>[^ ]+)(?: of (?P<campaign>[^ ]+))? -->\n)(?:.*?\n)??(?P<end><!-- end -->)",
    flags=re.DOTALL,
)


def filled(page: Path, tables: Mapping[str, str], *, campaign: str) -> str:
    """Return the text of a page with each table between its marks: ``<!-- table NAME -->`` and ``<!-- end -->``.

    In a page of several campaigns a table names its campaign, ``<!-- table NAME of CAMPAIGN -->``; tables of other
    campaigns remain unchanged. Raises `DocumentError` if the page has a place for a table that is none of these, or
    none at all; `OSError` if it cannot be read.
    """
    text = page.read_text(encoding="utf-8")

    def is_ours(place: re.Match[str]) -> bool:
        return place["campaign"] in (None, campaign)

    names = [place["table"] for place in _PLACE.finditer(text) if is_ours(place)]
    faults = [Fault(f"table {name}", f"Expected one of {', '.join(tables)}") for name in names if name not in tables]
    if not names:
        faults.append(Fault("", "Expected a place for a table: <!-- table NAME -->, and <!-- end --> on a later line"))
    if faults:
        raise DocumentError(str(page), faults)

    def fill(place: re.Match[str]) -> str:
        return f"{place['mark']}\n{tables[place['table']]}\n{place['end']}" if is_ours(place) else place[0]

    return _PLACE.sub(fill, text)
