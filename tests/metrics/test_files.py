"""The files of what happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cpsched.errors import DocumentError
from cpsched.metrics import Ending, runs_summary, write_jobs_csv, write_series_csv, write_summary
from tests.metrics.made_runs import Row, runs_of

RUNS = runs_of(
    Row(0, 5, 25, cores=32, walltime=60),
    Row(1, 25, 125, cores=4, walltime=100, ending=Ending.KILLED),
    Row(2, ending=Ending.REFUSED, attempts=0),
    Row(3, ending=Ending.WAITING, attempts=0),
)
ALLOCATIONS = ("0-3 7", "2", "", "")


def test_jobs_have_the_columns_of_batsim(tmp_path: Path) -> None:
    """The columns are Batsim's in its order, with its words, and times are empty where a job has none."""
    path = tmp_path / "jobs.csv"
    write_jobs_csv(RUNS, ALLOCATIONS, path, workload_name="tiny")
    header = (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
        "consumed_energy,metadata"
    )
    assert path.read_text(encoding="utf-8").splitlines() == [
        header,
        "0,tiny,0,0,1,60,1,COMPLETED_SUCCESSFULLY,5,20,25,5,25,1.25,0-3 7,,",
        "1,tiny,1,1,1,100,0,COMPLETED_WALLTIME_REACHED,25,100,125,24,124,1.24,2,,",
        "2,tiny,2,2,0,100,0,REJECTED,,,,,,,,,",
        "3,tiny,3,3,0,100,0,SUBMITTED,,,,,,,,,",
    ]


def test_the_load_is_written_step_by_step(tmp_path: Path) -> None:
    """Each row is a change."""
    path = tmp_path / "series.csv"
    write_series_csv(RUNS, path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "time,used_cores,queue_length,queued_core_seconds",
        "0,0,1,1920",
        "1,0,2,2320",
        "3,0,3,2420",
        "5,32,2,500",
        "25,4,1,100",
        "125,0,1,100",
    ]


def test_the_summary_is_written_as_json(tmp_path: Path) -> None:
    """The file has the document, whole, and nothing else is left beside it."""
    path = tmp_path / "summary.json"
    summary = runs_summary(RUNS, 64)
    write_summary(summary, path)
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(summary.as_document()))
    assert [found.name for found in tmp_path.iterdir()] == ["summary.json"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A folder that is not there is told with the name of the file; an allocation that is missing is a mistake."""
    path = tmp_path / "nowhere" / "series.csv"
    with pytest.raises(DocumentError, match=r"series\.csv: 1 fault(.|\n)*Expected to write it, got"):
        write_series_csv(RUNS, path)
    with pytest.raises(ValueError, match="expected 4 allocations, one per job, got 1"):
        write_jobs_csv(RUNS, ("0",), tmp_path / "jobs.csv", workload_name="tiny")
    assert list(tmp_path.iterdir()) == []
