"""Files of a simulation's results: one row per job as Batsim writes it or as a log, the load over time, the figures.

They are written here and not in `formats`, since they are made of `Runs` and never read back.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cpsched.metrics.runs import Ending, Runs
from cpsched.metrics.series import load_over_time
from cpsched.metrics.summary import RunsSummary
from cpsched.text import csv_cell
from cpsched.writing import whole_file

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    _write_csv(path, _batsim_jobs(runs, allocations, workload_name))


def write_series_csv(runs: Runs, path: str | Path) -> None:
    """Write `load_over_time` as CSV, one row per change; the file is never left half-written.

    Raises `DiskFullError` or `DocumentError` if the file cannot be written.
    """
    steps = load_over_time(runs)
    names = ("time", "used_cores", "queue_length", "queued_core_seconds")
    _write_csv(path, {name: getattr(steps, name).tolist() for name in names})


def write_summary(summary: RunsSummary, path: str | Path, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the figures as JSON; the file is never left half-written.

    `summary`: the figures. `path`: the file to write. `about`: members written before the figures, which describe the
    simulation; values of JSON. Raises `DiskFullError` or `DocumentError` if the file cannot be written.
    """
    with whole_file(path) as unfinished:
        text = json.dumps({**(about or {}), **summary.as_document()}, indent=2, allow_nan=False, ensure_ascii=False)
        unfinished.write_text(text + "\n", encoding="utf-8")


def _batsim_jobs(runs: Runs, allocations: Sequence[str], workload_name: str) -> dict[str, Iterable[object]]:
    """Return the columns of jobs as Batsim names and orders them."""

    def where_over(values: NDArray[Any]) -> list[object]:
        return [value if one else "" for value, one in zip(values.tolist(), is_over, strict=True)]

    is_over = runs.over.tolist()
    ran = runs.end - runs.start
    turnaround = runs.end - runs.submit
    ids = [csv_cell(id) for id in runs.ids]
    same = csv_cell(workload_name)
    return {
        "job_id": ids,
        "workload_name": repeat(same, len(runs)),
        # Batsim's profile of a job: each job has its own, which runs for the job's time
        "profile": ids,
        "submission_time": runs.submit.tolist(),
        "requested_number_of_resources": runs.nodes.tolist(),
        "requested_time": runs.walltime.tolist(),
        "success": (runs.ending == Ending.COMPLETED).astype(np.int64).tolist(),
        "final_state": [_FINAL_STATES[Ending(ending)] for ending in runs.ending.tolist()],
        "starting_time": where_over(runs.start),
        "execution_time": where_over(ran),
        "finish_time": where_over(runs.end),
        "waiting_time": where_over(runs.wait),
        "turnaround_time": where_over(turnaround),
        "stretch": where_over(turnaround / np.maximum(1, ran)),
        "allocated_resources": allocations,
        "consumed_energy": repeat("", len(runs)),
        "metadata": repeat("", len(runs)),
    }


def _write_csv(path: str | Path, columns: Mapping[str, Iterable[object]]) -> None:
    """Write named columns of equal length."""
    with whole_file(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


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
