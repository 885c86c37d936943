"""Tables and the chart in a terminal: right, and safe against names that steer it."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from cpsched.domain import AimScore, FrozenMap, Incumbent, Instance, MaxWait, Plan, PromisedStart, Queue
from cpsched.report import history_table, moment, plan_table, reservation_table, summary_table, terminal_gantt
from tests.report.report_plans import HOSTILE, a_plan


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
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def all_reports(instance: Instance, plan: Plan) -> list[RenderableType]:
    """Make everything that goes to a terminal."""
    return [
        plan_table(instance, plan),
        reservation_table(instance, plan),
        summary_table(instance, plan),
        history_table(plan),
        terminal_gantt(instance, plan, width=100),
    ]


def test_names_cannot_steer_the_terminal() -> None:
    """No control character of a name arrives, and what looks like rich markup is printed as it stands."""
    for item in all_reports(*a_plan(HOSTILE)):
        text = printed(item, width=400)
        assert not {char for char in text if ord(char) < 32 and char != "\n"}
        assert "\u202e" not in text
        assert "\x1b]0" not in printed(item, colour=True, width=400)
    assert "[red]markup[/red]" in printed(plan_table(*a_plan(HOSTILE)), width=400)


def test_plan_table_rows() -> None:
    """Jobs come by start with times of the calendar, wait and folded nodes; the waiting room stands last (OCCS-47)."""
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
    """Value, bound, the gap without what was suffered, counts and utilisation stand in the summary."""
    text = printed(summary_table(*a_plan(("a", "b"))))
    for figure in ("41.27", "40.02", "4.34%", "30 min", "12.1%", "9.70 s of 10 s"):  # 1.25/28.77 = 4.34 %
        assert figure in text


def test_the_proof_stands_behind_the_gap() -> None:
    """How the bound was proven is told where there is a bound, and only there."""
    instance, plan = a_plan(("a", "b"))
    proven = replace(plan, objective=replace(plan.objective, proof="Smith's rule"))
    rows = [row.split("│")[1].strip() for row in printed(summary_table(instance, proven)).splitlines() if "│" in row]
    assert rows[rows.index("gap") + 1] == "proof"
    assert "Smith's rule" in printed(summary_table(instance, proven))
    bare = replace(plan, objective=replace(plan.objective, proof=None))
    assert "proof" not in printed(summary_table(instance, bare))


def test_a_later_aim_has_a_bound_and_no_gap() -> None:
    """What was suffered of a later aim is not known, and a gap with it would look small."""
    instance, plan = a_plan(("a", "b"))
    later = (AimScore(name="wait", value=500.0, bound=480.0, gap=0.04), AimScore(name="makespan", value=300.0))
    text = printed(summary_table(instance, replace(plan, objective=replace(plan.objective, then=later))))
    assert "480" in text
    assert "4.00%" not in text


def test_many_words_do_not_widen_the_figures() -> None:
    """A figure in many words is below the others, whose table is as wide as without it."""
    instance, plan = a_plan(("a", "b"))
    wide = replace(plan, objective=replace(plan.objective, proof=100 * "p"))
    short, long = (printed(summary_table(instance, one), width=300).splitlines() for one in (plan, wide))
    assert [row for row in long if "makespan" in row] == [row for row in short if "makespan" in row]
    assert sum("p" * 100 in row for row in long) == 1


@pytest.mark.parametrize(("value", "saved"), [(14.0, "75.0%"), (11.0, "100.0%"), (6.0, None)])
def test_no_more_is_saved_than_could_be_avoided(value: float, saved: str | None) -> None:
    """Of 15, 11 was suffered: a value of 6, as a stretched slowdown can have, has no share of the rest."""
    instance, plan = a_plan(("a", "b"))
    score = replace(plan.objective, planner=23.0 if value == 14 else 15.0, suffered=11.0, value=value)
    text = printed(summary_table(instance, replace(plan, objective=score)))
    assert ("avoidable cost saved" in text) == (saved is not None)
    assert saved is None or saved in text


def test_limits_of_waiting_in_the_summary() -> None:
    """Job b waits for 660 s: 60 s beyond what its queue allows, 10 s beyond what its user was told; a runs."""
    instance, plan = a_plan(("a", "b"))
    assert "max_wait" not in printed(summary_table(instance, plan))
    assert "postponed" not in printed(summary_table(instance, plan))
    max_wait = MaxWait(seconds=600)
    queues = FrozenMap({name: replace(queue, max_wait=max_wait) for name, queue in instance.queues.items()})
    jobs = (instance.jobs[0], replace(instance.jobs[1], told=PromisedStart(start=590)), instance.jobs[2])
    limited = replace(instance, queues=queues, jobs=jobs)
    figures = [
        [cell.strip() for cell in row.split("│")[1:3]]
        for row in printed(summary_table(limited, plan)).splitlines()
        if "│" in row
    ]
    assert ["beyond max_wait", "1 of 1, 1 min in all, at most 1 min"] in figures
    assert ["promised starts missed", "1 of 1, 10 s in all, at most 10 s, price 0.01"] in figures
    patient = replace(limited, queues=FrozenMap({"b": Queue(expected_wait=1800, max_wait=MaxWait(seconds=660))}))
    assert "0 of 1 " in printed(summary_table(replace(patient, jobs=jobs), plan))


def test_history() -> None:
    """The finder and time of each plan, and other events, in the order of time."""
    _, plan = a_plan(("a", "b"))
    lines = printed(history_table(plan)).splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert cells == [
        ["0.50 s", "52.90", "a"], ["2.00 s", "45.00", "b"], ["9.12 s", "41.27", "a"], ["1.25 s", "a", "b"]
    ]  # fmt: skip
    assert printed(history_table(replace(plan, incumbents=(), events=()))) == ""


def test_history_of_more_jobs() -> None:
    """Where one plan has more jobs than another, the numbers tell why a larger value is better."""
    _, plan = a_plan(("a", "b"))
    found = [Incumbent(at=1, value=10, by="a", planned=2), Incumbent(at=2, value=20, by="b", planned=3)]
    lines = printed(history_table(replace(plan, incumbents=tuple(found), events=()))).splitlines()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert cells == [["1.00 s", "10.00", "a", "2"], ["2.00 s", "20.00", "b", "3"]]
    alike = printed(history_table(replace(plan, incumbents=(found[0], replace(found[0], at=2)))))
    assert "jobs" not in alike


@pytest.mark.parametrize(("count", "left_out"), [(20, ""), (21, "1 more"), (1500, "1,480 more")])
def test_many_incumbents(count: int, left_out: str) -> None:
    """The first one and the last 19 are listed, and how many are not."""
    _, plan = a_plan(("a", "b"))
    found = tuple(Incumbent(at=n, value=5000 - n, by="x") for n in range(count))
    text = printed(history_table(replace(plan, incumbents=found, events=())))
    assert text.count("│ x ") == 20
    assert "0.00 s" in text
    assert f"{5000 - count + 1:,}.00" in text
    assert ("more" in text) == bool(left_out)
    assert left_out in text


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


def test_dates_are_those_of_the_site_s_time_zone() -> None:
    """The epoch is in UTC; in Berlin summer has begun the day before, and ends in October."""
    instance = replace(a_plan(("a",))[0], time_zone="Europe/Berlin")
    assert moment(instance, 0) == "2014-03-31 20:00:00"
    assert moment(instance, 220 * 86_400) == "2014-11-06 19:00:00"
