"""Tables and the chart in a terminal: right, and safe against names that steer it."""

from __future__ import annotations

import io

import pytest
from report_plans import HOSTILE, a_plan
from rich.console import Console, RenderableType

from cpsched.domain import Instance, Plan
from cpsched.report import plan_table, summary_table, terminal_gantt


def printed(item: RenderableType, *, colour: bool = False, width: int = 200) -> str:
    """Print to a text, as to a pipe or as to a terminal of 256 colours."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="256" if colour else None,
        legacy_windows=False,
    )
    console.print(item)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def all_reports(instance: Instance, plan: Plan) -> list[RenderableType]:
    """Make everything that goes to a terminal."""
    return [plan_table(instance, plan), summary_table(instance, plan), terminal_gantt(instance, plan, width=100)]


def test_names_cannot_steer_the_terminal() -> None:
    """No control character of a name arrives, and what looks like rich markup is printed as it stands."""
    for item in all_reports(*a_plan(HOSTILE)):
        text = printed(item, width=400)
        assert not {char for char in text if ord(char) < 32 and char != "\n"}
        assert "\u202e" not in text
        assert "\x1b]0" not in printed(item, colour=True, width=400)
    assert "[red]markup[/red]" in printed(plan_table(*a_plan(HOSTILE)), width=400)


def test_plan_table_rows() -> None:
    """Jobs come by start with times of the calendar, wait and folded nodes; the waiting room stands last."""
    rows = printed(plan_table(*a_plan(("a", "b")))).splitlines()
    cells = [[cell.strip() for cell in row.split("│")[1:-1]] for row in rows if row.startswith("│")]
    assert cells == [
        ["a", "a", "a", "2014-03-31 17:59:00", "2014-03-31 18:19:00", "0 s", "a0,b1", "running"],
        ["b", "b", "b", "2014-03-31 18:10:00", "2014-03-31 18:30:00", "11 min", "b1", "planned"],
        ["w", "a", "", "", "", "", "", "unsatisfiable: b"],
    ]


def test_times_without_calendar_are_relative_to_now() -> None:
    """Without an epoch a start reads as a distance from now."""
    text = printed(plan_table(*a_plan(("a", "b"), epoch=False)))
    assert "now - 1 min" in text
    assert "now + 10 min" in text


def test_summary_figures() -> None:
    """Value, bound, both gaps, counts and utilisation stand in the summary."""
    text = printed(summary_table(*a_plan(("a", "b"))))
    for figure in ("41.27", "40.02", "3.03%", "4.34%", "30 min", "12.1%", "9.70 s of 10 s"):  # 1.25/28.77 = 4.34 %
        assert figure in text


def test_chart_without_colour_is_ascii() -> None:
    """In a pipe the chart is letters: small ones below half, capitals from half on, dots where a node is idle."""
    lines = printed(terminal_gantt(*a_plan(("a", "b")), width=63)).splitlines()
    assert all(line.isascii() for line in lines)
    # 60 columns of 30 s: a until 1140 s = 38 columns, b on b1 from 600 s to 1800 s.
    assert lines[1] == "a0 " + "a" * 38 + "." * 22
    assert lines[2] == "b1 " + "a" * 20 + "A" * 18 + "b" * 22
    assert lines[3] == "a2 " + "." * 60
    assert lines[-1].split() == ["A", "a", "B", "b", "C", "(no", "queue)"]


def test_chart_with_colour_has_blocks() -> None:
    """On a terminal the height of a block tells how full a node is: four cores of sixteen are two eighths."""
    text = printed(terminal_gantt(*a_plan(("a", "b")), width=63), colour=True)
    assert "▂" in text
    assert "\x1b[38;5;" in text


def test_many_nodes_share_rows() -> None:
    """5,000 nodes take at most 48 rows, and no line is wider than asked for."""
    lines = printed(terminal_gantt(*a_plan(("a", "b"), nodes=5000), width=80), width=80).splitlines()
    assert len(lines) <= 1 + 48 + 1
    assert max(map(len, lines)) <= 80
    assert lines[1].lstrip().startswith("a0 +104 a")


def test_a_chart_needs_some_width() -> None:
    """A width that leaves no room for the chart is a mistake."""
    with pytest.raises(ValueError, match="at least 40 columns, got 20"):
        terminal_gantt(*a_plan(("a", "b")), width=20)
