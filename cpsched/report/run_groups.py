"""The jobs of a simulation in groups: by queue, by size, by user, and by run time and nodes."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.metrics import Runs

NO_QUEUE, _NO_USER = "(no queue)", "(no user)"
#: The most groups that are shown one by one; all others are one.
_MOST_QUEUES, _MOST_USERS = 9, 15
#: Where classes end, in seconds and in nodes: those of SD-14 (4, 12 and 24 h; 64, 512 and 1,024 nodes) are among them.
_RUN_TIMES = {60: "1 min", 600: "10 min", 3600: "1 h", 14400: "4 h", 43200: "12 h", 86400: "24 h"}
_NODES = (1, 4, 16, 64, 512, 1024)

Groups = dict[str, NDArray[np.int64]]


def by_queue(queues: Sequence[str | None], jobs: NDArray[np.int64]) -> Groups:
    """Return the jobs of each queue, the queues with most jobs first; small ones together beyond nine of them.

    `queues`: the queue of each job that there is. `jobs`: the numbers of the jobs that count.
    """
    names = [NO_QUEUE if (name := queues[job]) is None else name for job in jobs.tolist()]
    return _largest(names, np.ones(len(names)), jobs, _MOST_QUEUES, "queues")


def by_user(runs: Runs, jobs: NDArray[np.int64]) -> Groups:
    """Return the jobs of the users with most core-seconds, the largest user first, and of all others together."""
    names = [_NO_USER if (name := runs.users[job]) is None else name for job in jobs.tolist()]
    work = runs.cores[jobs].astype(np.float64) * np.maximum(0, runs.end[jobs] - runs.start[jobs])
    return _largest(names, work, jobs, _MOST_USERS, "users")


def by_size(runs: Runs, jobs: NDArray[np.int64]) -> Groups:
    """Return the jobs by how many cores they ask for, in classes that end at the powers of eight, as in the figures."""
    ends = 8 ** np.arange(21)
    codes = np.searchsorted(ends, runs.cores[jobs])
    names = {0: "1 core", **{k: f"{ends[k - 1] + 1:,}–{ends[k]:,} cores" for k in range(1, len(ends))}}  # noqa: RUF001
    return {names[code]: jobs[codes == code] for code in np.unique(codes).tolist()}


def _largest(
    names: Sequence[str], weights: NDArray[np.float64], jobs: NDArray[np.int64], most: int, kind: str
) -> Groups:
    """Return the jobs by name, the names of the largest weight first, and those beyond `most` together."""
    totals: Counter[str] = Counter()
    for name, weight in zip(names, weights.tolist(), strict=True):
        totals[name] += weight
    order = sorted(totals, key=lambda name: (-totals[name], name))
    shown = order if len(order) <= most + 1 else order[:most]
    place = {name: number for number, name in enumerate(shown)}
    codes = np.array([place.get(name, len(shown)) for name in names], dtype=np.int64)
    found = {name: jobs[codes == number] for name, number in place.items()}
    if len(shown) < len(order):
        rest = f"{len(order) - len(shown):,} other {kind}"
        found[rest if rest not in found else f"all {rest}"] = jobs[codes == len(shown)]
    return found


def cells_of(
    runs: Runs, jobs: NDArray[np.int64]
) -> tuple[tuple[str, ...], tuple[str, ...], list[list[NDArray[np.int64]]]]:
    """Return the jobs by run time (rows) and by nodes (columns); empty rows and columns at the ends are left out."""
    rows = np.searchsorted(list(_RUN_TIMES), runs.full_runtime[jobs])
    columns = np.searchsorted(_NODES, runs.nodes[jobs])
    row_names = [*(f"≤ {text}" for text in _RUN_TIMES.values()), f"> {list(_RUN_TIMES.values())[-1]}"]
    column_names = ["1 node", *(f"{a + 1:,}–{b:,}" for a, b in pairwise(_NODES))]  # noqa: RUF001 - en dashes of ranges
    column_names.append(f"> {_NODES[-1]:,}")
    if not jobs.size:
        return (), (), []
    used_rows = range(int(rows.min()), int(rows.max()) + 1)
    used_columns = range(int(columns.min()), int(columns.max()) + 1)
    cells = [[jobs[(rows == row) & (columns == column)] for column in used_columns] for row in used_rows]
    return tuple(row_names[row] for row in used_rows), tuple(column_names[column] for column in used_columns), cells
