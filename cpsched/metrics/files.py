"""Files of a simulation's results: one row per job as Batsim writes it or as a log, the load over time, the figures.

They are written here and not in `formats`, since they are made of `Runs` and never read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cpsched.metrics.runs import Ending, Runs
from cpsched.metrics.series import series
from cpsched.metrics.summary import RunsSummary
from cpsched.text import csv_cell
from cpsched.writing import whole_file

if TYPE_CHECKING:
    import pandas as pd


#: Batsim's names of the final states of a job (``jobs.cpp``, ``job_state_to_string``).
_FINAL_STATES = {
    Ending.WAITING: "SUBMITTED",
    Ending.REFUSED: "REJECTED",
    Ending.COMPLETED: "COMPLETED_SUCCESSFULLY",
    Ending.KILLED: "COMPLETED_WALLTIME_REACHED",
}


#: Field 11 of the format. A job that was killed has failed; one that was refused was cancelled before it started.
_STATUSES = {Ending.WAITING: None, Ending.REFUSED: 5, Ending.COMPLETED: 1, Ending.KILLED: 0}

_DIGITS_AT_THE_END = re.compile(r"[0-9]{1,15}\Z")


def write_jobs_csv(runs: Runs, allocations: Sequence[str], path: str | Path, *, workload_name: str) -> None:
    """Write one row per job with the columns of Batsim's ``jobs.csv``, which evalys plots.

    Batsim's resources are our nodes: a job has requested as many as it had. Cells of times that a job does not have
    (it was refused, or still waits) are empty, and so are energy and metadata, which are not measured.

    Raises `ValueError` if there is not one allocation per job. Raises `DiskFullError` or `DocumentError` if the file
    cannot be written.
    """
    if len(allocations) != len(runs):
        raise ValueError(f"expected {len(runs)} allocations, one per job, got {len(allocations)}")
    with whole_file(path) as unfinished:
        _batsim_jobs(runs, allocations, workload_name).to_csv(unfinished, index=False, lineterminator="\n")


def write_series_csv(runs: Runs, path: str | Path) -> None:
    """Write `series` as CSV, gzipped if `path` ends in ``.gz``; the file is never left half-written.

    Raises `DiskFullError` or `DocumentError` if the file cannot be written.
    """
    with whole_file(path) as unfinished:
        series(runs).to_csv(unfinished, index=False, lineterminator="\n")


def write_summary(summary: RunsSummary, path: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the figures as JSON; the file is never left half-written.

    `summary`: the figures. `path`: the file to write. `about`: members written before the figures, which describe the
    simulation; values of JSON. Raises `DiskFullError` or `DocumentError` if the file cannot be written.
    """
    with whole_file(path) as unfinished:
        text = json.dumps({**(about or {}), **summary.as_document()}, indent=2, allow_nan=False, ensure_ascii=False)
        unfinished.write_text(text + "\n", encoding="utf-8")


def _batsim_jobs(runs: Runs, allocations: Sequence[str], workload_name: str) -> pd.DataFrame:
    """Return the table of jobs with Batsim's columns in Batsim's order."""
    import pandas as pd

    def where_over(values: np.typing.NDArray[np.int64]) -> pd.Series:
        return pd.Series(values, dtype="Int64").where(runs.over)

    ran = runs.end - runs.start
    turnaround = runs.end - runs.submit
    states = np.array([_FINAL_STATES[ending] for ending in Ending], dtype=object)
    return pd.DataFrame(
        {
            "job_id": [csv_cell(id) for id in runs.ids],
            "workload_name": csv_cell(workload_name),
            # Batsim's profile of a job: each job has its own, which runs for the job's time
            "profile": [csv_cell(id) for id in runs.ids],
            "submission_time": runs.submit,
            "requested_number_of_resources": runs.nodes,
            "requested_time": runs.walltime,
            "success": (runs.ending == Ending.COMPLETED).astype(np.int64),
            "final_state": states[runs.ending],
            "starting_time": where_over(runs.start),
            "execution_time": where_over(ran),
            "finish_time": where_over(runs.end),
            "waiting_time": where_over(runs.wait),
            "turnaround_time": where_over(turnaround),
            "stretch": pd.Series(turnaround / np.maximum(1, ran)).where(runs.over),
            "allocated_resources": list(allocations),
            "consumed_energy": "",
            "metadata": "",
        }
    )


def log_rows(runs: Runs) -> Iterator[tuple[int | None, ...]]:
    """Yield the 18 fields of each job, in the order of submission, which begins at second 0; None is unknown.

    Names become numbers, those of jobs too: the digits at their ends where unique (``u7``), else 1, 2, 3 as they came.
    """
    order = np.argsort(runs.submit, kind="stable").tolist()
    jobs, users, groups, queues = (
        _numbers([names[job] for job in order]) for names in (runs.ids, runs.users, runs.groups, runs.queues)
    )
    is_over = runs.over.tolist()
    for row, job in enumerate(order):
        submit, start, end = int(runs.submit[job]), int(runs.start[job]), int(runs.end[job])
        cores = int(runs.cores[job])
        # unknown: cpu time, memory (used and requested), executable, partition, and the preceding job
        yield (
            jobs[row],
            submit - int(runs.submit[order[0]]),
            *((start - submit, end - start, cores) if is_over[job] else (None, None, None)),
            *(None, None),
            *(cores, int(runs.walltime[job]), None),
            _STATUSES[Ending(int(runs.ending[job]))],
            *(users[row], groups[row], None, queues[row]),
            *(None, None, None),
        )


def _numbers(names: Iterable[str | None]) -> list[int | None]:
    """Return a number for each name, the same for equal ones; None for none."""
    listed = list(names)
    different = dict.fromkeys(name for name in listed if name is not None)
    found = [_DIGITS_AT_THE_END.search(name) for name in different]
    by_digits = {int(match[0]): name for name, match in zip(different, found, strict=True) if match is not None}
    if len(by_digits) == len(different):
        numbers = {name: number for number, name in by_digits.items()}
    else:
        numbers = {name: number for number, name in enumerate(different, start=1)}
    return [None if name is None else numbers[name] for name in listed]
