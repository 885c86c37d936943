"""What happened, as rows of a log."""

from __future__ import annotations

from dataclasses import replace

from cpsched.metrics import Ending, log_rows
from tests.metrics.made_runs import Row, runs_of

#: In document order, which is not that of submission.
RUNS = runs_of(
    Row(110, 125, 225, cores=4, walltime=100, ending=Ending.KILLED),
    Row(100, 105, 125, cores=32, walltime=60),
    Row(120, ending=Ending.REFUSED, attempts=0),
    Row(130, ending=Ending.WAITING, attempts=0),
)


def test_the_fields_of_a_job() -> None:
    """Rows stand in the order of submission, which begins at 0; a job that never ran has only its request."""
    none = None
    assert list(log_rows(RUNS)) == [
        (1, 0, 5, 20, 32, none, none, 32, 60, none, 1, none, none, none, none, none, none, none),
        (0, 10, 15, 100, 4, none, none, 4, 100, none, 0, none, none, none, none, none, none, none),
        (2, 20, none, none, none, none, none, 1, 100, none, 5, none, none, none, none, none, none, none),
        (3, 30, none, none, none, none, none, 1, 100, none, none, none, none, none, none, none, none, none),
    ]


def test_names_become_numbers() -> None:
    """Digits at the end are the number where they tell all names apart; else names are numbered as they come."""
    named = replace(
        RUNS,
        ids=("j7", "j12", "a9", "15"),
        users=("u7", None, "u12", "u7"),
        groups=("g1", "h1", "g2", "g1"),
        queues=("long", "short", "long", "q3"),
    )
    rows = list(log_rows(named))
    assert [(row[0], row[11], row[12], row[14]) for row in rows] == [
        (12, None, 1, 1),
        (7, 7, 2, 2),
        (9, 12, 3, 2),
        (15, 7, 2, 3),
    ]


def test_no_job_no_row() -> None:
    """Nothing happened, nothing is written."""
    assert list(log_rows(runs_of())) == []
