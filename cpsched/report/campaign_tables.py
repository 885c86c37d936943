"""The tables of a campaign's report in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from cpsched.report.campaign_report import MAIN_LABELS, OVERVIEW
from cpsched.report.report import Report
from cpsched.report.tables import grid


def campaign_tables(report: Report) -> Iterator[Table]:
    """Yield the overview of a campaign, and its main figures with paired differences."""
    for section in report.sections:
        if section.title != OVERVIEW and section.title not in MAIN_LABELS:
            continue
        for each in section.tables:
            title = " - ".join(part for part in (section.title, each.title) if part)
            right = set(range(len(each.headings))) - each.words
            yield grid(title, each.headings, each.rows, right=right)
