"""The Gantt chart's page in a browser: what it shows, and what pointer, wheel, finger and keys do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from cpsched.domain import FrozenMap, Incumbent, Instance, Plan
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.report import gantt_html
from cpsched.verify import verify
from tests.browser.driving import (
    NARROW,
    SCREENS,
    WIDE,
    Visits,
    is_hard_to_use,
    is_wider_than_screen,
    looks_wrong,
    report_of,
    swipe,
)
from tests.browser.wide_plan import wide_plan
from tests.report.report_plans import HOSTILE, a_plan
from tests.report.test_changing_jobs import changing

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Charts:
    """Writes plans as pages and opens them. Mutable."""

    def __init__(self, folder: Path, visits: Visits) -> None:
        self._file = folder / "plan.html"
        self.visits = visits

    def open(
        self,
        instance: Instance,
        plan: Plan,
        fragment: str = "",
        *,
        screen: tuple[int, int] = SCREENS[0][0],
        scheme: str = "light",
    ) -> Page:
        """Open the chart of a plan, which must have been drawn without an error."""
        self._file.write_text(gantt_html(instance, plan), encoding="utf-8")
        page = self.visits.open(self._file.as_uri() + fragment, screen=screen, scheme=scheme)
        assert (report_of(page)["ready"], report_of(page)["errors"]) == ("yes", "0")
        return page


@pytest.fixture
def charts(tmp_path: Path, visits: Visits) -> Charts:
    """Open plans as pages."""
    return Charts(tmp_path, visits)


def numbered(jobs: int, *, nodes: int = 8) -> tuple[Instance, Plan]:
    """Make a plan of jobs ``job-0``, ``job-1`` and so on; job k runs from k * 600 s on."""
    return a_plan(tuple(f"job-{k}" for k in range(jobs)), nodes=nodes, epoch=False)


def drawn(page: Page) -> int:
    """Wait for the next drawing and return how many jobs it shows."""
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    return int(report_of(page)["drawn"])


def test_the_wide_plan_is_valid() -> None:
    """The plan that costs no solving keeps all rules."""
    instance, plan = wide_plan(nodes=40, jobs=300)
    assert verify(instance_to_document(instance), plan_to_document(plan)) == ()


@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_it_opens_on_every_screen(charts: Charts, screen: tuple[int, int], scheme: str) -> None:
    """The chart is painted in the queues' colours, its time has ticks, and nothing is wider than the screen."""
    page = charts.open(*numbered(8), screen=screen, scheme=scheme)
    said = report_of(page)
    assert said["jobs"] == said["drawn"] == "8"
    assert int(said["ticks"]) >= 3
    assert not is_wider_than_screen(page)
    colours = page.evaluate(
        """() => {
          const plot = document.getElementById("plot"), { width, height } = plot;
          const pixels = plot.getContext("2d").getImageData(0, 0, width, height).data, counts = {};
          for (let i = 0; i < pixels.length; i += 4) {
            const colour = pixels.slice(i, i + 3).join();
            counts[colour] = (counts[colour] ?? 0) + 1;
          }
          return counts;
        }"""
    )
    blue, red = "68,119,170", "238,102,119"
    assert min(colours.get(blue, 0), colours.get(red, 0)) > 100
    assert report_of(page)["ink"] == ("#e6eaf0" if scheme == "dark" else "#1b2330")
    assert looks_wrong(page) == []
    assert is_hard_to_use(page) == []


@pytest.mark.parametrize(("screen", "scheme"), [SCREENS[0], SCREENS[-1]])
def test_hostile_names_are_text(charts: Charts, screen: tuple[int, int], scheme: str) -> None:
    """Nothing of the names becomes an element or a script; a link selects such a job, and it is found by its name."""
    page = charts.open(*a_plan(HOSTILE), "#job=" + quote(HOSTILE[1]), screen=screen, scheme=scheme)
    assert report_of(page)["drawn"] == "5"
    assert report_of(page)["selected"] == HOSTILE[1]
    assert page.locator("#chosen").inner_text() == f"Job {HOSTILE[1]}"
    assert page.locator("h1").inner_text() == HOSTILE[0]
    details = page.locator("#details").inner_text()
    assert "2014-03-31 18:10:00" in details
    assert "1 x (cores=4, mem=2048, </script>" in details  # no name for the chunk syntax
    assert "unsatisfiable" in page.locator("#room").inner_text()
    page.locator("#query").fill(HOSTILE[0])
    assert page.locator("#matches").inner_text() == "1 job"
    page.locator("#query").press("Enter")
    assert page.locator("#chosen").inner_text() == f"Job {HOSTILE[0]}"
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0
    assert "owned" not in page.evaluate("document.title.replace(/owned'/g, '')")
    assert not is_wider_than_screen(page)


def test_search_and_selection(charts: Charts) -> None:
    """The search counts matches, Enter selects one after the other, and the address has the job for a link."""
    page = charts.open(*numbered(30))
    page.get_by_role("searchbox").fill("B-2")
    assert page.locator("#matches").inner_text() == "11 jobs"  # job-2 and job-20 to job-29
    page.keyboard.press("Enter")
    assert page.locator("#chosen").inner_text() == "Job job-2"
    assert "wait\n21 min" in page.locator("#details").inner_text()  # from -60 s to 1200 s
    page.keyboard.press("Enter")
    assert page.locator("#chosen").inner_text() == "Job job-20"
    assert page.url.endswith("#job=job-20")
    page.get_by_role("button", name="Close the details").click()
    assert page.locator("#panel").is_hidden()
    assert "#" not in page.url


def test_pointer_and_wheel(charts: Charts) -> None:
    """Hovering shows a job, a node, and the use at that time; the wheel zooms there, a double click shows all again."""
    page = charts.open(*numbered(30))
    box = page.locator("#plot").bounding_box()
    assert box is not None
    x, y = box["x"] + 198, box["y"] + 30
    page.mouse.move(x, y)
    tip = page.locator("#tip").inner_text()
    assert tip.startswith("Job job-0\n")
    assert "on job-00\ncores 4, mem 2 GiB" in tip
    page.mouse.move(box["x"] + 60, y)
    assert page.locator("#tip").inner_text().startswith("job-00\n")
    page.mouse.move(x, y)
    for _ in range(12):
        page.mouse.wheel(0, -60)
    assert 0 < drawn(page) < 10
    page.mouse.click(x, y)
    assert page.locator("#chosen").inner_text() == "Job job-0"
    page.mouse.dblclick(x, y)
    assert drawn(page) == 30
    page.mouse.move(5, 5)
    assert page.locator("#tip").is_hidden()


@pytest.mark.parametrize("screen", [WIDE, NARROW])
def test_groups_of_nodes_are_neighbours_and_fold(charts: Charts, screen: tuple[int, int]) -> None:
    """Nodes stand by switch, which a column names; a click on it, or a key on its button, folds it to one row."""
    instance, plan = numbered(4, nodes=8)
    names = instance.cluster.node_names
    switches = {"one": names[0::2], "two": names[1::2]}
    cluster = replace(instance.cluster, topology=FrozenMap({"switch": FrozenMap(switches)}))
    page = charts.open(replace(instance, cluster=cluster), plan, screen=screen)
    tip = page.locator("#tip")

    def told(row: float) -> str:
        """Return the page's words on the row that is there, as a part of the height of all."""
        assert drawn(page) == 4
        box = page.locator("#plot").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 40, box["y"] + 26 + row * (box["height"] - 26))
        return tip.inner_text()

    assert told(0.9).startswith(f"{names[7]}\n")
    assert "switch\ntwo" in tip.inner_text()
    page.locator("#plot").click(position={"x": 8, "y": 250})
    assert told(0.7).startswith(f"{names[6]}\n")  # four rows and one
    assert told(0.95).startswith("two\n")
    assert " of 4" in tip.inner_text()
    page.get_by_text("Fold groups of nodes").focus()
    page.keyboard.press("Enter")
    every, one, two = page.locator("#folders button").all()
    assert [button.get_attribute("aria-expanded") for button in (every, one, two)] == ["true", "true", "false"]
    assert is_hard_to_use(page) == looks_wrong(page) == []
    assert not is_wider_than_screen(page)
    every.press("Enter")
    assert (told(0.25)[:4], told(0.75)[:4]) == ("one\n", "two\n")
    every.press("Space")
    assert told(0.9).startswith(f"{names[7]}\n")
    assert [button.get_attribute("aria-expanded") for button in (every, one, two)] == ["true"] * 3


def test_dragging_moves_the_chart(charts: Charts) -> None:
    """A drag of a zoomed chart shows other jobs and selects none."""
    page = charts.open(*numbered(30))
    for _ in range(4):
        page.get_by_role("button", name="time +").click()
    before = drawn(page)
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 1300, box["y"] + 60, steps=4)
    page.mouse.up()
    assert drawn(page) != before
    assert page.locator("#panel").is_hidden()


def test_keys(charts: Charts) -> None:
    """The chart is reached by Tab, and moved, zoomed and left by keys alone."""
    page = charts.open(*numbered(30, nodes=500), "#job=job-7")
    plot = page.locator("#plot")
    for _ in range(20):
        page.keyboard.press("Tab")
        if plot.evaluate("(canvas) => canvas === document.activeElement"):
            break
    assert plot.evaluate("(canvas) => canvas === document.activeElement")
    assert report_of(page)["view"] == "density"
    for _ in range(6):
        page.keyboard.press("]")
    assert drawn(page) == 0  # in the middle, where no job is
    assert report_of(page)["view"] == "rows"
    for _ in range(40):
        page.keyboard.press("ArrowUp")
    at_top = drawn(page)
    assert at_top > 0
    for _ in range(4):
        page.keyboard.press("+")
    assert drawn(page) < at_top
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert drawn(page) < at_top
    page.keyboard.press("0")
    assert drawn(page) == 30
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()


def test_a_finger_scrolls_the_page(charts: Charts) -> None:
    """On a phone the page scrolls where the chart is touched, and the details of a job are below the chart."""
    page = charts.open(*numbered(8), "#job=job-2", screen=NARROW)
    box, panel = page.locator("#plot").bounding_box(), page.locator("#panel").bounding_box()
    below = page.locator("#charts").bounding_box()
    assert box is not None
    assert panel is not None
    assert below is not None
    assert panel["y"] >= below["y"] + below["height"]
    page.evaluate("scrollTo(0, 0)")
    swipe(page, 200, page.locator("#plot").bounding_box()["y"] + 60, -300)  # type: ignore[index]  # it is on the screen
    assert page.evaluate("scrollY") > 100
    assert not is_wider_than_screen(page)


@pytest.mark.slow
def test_a_large_machine(charts: Charts) -> None:
    """The chart of 10,000 jobs on 5,000 nodes shows all, is searched, zoomed to single nodes, and moved."""
    page = charts.open(*wide_plan())
    said = report_of(page)
    assert (said["view"], said["jobs"], said["drawn"]) == ("density", "10000", "10000")
    page.get_by_role("searchbox").fill("105000")
    assert page.locator("#matches").inner_text() == "1 job"
    page.keyboard.press("Enter")
    assert page.locator("#chosen").inner_text() == "Job 105000"
    for _ in range(14):
        page.get_by_role("button", name="nodes +").click()
    few = drawn(page)
    assert report_of(page)["view"] == "rows"
    assert 0 < few < 1000
    page.locator("#plot").focus()
    page.keyboard.press("ArrowDown")
    assert drawn(page) != few


@pytest.mark.parametrize("bound", [None, 40.02, -5.0, 41.27])
def test_incumbents(charts: Charts, bound: float | None) -> None:
    """All incumbents are drawn with or without a bound, told in a table, and to readers who cannot see the drawing."""
    instance, plan = a_plan(HOSTILE)
    page = charts.open(instance, replace(plan, objective=replace(plan.objective, bound=bound)))
    assert report_of(page)["found"] == "3"
    assert f"0.50 s\t52.90\t{HOSTILE[0]}\n2.00 s\t45.00" in page.locator("#history").inner_text()
    assert page.locator("#finders").inner_text().startswith(HOSTILE[0])
    assert f"1.25 s\t{HOSTILE[0]}" in page.locator("#events").inner_text()
    assert page.locator("img").count() == 0


def test_one_incumbent_at_once(charts: Charts) -> None:
    """A single plan of value 0, found in no time, is a dot; a plan without any has no such section."""
    instance, plan = a_plan(("a", "b"))
    nothing = replace(plan.objective, value=0, bound=None, planner=0)
    engine = replace(plan.engine, elapsed=0)
    alone = replace(plan, objective=nothing, engine=engine, incumbents=(Incumbent(at=0, value=0, by="a"),))
    assert report_of(charts.open(instance, alone))["found"] == "1"
    page = charts.open(instance, replace(alone, incumbents=(), events=()))
    assert "found" not in report_of(page)
    assert page.locator("#history").is_hidden()


def test_the_policy_refuses_other_scripts(charts: Charts, tmp_path: Path) -> None:
    """A script that got into the page by whatever flaw does not run; the console says why."""
    html = gantt_html(*a_plan(("a", "b")))
    script = "<script>document.documentElement.dataset.owned = 'yes'</script><p onclick='alert(1)' id='trap'>x</p>"
    file = tmp_path / "owned.html"
    file.write_text(html.replace("</body>", f"{script}</body>"), encoding="utf-8")
    page = charts.visits.open(file.as_uri())
    assert report_of(page)["ready"] == "yes"
    page.locator("#trap").click()
    assert "owned" not in report_of(page)
    assert len(charts.visits.faults) >= 2
    assert all("Content Security Policy" in fault for fault in charts.visits.faults)
    charts.visits.faults.clear()


def test_paper_is_white(charts: Charts) -> None:
    """From a dark screen the chart is printed in dark ink, and afterwards it is as it was."""
    page = charts.open(*a_plan(("a", "b")), scheme="dark")
    inks = page.evaluate(
        """["", "beforeprint", "afterprint"].map((name) => {
          if (name) dispatchEvent(new Event(name));
          return document.documentElement.dataset.ink;
        })"""
    )
    assert inks == ["#e6eaf0", "#1b2330", "#e6eaf0"]


def test_jobs_that_fill_several_thin_rows_have_their_names(charts: Charts) -> None:
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
    said = report_of(charts.open(instance, replace(plan, jobs=(wide, *plan.jobs[1:]))))
    assert (said["view"], said["named"]) == ("rows", "1")


def test_changing_jobs(charts: Charts) -> None:
    """All are drawn, the legend explains the lighter ones, the pointer tells share and changes; names stay text."""
    page = charts.open(*changing(), "#job=e")
    assert report_of(page)["drawn"] == "4"
    assert "3 steps, held 1 min 30 s longer" in page.locator("#details").inner_text()
    assert "on a share of its cores" in page.locator("#legend").inner_text()
    box = page.locator("#plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 0.8 * box["height"])
    tip = page.locator("#tip").inner_text()
    assert tip.startswith("Job m\n")
    assert "here\n50 %" in tip
    assert charts.open(*changing(HOSTILE[0])).locator("img").count() == 0
