"""Compression: jobs that have a place move up when somebody has given something back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import compress_kernels, kernels
from cpsched.rusv.timeline import Demands, JobTable, Timeline

__all__ = ["Compression"]

Ints = NDArray[np.int64]


class Compression:
    """Does what `Timeline.backfill` does again and again, but looks only at jobs that can gain; mutable.

    Parameters
    ----------
    timeline, table
        The jobs of the table that have a place are booked on the timeline.

    Notes
    -----
    A job is passed over where it has seen all that was given back since it found no earlier start; or where sums over
    the system, or counts of nodes that are free for long enough, tell that it cannot gain. So nobody is passed over who
    would have moved.
    """

    def __init__(self, timeline: Timeline, table: JobTable) -> None:
        self._timeline, self._table = timeline, table
        demands = timeline.demands
        #: Before which second something was given back that a job has not seen.
        self._unseen: Ints = np.zeros(len(table.starts), dtype=np.int64)
        #: Which chunks a demand asks for; demands for several kinds, or for whole nodes, are -1.
        self._chunk_of = _chunks(demands)
        #: For each of those, which nodes have room now; how many fit on each node; and until when one does.
        shape = int(self._chunk_of.max(initial=-1)) + 1, demands.layout.num_nodes
        self._nodes, self._units, self._until = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self._scratch: Ints = np.zeros(shape[1], dtype=np.int64)
        #: In which state that was so, and of how many nodes; last, the state that counts.
        self._stamp: Ints = np.zeros((1 + shape[0], 2), dtype=np.int64)
        self._memory: Ints = np.zeros((len(demands), 17, 3), dtype=np.int64)

    def give_back(self, queue: Ints, until: int) -> None:
        """Note that something was given back before `until`, which the jobs of the queue have not seen."""
        self._unseen[queue] = np.maximum(self._unseen[queue], until)

    def compress(self, queue: Ints, depth: int) -> None:
        """Let jobs that have a place move up, in the order of `queue`: the first `depth` as far as they can, the others
        only to their earliest possible start, which is the same second for all.
        """
        self._memory[:, 0, 0] = 0
        self._stamp[-1, 0] += 1
        table, done = self._table, 0
        while done < len(queue):
            code, done = compress_kernels.compress(
                queue, done, depth, self._unseen, self._chunk_of,
                self._nodes, self._units, self._until, self._scratch, self._stamp,
                table.jobs, table.starts, table.spans, table.pool, table.used, self._memory,
                table.waits_of, table.waits, table.followers_of, table.followers, *self._timeline.kernel_arguments(),
            )  # fmt: skip
            if code != kernels.DONE:
                self._timeline.make_room(code, table)


def _chunks(demands: Demands) -> Ints:
    """Return a number for each demand, the same for those that ask for equal chunks of one kind; -1 of all others."""
    tables = demands.tables()
    heads, kinds, segments, terms = (tables[name] for name in ("demands", "kinds", "segments", "terms"))
    known: dict[bytes, int] = {}
    found: Ints = np.full(len(demands), -1, dtype=np.int64)
    for demand in range(len(demands)):
        flags, kind = heads[demand, kernels.D_FLAGS], heads[demand, kernels.D_KIND]
        if heads[demand + 1, kernels.D_KIND] - kind != 1 or flags & (kernels.EXCLUSIVE | kernels.JOINT):
            continue
        rows = segments[kinds[kind, kernels.K_SEG] : kinds[kind + 1, kernels.K_SEG] + 1]
        amounts = terms[rows[0, kernels.S_TERM] : rows[-1, kernels.S_TERM]]
        key = b"|".join(part.tobytes() for part in (rows[:-1, : kernels.S_TERM], amounts))
        found[demand] = known.setdefault(key, len(known))
    return found
