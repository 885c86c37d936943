"""Measure pages in a browser: how soon the pages of a plan of many jobs are open, and how smoothly they are moved.

Chromium has to be installed. Seconds until a page is open are those of a clock on the wall, so they need an idle
machine; its own work is the processor time of the page's thread, which other programs do not change.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarking.measure import Sample, print_table, say, verdict

from cpsched.report import gantt_html, plan_report, report_page
from cpsched.site.serve import DocumentSource
from tests.browser.driving import NARROW, WIDE, Visits, chromium
from tests.browser.wide_plan import wide_plan
from tests.serve.in_thread import served

if TYPE_CHECKING:
    from playwright.sync_api import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is measured, and how often."""

    nodes: int
    jobs: int
    #: Times that a page is opened.
    repeats: int
    #: Keys that move a page.
    keys: int


FULL = Sizes(nodes=5000, jobs=10_000, repeats=5, keys=30)
QUICK = Sizes(nodes=40, jobs=300, repeats=1, keys=3)

#: Seconds at most.
OPEN_WANTED = 3.0

#: Waits until two more frames are drawn; returns the milliseconds since the page was asked for.
_DRAWN = (
    """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"""
)
#: Writes down the milliseconds between each frame and the next.
_WATCH = """() => {
  window.frames_ = [];
  let before = performance.now();
  const next = (now) => { window.frames_.push(now - before); before = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A page."""

    name: str
    url: str
    size: str
    #: Waits until everything on it is drawn.
    is_drawn: Callable[[Page], None]
    #: Puts the focus where keys move the page, and returns the two keys that do, there and back.
    keys: Callable[[Page], tuple[str, str]]


def _chart(page: Page) -> None:
    page.locator("html[data-ready=yes]").wait_for(state="attached")


def _report(page: Page) -> None:
    _chart(page)
    page.frame_locator("iframe").locator("html[data-ready=yes]").wait_for(state="attached")


def _live(page: Page) -> None:
    page.locator("#table tbody tr").first.wait_for()
    page.locator("#map canvas").first.wait_for()


def _chart_keys(page: Page) -> tuple[str, str]:
    """Zoom into the chart, so that it can be moved."""
    page.locator("#plot").focus()
    for key in ("+", "+", "]", "]", "]"):
        page.keyboard.press(key)
    return "ArrowRight", "ArrowLeft"


def _page_keys(_: Page) -> tuple[str, str]:
    return "PageDown", "PageUp"


def wait_for(url: str) -> None:
    """Wait until a server answers a question: it has read its plan."""
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60):  # noqa: S310 - our own server
                return
        except urllib.error.HTTPError:
            time.sleep(0.1)


def opened(visits: Visits, subject: Subject, screen: tuple[int, int]) -> tuple[Page, float, float]:
    """Open a page in a window of its own; return it, the seconds until all is drawn, and those of its own work."""
    page = visits.open("about:blank", screen=screen)
    page.set_default_timeout(60_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(subject.url)
    subject.is_drawn(page)
    seconds = page.evaluate(_DRAWN) / 1000
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return page, seconds, found["TaskDuration"]


def moved(page: Page, subject: Subject, keys: int) -> Sample:
    """Return the milliseconds of each frame while a page is moved there and back."""
    there, back = subject.keys(page)
    page.evaluate(_DRAWN)
    page.evaluate(_WATCH)
    for number in range(keys):
        page.keyboard.press(there if number < keys / 2 else back)
        page.evaluate(_DRAWN)
    return Sample(tuple(page.evaluate("() => window.frames_")))


def measured(visits: Visits, subject: Subject, screen: tuple[int, int], sizes: Sizes) -> tuple[str, ...]:
    """Return a row of the table."""
    seconds, works = [], []
    for _ in range(sizes.repeats):
        page, took, work = opened(visits, subject, screen)
        seconds.append(took)
        works.append(work)
        frames = moved(page, subject, sizes.keys)
        visits.close()
    sample, work_sample = Sample(tuple(seconds)), Sample(tuple(works))
    longest = f"{frames.median:.0f} / {max(frames.values):.0f}"
    judged = verdict(sample, OPEN_WANTED if sizes is FULL else None, at_most=True)
    return subject.name, subject.size, f"{screen[0]}", sample.text(2), judged, work_sample.text(2), longest


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    sizes = QUICK if options.quick else FULL
    instance, plan = wide_plan(sizes.nodes, sizes.jobs)
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def written(name: str, make: Callable[[], str]) -> tuple[str, str]:
            """Write a page; return its address and its size."""
            begin = time.perf_counter()
            text = make()
            say(f"{name} made in {time.perf_counter() - begin:.1f} s")
            file = folder / name
            file.write_text(text, encoding="utf-8")
            return file.as_uri(), f"{file.stat().st_size / 1e6:.1f}"

        chart, chart_size = written("chart.html", lambda: gantt_html(instance, plan))
        report, report_size = written("report.html", lambda: report_page(plan_report(instance, plan)))
        live = stack.enter_context(served(DocumentSource(instance, plan)))
        wait_for(f"{live}v1/state")
        browser = stack.enter_context(chromium())
        visits = Visits(browser)
        stack.callback(visits.close)
        print()
        print(f"* browser: Chromium {browser.version}, without a screen and a graphics card")
        for subject in (
            Subject(name="Gantt chart", url=chart, size=chart_size, is_drawn=_chart, keys=_chart_keys),
            Subject(name="report", url=report, size=report_size, is_drawn=_report, keys=_page_keys),
            Subject(name="live page", url=live, size="-", is_drawn=_live, keys=_page_keys),
        ):
            for screen in (WIDE, NARROW):
                rows.append(measured(visits, subject, screen, sizes))
        if visits.faults:
            raise SystemExit("\n".join(visits.faults))
    print_table(
        f"Pages of {sizes.jobs:,} jobs on {sizes.nodes:,} nodes",
        ("page", "MB", "pixels wide", "open after (s)", "target", "own work (s)", "frame, median / longest (ms)"),
        rows,
    )
