"""Pages of reports in a browser: what is drawn, the switch of colours, legends by keys, paper, and hostile names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpsched.report import Report, campaign_report, plan_report, report_page, run_report, workflow_html
from tests.browser.driving import (
    NARROW,
    SCREENS,
    WIDE,
    Visits,
    is_hard_to_use,
    is_wider_than_screen,
    looks_wrong,
    report_of,
)
from tests.metrics.made_runs import runs_of
from tests.metrics.test_workflow import planned, window
from tests.report.report_plans import HOSTILE, a_plan
from tests.report.test_campaign_report import cells_of
from tests.report.test_run_report import ROWS, a_run
from tests.sizes import some

if TYPE_CHECKING:
    from playwright.sync_api import Page


def hostile_reports() -> dict[str, Report]:
    """Return a report of each kind, all of whose names are hostile."""
    rows = [row._replace(user=HOSTILE[k], queue=HOSTILE[k + 1]) for k, row in enumerate(ROWS)]
    cells = [cell for name in HOSTILE[:2] for cell in cells_of({one: [1, 2, 3] for one in HOSTILE}, workload=name)]
    return {
        "plan": plan_report(*a_plan(HOSTILE)),
        "run": run_report([a_run(runs_of(*rows), policy=HOSTILE[1], workload=HOSTILE[0])]),
        "campaign": campaign_report(HOSTILE[0], cells),
    }


def opened(
    visits: Visits, folder: Path, report: Report, *, screen: tuple[int, int] = WIDE, scheme: str = "light"
) -> Page:
    """Open the page of a report, and wait until all charts are drawn without an error."""
    file = folder / "report.html"
    file.write_text(report_page(report), encoding="utf-8")
    page = visits.open(file.as_uri(), screen=screen, scheme=scheme)
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    said = report_of(page)
    assert (said["errors"], said["drawn"]) == ("0", said["charts"])
    return page


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plan", "run", "campaign"])
@pytest.mark.parametrize(("screen", "scheme"), some(SCREENS, 3))
def test_every_chart_is_drawn(visits: Visits, tmp_path: Path, kind: str, screen: tuple[int, int], scheme: str) -> None:
    """On a desk and on a phone, light and dark: all charts, no fault, no scrolling sideways, and hostile names as text;
    all words can be read, and no label is cut off or on another; a dark page is printed with its words.
    """
    report = hostile_reports()[kind]
    page = opened(visits, tmp_path, report, screen=screen, scheme=scheme)
    assert page.locator(".plot .main-svg").count() >= len(report.charts)
    assert page.locator("img").count() == 0
    assert page.title().startswith(f"{report.kind}: <img src=x onerror=alert(1)>")
    assert not is_wider_than_screen(page)
    assert page.evaluate("innerWidth") == screen[0]
    assert looks_wrong(page) == []
    assert is_hard_to_use(page) == []
    if scheme == "dark":
        print_dark(page, kind)


@pytest.mark.slow
def test_lesser_figures_of_a_campaign_are_folded(visits: Visits, tmp_path: Path) -> None:
    """A phone sees the summary and the main figures; a link or a click opens the others, whose charts fit then, and
    paper has all.
    """
    cells = cells_of({one: [1, 2, 3] for one in "ab"}) + cells_of({one: [1, 2, 3] for one in "ab"}, figure="makespan")
    page = opened(visits, tmp_path, campaign_report("c", cells), screen=NARROW)
    assert page.locator("details.part").count() == 1
    assert not page.locator("details.part .plot").first.is_visible()
    folded = page.evaluate("document.documentElement.scrollHeight")
    page.get_by_role("link", name="Makespan").click()
    plot = page.locator("details.part .plot").first
    plot.wait_for(state="visible")
    assert page.evaluate("document.documentElement.scrollHeight") > folded
    assert plot.locator(".main-svg").first.bounding_box()["width"] <= NARROW[0]  # type: ignore[index]  # it is visible
    assert not is_wider_than_screen(page)
    page.locator("details.part > summary").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.part").evaluate("part => part.open")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.locator("details.part").evaluate("part => part.open")


@pytest.mark.slow
@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_the_page_of_dependencies(visits: Visits, tmp_path: Path, screen: tuple[int, int], scheme: str) -> None:
    """All words can be read, a drawing wider than a phone scrolls by itself, and keys and screen readers find all."""
    array = {"array": {"indices": "0-5"}}
    instance = window({"id": HOSTILE[0]}, {"id": "b", **array, "after": [{"job": HOSTILE[0], "type": "afterany"}]})
    file = tmp_path / "graph.html"
    file.write_text(workflow_html(instance, planned(instance)), encoding="utf-8")
    page = visits.open(file.as_uri(), screen=screen, scheme=scheme)
    assert not is_wider_than_screen(page)
    assert looks_wrong(page) == []
    assert is_hard_to_use(page) == []


def print_dark(page: Page, kind: str) -> None:
    """Print a page from a dark screen: all words are dark on white paper, those of the Gantt chart too, and then it is
    dark again.
    """
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert looks_wrong(page) == []
    if kind == "plan":
        assert page.frame_locator("iframe").locator("html").get_attribute("data-ink") == "#1b2330"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 31)"


@pytest.mark.slow
def test_the_switch_changes_charts_and_frame(visits: Visits, tmp_path: Path) -> None:
    """The dark theme reaches the page, the charts and the Gantt chart in its frame; paper is white again."""
    page = opened(visits, tmp_path, plan_report(*a_plan(("a", "b"))))
    ink = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    light = page.evaluate(ink)
    page.get_by_label("dark").check()
    frame = page.frame_locator("iframe")
    assert frame.locator("html").get_attribute("data-theme") == "dark"
    assert frame.locator("html").get_attribute("data-ink") == "#e6eaf0"
    assert page.evaluate(ink) != light
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(ink) == light
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(ink) != light


@pytest.mark.slow
def test_legends_and_tables_work_by_keys(visits: Visits, tmp_path: Path) -> None:
    """Space on an entry of a legend hides its series, and again shows it; the numbers of a chart open by Enter."""
    page = opened(visits, tmp_path, run_report([a_run(runs_of(*ROWS))]), screen=NARROW)
    place = page.locator("figure").first
    entry = place.locator(".legend button").first
    entry.focus()
    page.keyboard.press("Space")
    assert entry.get_attribute("aria-pressed") == "false"
    assert place.locator(".scatterlayer .trace").count() == 1
    page.keyboard.press("Space")
    assert entry.get_attribute("aria-pressed") == "true"
    assert place.locator(".scatterlayer .trace").count() == 2
    numbers = place.locator("details")
    numbers.locator("summary").focus()
    page.keyboard.press("Enter")
    assert numbers.locator("table").is_visible()
    assert not is_wider_than_screen(page)
