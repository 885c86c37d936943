"""The columns of what happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cpsched.metrics import Ending
from tests.metrics.made_runs import Row, runs_of


def test_the_table_has_words_for_what_became_of_a_job() -> None:
    """The table of runs has a row per job, with the names of the endings and the columns in the singular."""
    frame = runs_of(Row(0, 5, 9, user="ada"), Row(1, ending=Ending.WAITING), Row(2, 3, 4, ending=Ending.KILLED)).frame()
    assert frame["ending"].tolist() == ["completed", "waiting", "killed"]
    assert frame["start"].tolist() == [5, -1, 3]
    assert frame["user"].iloc[0] == "ada"
    assert list(frame.columns[:5]) == ["id", "user", "group", "queue", "submit"]


def test_columns_of_different_lengths_are_refused() -> None:
    """A column that is too short is told with all lengths."""
    with pytest.raises(ValueError, match="'users': 1"):
        replace(runs_of(Row(0, 5, 9), Row(1, 5, 9)), users=("ada",))


@pytest.mark.parametrize("row", [Row(6, 5, 9), Row(0, 5, 4), Row(0)])
def test_a_job_that_is_over_has_run_after_it_came(row: Row) -> None:
    """A job that is over but began before it came, ended before it began or never ran is refused by its id."""
    with pytest.raises(ValueError, match=r"expected submit <= start <= end, got .* \(job '1'\)"):
        runs_of(Row(0, 5, 9), row)


def test_the_horizon_is_the_last_event() -> None:
    """The last second is that of the last end, start or arrival; there is none without jobs."""
    assert runs_of(Row(0, 5, 9), Row(3, ending=Ending.WAITING)).horizon == 9
    assert runs_of(Row(0, 5, 9), Row(30, ending=Ending.WAITING)).horizon == 30
    assert runs_of().horizon == 0
