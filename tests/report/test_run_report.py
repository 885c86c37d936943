"""The report on simulations: its numbers beside the naive computation, and its page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from cpsched.charts import Box, Chart, Heat, Line
from cpsched.errors import ReportError
from cpsched.metrics import Ending, Runs, SimulatedRun
from cpsched.report import run_report
from tests.metrics.made_runs import Row, runs_of
from tests.report.pages import parsed
from tests.report.report_plans import HOSTILE

ROWS = (
    Row(0, 0, 100, cores=4, user="u", queue="a", runtime=100),
    Row(0, 50, 60, cores=4, user="v", queue="a", runtime=10),
    Row(10, 100, 7300, cores=16, user="u", queue="b", runtime=7200, walltime=8000),
    Row(20, ending=Ending.REFUSED, attempts=0),
)


def a_run(runs: Runs, policy: str = "easy", **parts: object) -> SimulatedRun:
    """Return a simulation on 20 cores."""
    made = SimulatedRun(
        workload="w", policy=policy, capacity={"cores": 20}, runs=runs, decision_seconds=np.array([0.5, 0.25])
    )
    return replace(made, **parts)  # type: ignore[arg-type]  # each test names its parts


def chart_of(charts: tuple[Chart, ...], title: str) -> Chart:
    """Return the chart of this title."""
    (found,) = [chart for chart in charts if chart.title == title]
    return found


def many_runs(jobs: int) -> Runs:
    """Return runs of many users, queues and sizes."""
    random = np.random.default_rng(1)
    submit = np.sort(random.integers(0, 10**7, jobs))
    start = submit + random.integers(0, 10**5, jobs)
    rows = [
        Row(int(s), int(t), int(t) + k % 9000 + 1, cores=k % 999 + 1, user=f"user-{k % 200}", queue=f"queue-{k % 40}")
        for k, (s, t) in enumerate(zip(submit, start, strict=True))
    ]
    return runs_of(*rows)


def test_waits_and_slowdowns_are_those_of_the_jobs() -> None:
    """Waits of 0 s, 50 s and 90 s; bounded slowdowns of 1, 6 and (90 + 7200) / 7200."""
    charts = run_report([a_run(runs_of(*ROWS))]).charts
    boxes = chart_of(charts, "Waits by queue")
    found = {boxes.y.names[int(one.at)]: (one.count, one.mean) for one in boxes.layers if isinstance(one, Box)}
    assert found == {"a": (2, 25), "b": (1, 90)}
    by_user = chart_of(charts, "Bounded slowdowns by user")
    means = {by_user.y.names[int(one.at)]: one.mean for one in by_user.layers if isinstance(one, Box)}
    assert means == pytest.approx({"u": (1 + 7290 / 7200) / 2, "v": 6})
    assert chart_of(charts, "Waits by size").y.names == ("2–8 cores", "9–64 cores")  # noqa: RUF001


def test_the_machine_over_time() -> None:
    """Cores in use and jobs in the queue, as they change."""
    charts = run_report([a_run(runs_of(*ROWS))]).charts
    use = chart_of(charts, "Cores in use over time").layers[0]
    assert isinstance(use, Line)
    assert dict(zip(use.x, use.y, strict=True)) == {0: 0.2, 50: 0.4, 60: 0.2, 100: 0.8, 7300: 0.8}
    queue = chart_of(charts, "Jobs that wait, over time").layers[0]
    assert isinstance(queue, Line)
    assert dict(zip(queue.x, queue.y, strict=True)) == {0: 1, 10: 2, 50: 1, 60: 1, 100: 0, 7300: 0}


def test_classes_of_jobs_are_cells() -> None:
    """A cell for each class of run time and nodes: the median wait, and the mean bounded slowdown."""
    charts = run_report([a_run(runs_of(*ROWS))]).charts
    waits, slowdowns = (
        chart_of(charts, f"{title} by run time and nodes") for title in ("Median wait", "Mean bounded slowdown")
    )
    assert (waits.y.names, waits.x.names) == (("≤ 1 min", "≤ 10 min", "≤ 1 h", "≤ 4 h"), ("1 node",))
    found = [layer.values for chart in (waits, slowdowns) for layer in chart.layers if isinstance(layer, Heat)]
    assert found == [((50,), (0,), (None,), (90,)), ((6,), (1,), (None,), (7290 / 7200,))]


def test_who_leaves_a_job_waiting_has_not_the_least_wait() -> None:
    """A policy that does not start the job that waits longest has less mean wait, and is told as behind."""
    fewer = [row if row.submit != 10 else Row(10, cores=16, ending=Ending.WAITING, attempts=0) for row in ROWS]
    report = run_report([a_run(runs_of(*fewer), policy="leaves"), a_run(runs_of(*ROWS))])
    assert "the least mean wait is that of easy" in report.sentences[0]
    assert "leaves leaves more jobs unfinished" in report.sentences[0]


def test_policies_are_compared_on_the_same_jobs() -> None:
    """The figures of each are columns, and cells of a class are ratios to the first one."""
    slower = [
        row if row.ending is Ending.REFUSED else row._replace(start=row.start + 600, end=row.end + 600) for row in ROWS
    ]
    report = run_report([a_run(runs_of(*ROWS)), a_run(runs_of(*slower), policy="slow")])
    assert "the least mean wait is that of easy" in report.sentences[0]
    ratios = chart_of(report.charts, "Mean bounded slowdown of slow / that of easy")
    (heat,) = ratios.layers
    assert isinstance(heat, Heat)
    assert heat.values == ((66 / 6,), (7,), (None,), (pytest.approx(7890 / 7290),))
    page = parsed(report)
    assert page.tables[0][0] == ["figure", "easy", "slow"]
    assert ["wait, longest", "1 min 30 s", "11 min 30 s"] in page.tables[0]


def test_what_cannot_be_shown_is_refused() -> None:
    """No simulation, one without jobs, and those of different workloads."""
    run = a_run(runs_of(*ROWS))
    for runs, said in (
        ([], "got none"),
        ([a_run(runs_of())], "without any"),
        ([run, replace(run, workload="x")], "one workload, got 'w', 'x'"),
    ):
        with pytest.raises(ReportError, match=said):
            run_report(runs)


def test_a_simulation_in_which_no_job_has_run() -> None:
    """No empty panels: the machine over time is all that there is."""
    run = a_run(runs_of(Row(5, ending=Ending.WAITING, attempts=0)), decision_seconds=np.empty(0))
    report = run_report([run])
    assert [section.title for section in report.sections] == ["The machine over time"]
    parsed(report)


def test_a_calendar_is_followed() -> None:
    """With an epoch times are dates by the site's clocks."""
    run = a_run(runs_of(*ROWS), epoch=datetime(2014, 3, 31, 18, tzinfo=UTC), time_zone="Europe/Berlin")
    rows = chart_of(run_report([run]).charts, "Jobs that wait, over time").tables[0].rows
    assert rows[0] == ("2014-03-31 20:00", "1")


def test_hostile_names_are_text() -> None:
    """Neither policies nor users, queues or resources become elements."""
    rows = [row._replace(user=HOSTILE[k], queue=HOSTILE[k + 1]) for k, row in enumerate(ROWS)]
    page = parsed(run_report([a_run(runs_of(*rows), policy=name, workload=HOSTILE[0]) for name in HOSTILE]))
    assert "img" not in page.tags
    assert page.tags.count("script") == 3


def test_a_large_simulation_is_a_page_below_8_mb() -> None:
    """30,000 jobs: curves have few points, and small queues and users are one group."""
    report = run_report([a_run(many_runs(30_000))])
    assert len(parsed(report).source.encode()) < 8_000_000
    assert len(chart_of(report.charts, "Waits by user").y.names) == 16
    assert chart_of(report.charts, "Waits by queue").y.names[-1] == "31 other queues"


def test_the_page_says_which_rule_a_choice_used() -> None:
    """What the simulation says of its rules stands with its figures, and harms no page."""
    report = run_report([a_run(runs_of(*ROWS), remarks=("smith from day 0.0 on", HOSTILE))])
    assert "smith from day 0.0 on. " in report.sentences[0]
    parsed(report)
