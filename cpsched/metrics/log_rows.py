"""The jobs of a simulation as a log in Standard Workload Format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from cpsched.metrics.runs import Ending, Runs

#: Field 11 of the format. A job that was killed has failed; one that was refused was cancelled before it started.
_STATUSES = {Ending.WAITING: None, Ending.REFUSED: 5, Ending.COMPLETED: 1, Ending.KILLED: 0}

_DIGITS_AT_THE_END = re.compile(r"[0-9]{1,15}\Z")


def log_rows(runs: Runs) -> Iterator[tuple[int | None, ...]]:
    """Yield the 18 fields of each job, in the order of submission, which begins at second 0; None is unknown.

    Names become numbers, those of jobs too: the digits at their ends if these are unique (``u7``), else 1, 2, 3 in the
    order of submission.
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
