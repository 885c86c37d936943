"""Compression: booked jobs move to earlier starts after a release."""

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import compress_kernels
from cpsched.rusv.kernels.constants import D, F, K, R, S
from cpsched.rusv.timeline import Demands, JobTable, Timeline

Ints = NDArray[np.int64]
#: More than any demand asks for.
_ENDLESS = 1 << 40


class Compression:
    """Repeated `Timeline.backfill` that tries only jobs that can gain; mutable.

    `timeline`, `table`: the jobs of the table that have a start are booked on the timeline.

    Notes
    -----
    No job is skipped that would have moved:

    - A job that is tried and does not gain is tried again after releases on as many nodes as it lacks: by the
      sums over the system in the best window; or, if all nodes on which there is room for it at some time before its
      start are too few, the difference; else one node. Bookings since then never lower that number.
    - A job that may only start at once cannot do so if sums over the system, or nodes that are free for long
      enough, do not suffice; both are counted once for all jobs, slot by slot from now on. Without a release or the
      end of a slot, a job that could not start cannot start later either.
    """

    def __init__(self, timeline: Timeline, table: JobTable) -> None:
        self._timeline, self._table = timeline, table
        #: The number of nodes on which something must have been released before a job is tried again; and its last
        #: trial, by the counter of chances.
        self._enough, self._tried = (np.zeros(len(table.starts), dtype=np.int64) for _ in range(2))
        self._counters: Ints = np.zeros(compress_kernels.COUNTERS, dtype=np.int64)
        #: Until when no job can gain without a release, except jobs that are new among the first ones.
        self._slot_end = 0
        self._know(timeline.demands)

    def _know(self, demands: Demands) -> None:
        """Make the tables of the demands that there are."""
        #: The kind of chunks of each demand; -1 for demands for several kinds, or for whole nodes.
        self._chunk_of = _chunks(demands)
        #: For each of these kinds: the nodes with room now; the number that fits on each node; until when one fits.
        shape = int(self._chunk_of.max(initial=-1)) + 1, demands.layout.num_nodes
        self._nodes, self._units, self._until = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        #: The state for which these hold, and the number of nodes.
        self._looked: Ints = np.zeros((shape[0], 2), dtype=np.int64)
        self._make_room(0)
        self._biggest = _biggest(demands)
        self._memory: Ints = np.zeros((len(demands), 17, 3), dtype=np.int64)

    def append(self, count: int) -> None:
        """Follow the table in which there are this many more jobs, behind the others, and maybe further demands."""
        new: Ints = np.zeros(count, dtype=np.int64)
        self._enough, self._tried = (np.concatenate([array, new]) for array in (self._enough, self._tried))
        if len(self._timeline.demands) > len(self._memory):
            self._know(self._timeline.demands)

    def drop(self, job: int) -> None:
        """Follow the table in which the last job has got the row of another one, which is gone."""
        for array in (self._enough, self._tried):
            array[job] = array[-1]
        self._enough, self._tried = self._enough[:-1], self._tried[:-1]

    def retry(self, jobs: Ints) -> None:
        """Try jobs again in any case, and all others whether they can start at once: what they may have has changed."""
        self._enough[jobs] = 0
        self._slot_end = 0

    def give_back(self, nodes: int) -> None:
        """Record a release on at most this many nodes; the timeline has released it already."""
        if nodes:
            self._counters[compress_kernels.C_GIVEN] += nodes
            self._counters[compress_kernels.C_CHANCE] += 1
            self._slot_end = 0

    def compress(self, queue: Ints, depth: int) -> None:
        """Move booked jobs up, in the order of `queue`: the first `depth` as far as possible, the others only to their
        earliest possible start, which is the same second for all, and no earlier than at the last call.
        """
        table, done = self._table, 0
        if not len(queue):
            return
        now = int(table.jobs[queue[0], 1])
        given = self._counters[compress_kernels.C_GIVEN]
        if now < self._slot_end and not (self._enough[queue[:depth]] <= given).any():
            return
        chances = int(self._counters[compress_kernels.C_CHANCE])
        self._memory[:, 0, 0] = 0
        self._counters[compress_kernels.C_STATE] += 1
        self._counters[compress_kernels.C_CHANCE] += 1
        while done < len(queue):
            state, nodes, tables, scratch = self._timeline.node_arguments()
            self._make_room(len(state.slots))
            notes, jobs = self._notes(), table.arrays()
            code, done = compress_kernels.compress(queue, done, depth, notes, jobs, state, nodes, tables, scratch)
            if code != R.DONE:
                self._timeline.make_room(code, table)
        if self._counters[compress_kernels.C_CHANCE] == chances + 1:
            self._slot_end = int(compress_kernels.next_break(now, state))

    def _notes(self) -> compress_kernels.Notes:
        """Return the notes as the kernels take them."""
        return compress_kernels.Notes(
            enough=self._enough,
            tried=self._tried,
            chunk_of=self._chunk_of,
            biggest=self._biggest,
            nodes=self._nodes,
            units=self._units,
            until=self._until,
            room=self._room,
            looked=self._looked,
            times=self._times,
            least=self._least,
            counters=self._counters,
            bounds=self._memory,
        )

    def _make_room(self, slots: int) -> None:
        """Make space for a scan of this many slots: their begins; and, from now to the end of each, the least free
        amount of each system column, and the number of chunks that fit.
        """
        if not slots or len(self._times) < slots:
            self._times: Ints = np.zeros(slots, dtype=np.int64)
            self._least: Ints = np.zeros((slots, len(self._timeline.demands.layout.system_capacity)), dtype=np.int64)
            self._room: Ints = np.zeros((len(self._looked), slots), dtype=np.int64)
            self._counters[compress_kernels.C_STATE] += 1


def _biggest(demands: Demands) -> Ints:
    """Return the most that a node has of each system column's resource; unlimited where no node has it."""
    layout = demands.layout
    biggest = np.zeros(len(layout.system_capacity), dtype=np.int64)
    for run in layout.runs:
        of_node = np.zeros_like(biggest)
        for amount, sums in zip(run.capacity, run.system, strict=True):
            of_node[list(sums)] += amount
        biggest = np.maximum(biggest, of_node)
    biggest[biggest == 0] = _ENDLESS
    return biggest


def _chunks(demands: Demands) -> Ints:
    """Return a number for each demand, the same for demands for equal chunks of one kind; -1 for all others."""
    tables = demands.tables()
    heads, kinds, segments, terms = tables.demands, tables.kinds, tables.segments, tables.terms
    known: dict[bytes, int] = {}
    found: Ints = np.full(len(demands), -1, dtype=np.int64)
    for demand in range(len(demands)):
        flags, kind = heads[demand, D.FLAGS], heads[demand, D.KIND]
        if heads[demand + 1, D.KIND] - kind != 1 or flags & (F.EXCLUSIVE | F.JOINT | F.WITHIN):
            continue
        rows = segments[kinds[kind, K.SEG] : kinds[kind, K.BEHIND] + 1]
        amounts = terms[rows[0, S.TERM] : rows[-1, S.TERM]]
        key = b"|".join(part.tobytes() for part in (rows[:-1, : S.TERM], amounts))
        found[demand] = known.setdefault(key, len(known))
    return found
