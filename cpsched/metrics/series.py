"""Used cores and queue over time, as step functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cpsched.metrics.runs import Ending, Runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Step functions over the same times: value i holds in ``[time[i], time[i + 1])``, the last one without end."""

    #: Ascending; before the first time all values are 0.
    time: NDArray[np.int64]
    used_cores: NDArray[np.int64]
    #: Number of waiting jobs.
    queue_length: NDArray[np.int64]
    #: Sum of cores x walltime over the waiting jobs.
    queued_core_seconds: NDArray[np.int64]


def load_over_time(runs: Runs) -> Steps:
    """Return the cores that jobs hold, and the queue.

    A job waits from its submission to its start (of its last attempt, if a node failed under it), to the end where it
    is still waiting, and not at all where it was refused. Attempts before the last are not in `Runs` and not here.
    """
    asks = runs.cores * runs.walltime
    none, one = np.zeros_like(asks), np.ones_like(asks)
    queued, held = runs.ending != Ending.REFUSED, runs.end > runs.start
    changes = [  # which jobs, when, and the changes of used cores, queue length and queued core-seconds
        (queued, runs.submit, none, one, asks),
        (runs.over | runs.running, runs.start, none, -one, -asks),
        (held, runs.start, runs.cores, none, none),
        (held, runs.end, -runs.cores, none, none),
    ]
    times, *amounts = (
        np.concatenate(column)
        for column in zip(*([column[who] for column in row] for who, *row in changes), strict=True)
    )
    order = np.argsort(times, kind="stable")
    times = times[order]
    last_of_its_time = np.diff(times, append=times[-1:] + 1) > 0
    levels = np.stack([np.cumsum(amount[order])[last_of_its_time] for amount in amounts])
    changed = np.any(np.diff(levels, axis=1, prepend=0) != 0, axis=0)
    used, length, area = levels[:, changed]
    return Steps(time=times[last_of_its_time][changed], used_cores=used, queue_length=length, queued_core_seconds=area)
