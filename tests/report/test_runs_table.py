"""Simulations side by side in a terminal."""

from __future__ import annotations

from rich.console import Console

from cpsched.metrics import RunsSummary, runs_summary
from cpsched.report import runs_table
from tests.metrics.made_runs import Row, runs_of

#: Waits 0 and 100 s, on 4 cores for 200 s; the second is late by 50 s, and the slowdowns are 1 and 2.
#: The second one is overdue after 40 s, and lost 900 s to a failing node.
FIRST = runs_of(
    Row(0, 0, 100, cores=4, expected_wait=50),
    Row(0, 100, 200, cores=4, expected_wait=50, max_wait=40, first_start=50, lost=900),
)


def shown(summaries: dict[str, RunsSummary]) -> dict[str, list[str]]:
    """Return the cells of each row by its label."""
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(runs_table("a [b]x[/b] \x1b[31m", summaries))
    text = captured.get()
    assert "\x1b" not in text
    assert "a [b]x[/b]" in text
    rows = [[cell.strip() for cell in line.split("│")] for line in text.splitlines() if "│" in line]
    return {row[1]: row[2:-1] for row in rows}


def test_each_simulation_has_a_column() -> None:
    """Figures are those of the summary, in words; those that nobody has are a dash."""
    summary = runs_summary(FIRST, 4, decision_seconds=[0.001, 0.003])
    rows = shown({"easy": summary, "none": runs_summary(runs_of(), 4)})
    for label, cells in {
        "jobs": ["2", "0"],
        "completed": ["2", "0"],
        "wait, mean": ["50 s", "-"],
        "wait, 95 %": ["95 s", "-"],
        "bounded slowdown, mean": ["1.50", "-"],
        "sum of wait / expected wait": ["2.0", "0.0"],
        "jobs that wait longer than expected": ["1", "0"],
        "waited beyond the expected, sum": ["50 s", "0 s"],
        "jobs that wait longer than max_wait": ["1", "0"],
        "jobs that starve": ["0", "0"],
        "lost work": ["1.0 core-h", "0.0 core-h"],
        "utilisation": ["100.0%", "0.0%"],
        "queue, longest": ["1", "0"],
        "makespan": ["3 min 20 s", "0 s"],
        "time of a decision, mean": ["2 ms", "-"],
    }.items():
        assert rows[label] == cells, label
