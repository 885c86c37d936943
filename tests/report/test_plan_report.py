"""The report on a plan: its figures beside the naive computation, its page, and hostile names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.charts import Bars, Chart, Line
from cpsched.domain import Plan
from cpsched.report import plan_report
from cpsched.text import printable
from tests.report.pages import parsed
from tests.report.report_plans import HOSTILE, a_plan


def moved(plan: Plan, seconds: dict[str, int]) -> Plan:
    """Return a plan in which some jobs start later."""
    jobs = []
    for job in plan.jobs:
        by = seconds.get(job.id, 0)
        segments = tuple(replace(one, start=one.start + by, end=one.end + by) for one in job.segments)
        jobs.append(replace(job, start=job.start + by, end=job.end + by, segments=segments))
    return replace(plan, jobs=tuple(jobs))


def chart_of(charts: tuple[Chart, ...], words: str) -> Chart:
    """Return the chart with these words in its title."""
    (found,) = [chart for chart in charts if words in chart.title]
    return found


def test_use_is_that_of_the_jobs() -> None:
    """Two nodes of four cores until 1140 of 64 cores, a third from 600 to 1800."""
    lines = [one for one in chart_of(plan_report(*a_plan(("a", "b"))).charts, "Use").layers if isinstance(one, Line)]
    cores = lines[0]
    assert [time - cores.x[0] for time in cores.x] == [0, 600, 1140, 1800]
    assert cores.y == (8 / 64, 12 / 64, 4 / 64, 4 / 64)
    assert [line.name for line in lines] == ["cores", "mem", "abaqus"]


def test_value_and_bound_are_drawn() -> None:
    """The best plan steps down to its value, points name the finders, and the bound is a line below."""
    best, *points, bound = chart_of(plan_report(*a_plan(("a", "b"))).charts, "Value").layers
    assert isinstance(best, Line)
    assert (best.x, best.y) == ((0.5, 2, 9.125, 9.7), (52.9, 45, 41.27, 41.27))
    assert [(one.name, one.y) for one in points if isinstance(one, Line)] == [
        ("found by a", (52.9, 41.27)),
        ("found by b", (45,)),
    ]
    assert isinstance(bound, Line)
    assert (bound.x, bound.y) == ((0, 9.7), (40.02, 40.02))


def test_the_waiting_room_has_its_reasons() -> None:
    """Each reason is counted and explained, and each job is in the table."""
    page = parsed(plan_report(*a_plan(("a", "b"))))
    assert ["unsatisfiable", "1", "asks for what the machine does not have"] in [row for t in page.tables for row in t]
    assert ["w", "a", "(no queue)", "unsatisfiable", "b"] in [row for t in page.tables for row in t]


@pytest.mark.parametrize(
    ("by", "name"),
    [
        (1, "up to 1 min later"),
        (60, "up to 1 min later"),
        (61, "1 min to 10 min later"),
        (-60, "up to 1 min earlier"),
        (-3601, "1 h to 6 h earlier"),
        (10**6, "more than 1 d later"),
        (0, "unchanged"),
    ],
)
def test_moves_are_counted_by_their_size(by: int, name: str) -> None:
    """A start that moved by some seconds is in the class of that move, and no other one."""
    instance, before = a_plan(("a", "b", "c"))
    before = moved(before, {"b": 10**7, "c": 10**7})
    after = moved(before, {"b": by})
    chart = chart_of(plan_report(instance, after, before).charts, "moved")
    (bars,) = chart.layers
    assert isinstance(bars, Bars)
    counts = {text: int(count) for text, count in zip(chart.y.names, bars.values, strict=True) if count}
    assert counts == ({name: 2} if by == 0 else {"unchanged": 1, name: 1})


def test_what_changed_is_told() -> None:
    """Jobs that moved are named with both starts; new ones, gone ones and those that lost their start are counted."""
    instance, before = a_plan(("a", "b", "c"))
    after = moved(before, {"c": 7200})
    page = parsed(plan_report(instance, replace(after, jobs=(after.jobs[0], after.jobs[2])), before))
    rows = [row for table in page.tables for row in table]
    assert ["planned to start later", "1"] in rows
    assert ["gone", "1"] in rows
    assert ["c", "c", "2 h later", "2014-03-31 18:20:00", "2014-03-31 20:20:00"] in rows
    assert any("not comparable" in text for text in page.texts)


def test_a_report_without_search_and_jobs() -> None:
    """An empty plan has no empty panels."""
    instance, plan = a_plan(("a",), epoch=False)
    empty = replace(plan, jobs=(), waiting_room=(), reservations=(), incumbents=(), events=())
    report = plan_report(instance, empty)
    assert [section.title for section in report.sections] == ["Gantt chart", "Use of the machine"]
    parsed(report)


def test_hostile_names_are_text() -> None:
    """No name becomes an element, in the page or in the frame of the Gantt chart; each is shown as it may be drawn."""
    instance, plan = a_plan(HOSTILE)
    page = parsed(plan_report(instance, plan, moved(plan, {HOSTILE[1]: 9})))
    assert "img" not in page.tags
    assert page.tags.count("script") == 3
    cells = {cell for table in page.tables for row in table for cell in row}
    assert {printable(HOSTILE[0]), printable(HOSTILE[-1])} <= cells
    (frame,) = [found["srcdoc"] for found in page.attributes if "srcdoc" in found]
    assert frame is not None
    assert "<img" not in frame
    assert frame.count("<script") == 2


@pytest.mark.slow
def test_a_large_plan_is_a_page_below_8_mb() -> None:
    """10,000 jobs on 1,000 nodes: their bars are in the Gantt chart, all else is counted and binned."""
    report = plan_report(*a_plan(tuple(f"{k}" for k in range(10_000)), nodes=1000))
    assert len(parsed(report).source.encode()) < 8_000_000
