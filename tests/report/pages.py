"""A report's page, parsed: what a browser would find in it before any script runs."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from cpsched.charts import plotly_script
from cpsched.report import Report, report_page


class ParsedPage(HTMLParser):
    """The elements of a page, its texts, its tables, and the figures of its charts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.source = page
        #: The page without plotly.js.
        self.own = page.replace(plotly_script(), "")
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.tables: list[list[list[str]]] = []
        self._in_cell = False
        self.feed(self.own)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        found = dict(attrs)
        self.tags.append(tag)
        self.attributes.append(found)
        if name := found.get("id"):
            self.ids.append(name)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        """Close a cell."""
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.texts.append(data)
        if self._in_cell:
            self.tables[-1][-1][-1] += data

    @property
    def charts(self) -> dict[str, Any]:
        """The figures by the ids of their places."""
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.own, re.DOTALL)
        assert found is not None
        return dict(json.loads(found[1])["charts"])


def parsed(report: Report) -> ParsedPage:
    """Make the page of a report and check what is true of each: whole, offline, and as many places as charts."""
    page = ParsedPage(report_page(report))
    # the namespace of SVG is a name, not an address
    outside = re.search(r"\b(https?:|file:|@import|url\()", page.own.replace("http://www.w3.org/2000/svg", ""))
    assert outside is None, page.own[outside.start() - 80 : outside.end() + 80]
    assert not [found for found in page.attributes if found.keys() & {"src", "action", "data", "poster"}]
    assert all((found.get("href") or "#").startswith("#") for found in page.attributes)
    assert "default-src 'none'" in page.own
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.charts) <= set(page.ids)
    assert len(page.charts) == len(report.charts)
    for section in report.sections:
        assert section.tables or all(chart.tables for chart in section.charts), section.title
    links = {found["href"] for found in page.attributes if found.get("href")}
    assert {link.removeprefix("#") for link in links if link} <= set(page.ids)
    return page
