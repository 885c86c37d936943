"""The HTML page: safe and small by its text, and right in a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cpsched.domain import Incumbent, Instance, Plan
from cpsched.report import gantt_html
from cpsched.text import printable
from tests.report.report_plans import HOSTILE, a_plan

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome in PATH")


class Page(HTMLParser):
    """What a browser made of a page: attributes of <html>, tags in order, and the text of each element with an id."""

    def __init__(self, dom: str) -> None:
        super().__init__()
        self.report: dict[str, str | None] = {}
        self.tags: list[str] = []
        self.text: dict[str, str] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(dom)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element, and that it is open."""
        self.tags.append(tag)
        if tag == "html":
            self.report = dict(attrs)
        if tag not in ("meta", "input", "br"):
            self._open.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag: str) -> None:
        """Close the element and all that was left open in it."""
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Add the text to every named element that is open."""
        for _, name in self._open:
            if name:
                self.text[name] = self.text.get(name, "") + data


def embedded(page: str) -> dict[str, Any]:
    """Read the data back out of a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def browse(page: str, folder: Path, fragment: str = "", *, width: int = 1400, is_dark: bool = False) -> Page:
    """Load a page in a browser without a screen and return what it became."""
    assert BROWSER is not None
    file = folder / "plan.html"
    file.write_text(page, encoding="utf-8")
    flags = "--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update"
    flags += " --disable-sync --no-first-run --virtual-time-budget=3000 --dump-dom"
    flags += f" --window-size={width},900" + (" --blink-settings=preferredColorScheme=0" if is_dark else "")
    command = [BROWSER, *flags.split(), f"--user-data-dir={folder / 'profile'}", file.as_uri() + fragment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)  # noqa: S603 (fixed flags)
    return Page(done.stdout)


def many_nodes() -> tuple[Instance, Plan]:
    """Make a plan of 30 jobs on 5,000 nodes."""
    return a_plan(tuple(f"job-{k}" for k in range(30)), nodes=5000, epoch=False)


def test_a_page_needs_nothing_from_outside() -> None:
    """No address, no reference to a file, and a policy that would refuse both."""
    page = gantt_html(*a_plan(("a", "b")))
    assert not re.search(r"\b(https?:|file:|src=|href=|@import|url\()", page)
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_names_cannot_leave_the_data() -> None:
    """The data holds no character of markup, names come back as they are drawn, and nothing is filled into them."""
    page = gantt_html(*a_plan(HOSTILE))
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert "\u2028" not in page
    data = embedded(page)
    drawn = tuple(map(printable, HOSTILE))
    assert tuple(row[0] for row in data["jobs"]) == drawn
    assert tuple(data["queues"]) == drawn


def test_half_a_character_can_be_written() -> None:
    """A lone surrogate, which a JSON document may hold, does not keep the page from being written as UTF-8."""
    instance, plan = a_plan(("a", "b"))
    assert b"\\ud800" in gantt_html(replace(instance, name="\ud800"), plan).encode()


def test_neighbours_with_the_same_are_one_run() -> None:
    """A job on two neighbouring nodes is one triple: first node, how many, what each gives."""
    data = embedded(gantt_html(*a_plan(("a", "b"))))
    first, second = data["jobs"]
    assert first[-1] == [[-60, 1140, [0, 2, 0]]]
    assert second[-1] == [[600, 1800, [1, 1, 0]]]
    assert data["held"] == [[4, 2048]]
    assert "2:ncpus=4:mem=2g:a=a" in data["texts"]


def test_use_of_resources_is_in_the_page() -> None:
    """Two nodes of four cores until 1140, a third from 600 to 1800."""
    cores = embedded(gantt_html(*a_plan(("a", "b"))))["resources"][0]
    assert cores == {
        "name": "cores",
        "total": 64,
        "mean": (8 * 1140 + 4 * 1200) / (64 * 1800),
        "times": [0, 600, 1140, 1800],
        "amounts": [8, 12, 4, 0],
    }


def test_a_thousand_jobs_are_less_than_a_megabyte() -> None:
    """The page of 1,000 jobs on 64 nodes stays below 1 MB, and the same plan gives the same page."""
    instance, plan = a_plan(tuple(f"{k}" for k in range(1000)), nodes=64)
    page = gantt_html(instance, plan)
    assert len(page.encode()) < 1_000_000
    assert page == gantt_html(instance, plan)


def test_a_foreign_node_is_refused() -> None:
    """A plan for another cluster is a mistake, not an empty chart."""
    _, plan = a_plan(("a", "b"), nodes=9)
    instance, _ = a_plan(("a", "b"), nodes=1)
    with pytest.raises(ValueError, match="node 'b1' is not in the instance"):
        gantt_html(instance, plan)


@in_browser
def test_hostile_names_in_a_browser(tmp_path: Path) -> None:
    """Every job is drawn without an error, nothing of the names becomes an element, and a link selects its job."""
    page = browse(gantt_html(*a_plan(HOSTILE)), tmp_path, "#job=" + quote(HOSTILE[1]))
    assert page.report["data-ready"] == "yes"
    assert page.report["data-errors"] == "0"
    assert page.report["data-jobs"] == page.report["data-drawn"] == "5"
    assert page.report["data-view"] == "rows"
    assert page.report["data-selected"] == HOSTILE[1]
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert page.text["name"] == HOSTILE[0]
    assert page.text["chosen"] == f"Job {HOSTILE[1]}"
    assert "2014-03-31 18:10:00" in page.text["details"]
    assert "1 x (cores=4, mem=2048, </script>" in page.text["details"]  # no name for the chunk syntax
    assert "unsatisfiable" in page.text["room"]


def test_the_page_has_the_offset_of_now() -> None:
    """In a time zone it is that of now, or of the epoch where now is beyond the calendar."""
    instance, plan = a_plan(("a", "b"))
    assert embedded(gantt_html(instance, plan))["epoch"][1] == 0
    berlin = replace(instance, time_zone="Europe/Berlin")
    assert embedded(gantt_html(berlin, plan))["epoch"][1] == 7200
    assert embedded(gantt_html(replace(berlin, now=10**12), plan))["epoch"][1] == 0


def test_how_the_plan_was_found_is_in_the_page() -> None:
    """Each incumbent with its value as a number and in words, the bound, and what else happened."""
    data = embedded(gantt_html(*a_plan(("a", "b"))))
    assert data["found"] == [[0.5, 52.9, "52.90", "a"], [2, 45, "45.00", "b"], [9.125, 41.27, "41.27", "a"]]
    assert data["bound"] == [40.02, "40.02"]
    assert data["elapsed"] == 9.7
    assert data["events"] == [["1.25 s", "a", "b"]]


@in_browser
@pytest.mark.parametrize("bound", [None, 40.02, -5.0, 41.27])
def test_incumbents_in_a_browser(bound: float | None, tmp_path: Path) -> None:
    """All incumbents are drawn with or without a bound, told in a table, and to readers who cannot see the drawing."""
    instance, plan = a_plan(HOSTILE)
    seen = browse(gantt_html(instance, replace(plan, objective=replace(plan.objective, bound=bound))), tmp_path)
    assert (seen.report["data-found"], seen.report["data-errors"]) == ("3", "0")
    assert f"0.50 s52.90{HOSTILE[0]}2.00 s45.00" in seen.text["history"]
    assert seen.text["finders"].startswith(HOSTILE[0])
    assert f"1.25 s{HOSTILE[0]}" in seen.text["events"]
    assert "img" not in seen.tags


@in_browser
def test_one_incumbent_at_once_in_a_browser(tmp_path: Path) -> None:
    """A single plan of value 0, found in no time, is a dot; a plan without any has no such section."""
    instance, plan = a_plan(("a", "b"))
    nothing = replace(plan.objective, value=0, bound=None, planner=0)
    engine = replace(plan.engine, elapsed=0)
    alone = replace(plan, objective=nothing, engine=engine, incumbents=(Incumbent(at=0, value=0, by="a"),))
    seen = browse(gantt_html(instance, alone), tmp_path)
    assert (seen.report["data-found"], seen.report["data-errors"]) == ("1", "0")
    seen = browse(gantt_html(instance, replace(alone, incumbents=(), events=())), tmp_path)
    assert seen.report["data-errors"] == "0"
    assert "data-found" not in seen.report


@in_browser
def test_five_thousand_nodes_are_a_density(tmp_path: Path) -> None:
    """Rows thinner than a pixel are drawn as means, and all jobs are still in them."""
    page = browse(gantt_html(*many_nodes()), tmp_path)
    assert (page.report["data-view"], page.report["data-drawn"], page.report["data-errors"]) == ("density", "30", "0")


def with_script(page: str, script: str) -> str:
    """Add a script to a page, as a flaw in the escaping would."""
    return page.replace(
        "</body>", f"<script type=\"module\">document.documentElement.dataset.owned = 'yes';{script}</script></body>"
    )


@in_browser
def test_hover_wheel_search_and_keys(tmp_path: Path) -> None:
    """A pointer over a job shows its details, the wheel zooms, the search counts matches, and Enter selects."""
    actions = """
      const plot = document.getElementById("plot"), box = plot.getBoundingClientRect();
      const there = { clientX: box.left + 198, clientY: box.top + 30 };
      plot.dispatchEvent(new PointerEvent("pointermove", there));
      for (let i = 0; i < 40; i++) plot.dispatchEvent(new WheelEvent("wheel", { deltaY: -60, ...there }));
      document.getElementById("query").value = "B-2";
      document.getElementById("query").dispatchEvent(new Event("input"));
      document.getElementById("search").requestSubmit();
    """
    page = gantt_html(*a_plan(tuple(f"job-{k}" for k in range(30)), nodes=8, epoch=False))
    # The page's own policy would refuse this script: the next test shows it.
    seen = browse(with_script(re.sub(r"<meta http-equiv[^>]*>", "", page), actions), tmp_path)
    assert (seen.report["data-owned"], seen.report["data-errors"]) == ("yes", "0")
    assert seen.text["tip"].startswith("Job job-0user")
    assert "on job-00cores 4, mem 2 GiB" in seen.text["tip"]
    assert seen.text["matches"] == "11 jobs"  # job-2 and job-20 to job-29
    assert seen.report["data-selected"] == "job-2"
    assert "wait21 min" in seen.text["details"]  # from -60 s to 1200 s


@in_browser
def test_the_policy_refuses_other_scripts(tmp_path: Path) -> None:
    """A script that got into the page by whatever flaw does not run."""
    seen = browse(with_script(gantt_html(*a_plan(("a", "b"))), ""), tmp_path)
    assert seen.report["data-ready"] == "yes"
    assert "data-owned" not in seen.report


@in_browser
def test_a_narrow_page_has_ticks_names_and_its_details_below(tmp_path: Path) -> None:
    """At the width of a phone time has its ticks, and what is said of a job does not cover the chart."""
    actions = """
      const place = (id) => document.getElementById(id).getBoundingClientRect();
      const report = document.documentElement.dataset;
      report.wide = String(document.documentElement.scrollWidth > innerWidth);
      report.below = String(place("panel").top >= place("charts").bottom);
      report.touch = getComputedStyle(document.getElementById("plot")).touchAction;
    """
    page = gantt_html(*a_plan(tuple(f"job-{k}" for k in range(8)), nodes=8, epoch=False))
    page = with_script(re.sub(r"<meta http-equiv[^>]*>", "", page), actions)
    seen = browse(page, tmp_path, "#job=job-2", width=390)
    assert (seen.report["data-owned"], seen.report["data-errors"]) == ("yes", "0")
    assert int(seen.report["data-ticks"] or 0) >= 3
    assert (seen.report["data-below"], seen.report["data-wide"], seen.report["data-touch"]) == (
        "true",
        "false",
        "pan-y",
    )


@in_browser
def test_paper_is_white(tmp_path: Path) -> None:
    """From a dark screen the chart is printed in dark ink, and afterwards it is as it was."""
    actions = """
      const report = document.documentElement.dataset;
      report.before = report.ink;
      dispatchEvent(new Event("beforeprint"));
      report.printed = report.ink;
      dispatchEvent(new Event("afterprint"));
      report.after = report.ink;
    """
    page = gantt_html(*a_plan(("a", "b")))
    seen = browse(with_script(re.sub(r"<meta http-equiv[^>]*>", "", page), actions), tmp_path, is_dark=True)
    inks = [seen.report[f"data-{when}"] for when in ("before", "printed", "after")]
    assert inks == ["#e6eaf0", "#1b2330", "#e6eaf0"]


@in_browser
def test_jobs_that_fill_several_thin_rows_have_their_names(tmp_path: Path) -> None:
    """Rows of some pixels are too thin for letters: a job over several of them is named once."""
    instance, plan = a_plan(("a", "b"), nodes=60, epoch=False)
    whole = instance.cluster.classes[0].resources
    nodes = instance.cluster.node_names
    wide = replace(
        plan.jobs[0],
        segments=tuple(
            replace(
                segment,
                allocation=tuple(replace(segment.allocation[0], node=node, resources=whole) for node in nodes[:6]),
            )
            for segment in plan.jobs[0].segments
        ),
    )
    seen = browse(gantt_html(instance, replace(plan, jobs=(wide, *plan.jobs[1:]))), tmp_path)
    assert (seen.report["data-view"], seen.report["data-named"], seen.report["data-errors"]) == ("rows", "1", "0")
