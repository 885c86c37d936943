"""The timeline: all nodes and the system over one time axis, from second 0 without end.

`Layout` has the columns, `Demands` the possible demands; `Timeline` books, releases and searches.
Nothing here knows jobs, resources or names of nodes: nodes are numbered in the order in which they shall be
filled, columns and demands by position. What is mutable: `Demands` grows, `Timeline` is state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpsched.rusv import instant_kernels, step_kernels
from cpsched.rusv.kernels.arrays import Bookings, Choices, Jobs, Links, Nodes, Scratch, Tables, Taken, TimelineState
from cpsched.rusv.kernels.axis import book, free_until, locate, pass_time, release
from cpsched.rusv.kernels.constants import BLOCK, FOREVER, HIGH, LAZY, LOW, NOWHERE, D, F, H, K, R
from cpsched.rusv.kernels.mapping import may_have, placement_columns
from cpsched.rusv.kernels.nodes import (
    book_all,
    earliest_fit_by_node,
    free_until_by_node,
    note_all_gaps,
    pass_time_by_node,
)
from cpsched.rusv.kernels.queues import earliest_after, latest_before, place_jobs
from cpsched.rusv.kernels.windows import earliest_fit, free_from
from cpsched.rusv.links import links_of
from cpsched.rusv.node_steps import NodeSteps
from cpsched.rusv.step_sequences import StepSequences

Ints = NDArray[np.int64]
#: Rows of (node, kind, chunks).
Entries = NDArray[np.int32]

#: Jobs that one call of a kernel plans before it returns to report progress (OCCS-44 plans arrays in portions).
PORTION = 500
_MEMORY = 16
#: Where many bookings take more than this share (its inverse) of all node columns, rows of all nodes take less space.
_SPELLED_OUT = 8
#: Space for one block of slots is kept for so many slots; on average a block has more.
_SLOTS_PER_BLOCK = 4
#: Entries of jobs that are gone, at the most, beside as many as the jobs of a table have.
_MOST_UNUSED = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Nodes that are neighbours in the filling order and have the same columns."""

    length: int
    #: Which resource each of a node's columns counts. Those of one resource are adjacent.
    resources: tuple[int, ...]
    #: The amount of each node in each of its columns; all positive.
    capacity: tuple[int, ...]
    #: For each column the system columns that add it up, at most two.
    system: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All columns: those of the nodes, run by run, and those of the system."""

    runs: tuple[Run, ...]
    #: The amounts of the system columns when nothing is booked.
    system_capacity: tuple[int, ...]

    @property
    def num_nodes(self) -> int:
        """The number of nodes in all runs."""
        return sum(run.length for run in self.runs)


#: (run, (place of the column in the run, amount) of all that is taken) of the runs whose nodes may hold a chunk.
_Takes = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
#: First node, number of nodes, and (column of the first node, amount) of what a chunk takes on each.
_Segment = tuple[int, int, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDemand:
    """`need` equal chunks, at most `most` of them on one node (OCCS-28)."""

    need: int
    most: int
    #: The runs whose nodes may hold the chunk, in the order of filling, each with (place in the run, amount).
    takes: _Takes


class Demands:
    """The table of all demands that are searched for; mutable: it only grows (OCCS-12).

    A demand's kinds are mapped in their order. An exclusive demand needs idle nodes and takes them whole.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        #: First column of each run's resources.
        self.columns: list[list[int]] = [[0] * len(run.resources) for run in layout.runs]
        column = 0
        for resource in sorted({resource for run in layout.runs for resource in run.resources}):
            for columns, run in zip(self.columns, layout.runs, strict=True):
                if resource in run.resources:
                    columns[run.resources.index(resource)] = column
                    column += run.length
        self.num_columns = column
        self._first_node = np.cumsum([0, *(run.length for run in layout.runs)])
        self._rows: dict[str, list[tuple[int, ...]]] = {
            name: [] for name in ("demands", "kinds", "segments", "terms", "sysreq", "ranges", "reach")
        }
        self._machine = self._spell_out()
        self._tables: Tables | None = None
        self._known: dict[tuple[_Takes, bool], tuple[int, int, int, list[tuple[int, int]]]] = {}
        #: How many chunks fit on an empty node, by their first segment.
        self._fitting: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._rows["demands"])

    def add(
        self,
        kinds: Sequence[KindDemand],
        *,
        system: Iterable[tuple[int, int]] = (),
        licenses: Iterable[tuple[int, int]] = (),
        exclusive: bool = False,
        scatter: bool = False,
        within: bool = False,
        segment: int = 0,
        spread: int = 0,
        otherwise: int = -1,
    ) -> int:
        """Add a demand and return its number.

        `kinds`: the kinds of chunks, in the order of mapping. `system`: (system column, amount) pairs that hold at each
        moment of any feasible window: the filter of phase 1. They are not booked. `licenses`: (system column, amount)
        pairs that the demand takes. `exclusive`: whether the demand takes whole, idle nodes. `scatter`: whether a node
        takes at most one chunk, of any kind. `otherwise`: A demand for the same chunks in other orders, which is tried
        where this one's orders fail. `within`: whether all chunks are in one group of nodes: `otherwise` is a demand
        for the first of the groups. `segment`, `spread`: It may be in several groups, a multiple of `segment` chunks in
        each, or at most `spread`; 0: it may not.
        """
        rows = self._rows
        flags = F.EXCLUSIVE * exclusive + F.SCATTER * scatter + F.JOINT * (len(kinds) > 1)
        flags += F.WITHIN * within + F.PARTED * (segment + spread > 0)
        head = tuple(len(rows[name]) for name in ("kinds", "sysreq"))
        rows["sysreq"].extend((q, amount) for q, amount in system)
        license_row = len(rows["sysreq"])
        rows["sysreq"].extend((q, amount) for q, amount in licenses)
        rows["demands"].append(
            (*head, license_row, len(rows["ranges"]), len(rows["reach"]), flags, otherwise, segment, spread)
        )
        spelled = [self._spelled(kind.takes, exclusive) for kind in kinds]
        for kind, (first, behind, most, _) in zip(kinds, spelled, strict=True):
            rows["kinds"].append((kind.need, first, behind, min(kind.most, most)))
        joined = spelled[0][3] if len(kinds) == 1 else _joined({span for *_, spans in spelled for span in spans})
        rows["ranges"].extend(joined)
        rows["reach"].extend((run,) for run in sorted({run for kind in kinds for run, _ in kind.takes}))
        self._tables = None
        return len(rows["demands"]) - 1

    def repeat(
        self,
        numbers: range,
        need: int,
        most: int,
        system: Iterable[tuple[int, int]] = (),
        licenses: Iterable[tuple[int, int]] = (),
    ) -> int:
        """Add demands again for another number of chunks, at most `most` on one node; return the number of the last.

        `numbers`: neighbours, of one kind each, of which each is `otherwise` of the next. `system`, `licenses`: as of
        `add`, of a single one; several have none.
        """
        rows, first = self._rows, self._rows["demands"][numbers.start]
        moved, by = len(self) - numbers.start, []
        for name, place in (("kinds", D.KIND), ("ranges", D.RANGE), ("reach", D.REACH)):
            end = rows["demands"][numbers.stop][place] if numbers.stop < len(self) else len(rows[name])
            by.append(len(rows[name]) - first[place])
            rows[name].extend(rows[name][first[place] : end])
        for number in range(first[D.KIND] + by[0], len(rows["kinds"])):
            _, segment, last, _ = rows["kinds"][number]
            rows["kinds"][number] = need, segment, last, min(most, self._fitting[segment])
        at = len(rows["sysreq"])
        rows["sysreq"].extend(system)
        license_row = len(rows["sysreq"])
        rows["sysreq"].extend(licenses)
        rows["demands"].extend(
            (
                kind + by[0],
                at,
                license_row,
                ranges + by[1],
                reach + by[2],
                flags,
                other + moved if other >= 0 else -1,
                0,
                0,
            )
            for kind, _, _, ranges, reach, flags, other, _, _ in rows["demands"][numbers.start : numbers.stop]
        )
        self._tables = None
        return len(self) - 1

    def _spelled(self, takes: _Takes, exclusive: bool) -> tuple[int, int, int, list[tuple[int, int]]]:
        """Return the first segment of chunks that take this, of runs that are adjacent, and their columns too, and that
        behind the last; how many fit on an empty node; and the ranges of columns that are looked at.
        """
        if (known := self._known.get((takes, exclusive))) is not None:
            return known
        most = [
            min((self.layout.runs[run].capacity[place] // amount for place, amount in of_run), default=FOREVER)
            for run, of_run in takes
        ]
        segments: list[_Segment] = []
        spans: set[tuple[int, int]] = set()
        for run, of_run in takes:
            columns, length, first = self.columns[run], self.layout.runs[run].length, int(self._first_node[run])
            terms = [(columns[place], amount) for place, amount in of_run]
            places = range(len(columns)) if exclusive else [place for place, _ in of_run]
            spans.update((columns[place], columns[place] + length) for place in places)
            begin, behind, before = segments[-1] if segments else (0, -1, [])
            if begin + behind == first and terms == [(column + behind, amount) for column, amount in before]:
                segments[-1] = begin, behind + length, before
            else:
                segments.append((first, length, terms))
        rows, begin = self._rows, len(self._rows["segments"])
        for first, length, terms in segments:
            rows["segments"].append((first, length, len(rows["terms"])))
            rows["terms"].extend(terms)
        found = begin, len(rows["segments"]), max(most, default=FOREVER), _joined(spans)
        self._known[takes, exclusive], self._fitting[begin] = found, found[2]
        return found

    def kinds_of(self, demand: int) -> list[tuple[int, list[tuple[int, int]]]]:
        """Return the kinds of a demand in mapping order, each with the ranges ``[first, end)`` of its nodes."""
        demands, kinds, segments = (self._rows[name] for name in ("demands", "kinds", "segments"))
        found = []
        for kind in range(demands[demand][0], demands[demand + 1][0] if demand + 1 < len(demands) else len(kinds)):
            of_kind = segments[kinds[kind][K.SEG] : kinds[kind][K.BEHIND]]
            found.append((kind, [(first, first + length) for first, length, _ in of_kind]))
        return found

    def units_in(self, kind: int, free: Ints) -> Ints:
        """Return the number of chunks of a kind that fit on each node; `free` has the amount of each node column."""
        units: Ints = np.zeros(self.layout.num_nodes, dtype=np.int64)
        for span, terms in self._terms_of(kind):
            fitting = [free[columns] // amount for columns, amount in terms]
            units[span] = np.clip(np.min(fitting, axis=0), 0, self._rows["kinds"][kind][K.MOST])
        return units

    def taken_by(self, kind: int) -> Ints:
        """Return the amount of each node column that one chunk of a kind takes on its node."""
        taken: Ints = np.zeros(self.num_columns, dtype=np.int64)
        for _, terms in self._terms_of(kind):
            for columns, amount in terms:
                taken[columns] = amount
        return taken

    def take(self, kind: int, units: Ints, free: Ints) -> None:
        """Lower `free` by the amounts that these numbers of chunks of a kind take on each node."""
        for span, terms in self._terms_of(kind):
            for columns, amount in terms:
                free[columns] -= units[span] * amount

    def may_have(self, entries: Entries) -> bool:
        """Return whether each chunk is on a node that may hold its kind, and the nodes, with nothing booked, have what
        chunks of all kinds take of them together: an exclusive demand is booked as the whole of its nodes, whatever
        they have. The entries may be those of several demands.
        """
        return bool(may_have(entries, len(entries), np.empty(self.num_columns, dtype=np.int32), self.tables()))

    def _terms_of(self, kind: int) -> Iterator[tuple[slice, list[tuple[slice, int]]]]:
        """Yield the nodes that may hold a kind, range by range, each with the (columns, amount) that a chunk takes."""
        kinds, segments, terms = (self._rows[name] for name in ("kinds", "segments", "terms"))
        for number in range(kinds[kind][K.SEG], kinds[kind][K.BEHIND]):
            first, length, term = segments[number]
            last = segments[number + 1][2] if number + 1 < len(segments) else len(terms)
            of_segment = [(slice(column, column + length), amount) for column, amount in terms[term:last]]
            yield slice(first, first + length), of_segment

    def tables(self) -> Tables:
        """Return the tables of all current demands as arrays."""
        if self._tables is None:
            rows = self._rows
            ends = {
                "demands": (
                    *(len(rows[name]) for name in ("kinds", "sysreq", "sysreq", "ranges", "reach")),
                    0,
                    -1,
                    0,
                    0,
                ),
                "segments": (0, 0, len(rows["terms"])),
            }
            terms = np.array(rows["terms"], dtype=np.int64).reshape(-1, 2)
            inverse = 1.0 / terms[:, 1]
            self._tables = Tables(
                **{name: np.array([*rows[name], end], dtype=np.int64) for name, end in ends.items()},
                **{name: np.array(rows[name], dtype=np.int64).reshape(-1, 2) for name in ("sysreq", "ranges")},
                kinds=np.array(rows["kinds"], dtype=np.int64).reshape(-1, len(K)),
                terms=terms,
                scale=np.stack([inverse, 0.5 * inverse], axis=1),
                reach=np.array(rows["reach"], dtype=np.int64).reshape(-1),
                **self._machine,
            )
        return self._tables

    def columns_by_node(self) -> tuple[Ints, Ints, Ints]:
        """Return the node of each node column, and its column in a step of the node, both int64 (W,); and the step of
        each idle node, int64 (nodes, 1 + resources): second 0, and what there is of each resource.
        """
        known = sorted({resource for run in self.layout.runs for resource in run.resources})
        node_of: Ints = np.zeros(self.num_columns, dtype=np.int64)
        place_of: Ints = np.zeros(self.num_columns, dtype=np.int64)
        idle: Ints = np.zeros((self.layout.num_nodes, 1 + len(known)), dtype=np.int64)
        for first, run, columns in zip(self._first_node.tolist(), self.layout.runs, self.columns, strict=False):
            for resource, column, amount in zip(run.resources, columns, run.capacity, strict=True):
                node_of[column : column + run.length] = np.arange(first, first + run.length)
                place_of[column : column + run.length] = 1 + known.index(resource)
                idle[first : first + run.length, 1 + known.index(resource)] = amount
        return node_of, place_of, idle

    def _spell_out(self) -> dict[str, NDArray[Any]]:
        """Return the tables of the layout as arrays."""
        capacity = np.zeros(self.num_columns, dtype=np.int32)
        column_system = np.full((self.num_columns, 2), -1, dtype=np.int64)
        runs: list[tuple[int, int, int]] = []
        run_columns: list[int] = []
        for first, run, columns in zip(self._first_node.tolist(), self.layout.runs, self.columns, strict=False):
            runs.append((first, run.length, len(run_columns)))
            run_columns.extend(columns)
            for column, amount, sums in zip(columns, run.capacity, run.system, strict=True):
                capacity[column : column + run.length] = amount
                column_system[column : column + run.length, : len(sums)] = sums
        runs.append((self.layout.num_nodes, 0, len(run_columns)))
        lengths = [run.length for run in self.layout.runs]
        return {
            "runs": np.array(runs, dtype=np.int64),
            "runcols": np.array(run_columns, dtype=np.int64),
            "capacity": capacity,
            "colsys": column_system,
            "run_of": np.repeat(np.arange(len(lengths)), lengths).astype(np.int64),
        }


def _most_kinds(tables: Tables) -> int:
    """Return the most kinds of chunks that one demand has, at least 1."""
    return int(np.diff(tables.demands[:, D.KIND]).max(initial=1))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return half-open ranges in ascending order, those that touch joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where and when a demand fits (OCCS-30)."""

    start: int
    #: Rows of (node, kind, chunks), kind by kind and ascending in the nodes; kinds count through all demands.
    entries: Entries


@dataclass(frozen=True, slots=True, eq=False)
class Booking:
    """Amounts of columns, taken in ``[start, end)``."""

    start: int
    end: int
    columns: Ints
    amounts: Ints
    system_columns: Ints
    system_amounts: Ints

    def is_same(self, other: "Booking") -> bool:
        """Tell whether another booking has the same at the same time."""
        mine, others = (
            (*_summed(one.columns, one.amounts), *_summed(one.system_columns, one.system_amounts))
            for one in (self, other)
        )
        return (self.start, self.end) == (other.start, other.end) and all(map(np.array_equal, mine, others))


class JobTable:
    """A table of jobs with their places; mutable: the kernels write `starts` and the placements.

    `rows`: for each job (demand, earliest start, latest start, duration). `links`: the milestones between the jobs, see
    `links.links_of`; they have no cycle. None: there are none.

    Attributes
    ----------
    jobs
        int64 (jobs, 4): the rows.
    links
        The milestones between the jobs.
    starts
        int64 (jobs,): the planned start, or `NOWHERE`.
    spans
        int64 (jobs, 3): where a job's entries begin in `pool`, how many there are, and how many have room.
    pool
        int32 (·, 3): entries of all jobs; it grows.
    used
        int64 (1,): how much of the pool is in use.
    """

    def __init__(self, rows: Sequence[tuple[int, int, int, int]], links: Links | None = None) -> None:
        count = len(rows)
        self.jobs: Ints = np.array(rows, dtype=np.int64).reshape(count, 4)
        self.starts: Ints = np.full(count, NOWHERE, dtype=np.int64)
        self.link(links)
        self.spans: Ints = np.zeros((count, 3), dtype=np.int64)
        self.pool: Entries = np.zeros((1024, 3), dtype=np.int32)
        self.used: Ints = np.zeros(1, dtype=np.int64)

    def arrays(self) -> Jobs:
        """Return the table as the kernels take it."""
        return Jobs(self.jobs, self.starts, self.spans, self.pool, self.used, self.links)

    @property
    def is_linked(self) -> bool:
        """Whether some job waits for another one."""
        return len(self.links.waits) > 0

    def entries(self, job: int) -> Entries:
        """Return the placement of a job: rows of (node, kind, chunks)."""
        first, count, _ = self.spans[job]
        return self.pool[first : first + count].copy()

    def window(self, job: int) -> tuple[int, int]:
        """Return the first and the last start that a job's own times, and the places of those that it is linked with,
        leave it; the first is `FOREVER` while one that it waits for has no place.
        """
        _, earliest, latest, _ = self.jobs[job]
        arrays = self.arrays()
        return int(earliest_after(job, earliest, arrays)), int(latest_before(job, latest, arrays))

    def keep(self, job: int, start: int, entries: Entries) -> None:
        """Record the place of a job; the timeline has booked it already."""
        first, _, room = (int(value) for value in self.spans[job])
        if len(entries) > room:
            first, room = int(self.used[0]), len(entries)
            lacking = first + room - len(self.pool)
            if lacking > 0:
                self.pool = np.concatenate([self.pool, np.zeros((lacking + len(self.pool), 3), dtype=np.int32)])
            self.used[0] += room
        self.pool[first : first + len(entries)] = entries
        self.spans[job] = first, len(entries), room
        self.starts[job] = start

    def append(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Add jobs without a place, behind the others. The links are the caller's."""
        count = len(rows)
        if self.used[0] > 2 * self.spans[:, 1].sum() + _MOST_UNUSED:
            self.reserve(self.spans[:, 1].copy())
        self.jobs = np.concatenate([self.jobs, np.array(rows, dtype=np.int64).reshape(count, 4)])
        self.starts = np.concatenate([self.starts, np.full(count, NOWHERE, dtype=np.int64)])
        self.spans = np.concatenate([self.spans, np.zeros((count, 3), dtype=np.int64)])

    def drop(self, job: int) -> None:
        """Take a job without a place out; the last job gets its row. The links are the caller's."""
        for array in (self.jobs, self.starts, self.spans):
            array[job] = array[-1]
        self.jobs, self.starts, self.spans = self.jobs[:-1], self.starts[:-1], self.spans[:-1]

    def link(self, links: Links | None = None) -> None:
        """Set the links of all jobs, of which there may be more or less than before."""
        none = np.zeros((0, 3), dtype=np.int64)
        self.links = links_of(len(self.starts), none, none) if links is None else links

    def pass_time(self, seconds: int) -> None:
        """Make second `seconds` the new second 0; places that begin before it are the caller's."""
        self.starts[self.starts != NOWHERE] -= seconds
        for column, least in ((1, 0), (2, None)):
            times = self.jobs[:, column]
            moved = times - seconds if least is None else np.maximum(times - seconds, least)
            self.jobs[:, column] = np.where(times < FOREVER, moved, times)

    def reserve(self, rooms: Ints) -> None:
        """Lay the pool out anew, with space for these numbers of entries of each job."""
        pool: Entries = np.zeros((int(rooms.sum()), 3), dtype=np.int32)
        first = 0
        for job, room in enumerate(rooms.tolist()):
            held = self.entries(job)
            pool[first : first + len(held)] = held
            self.spans[job] = first, len(held), room
            first += room
        self.pool, self.used[0] = pool, first


class TimelineMark(NamedTuple):
    """All that was booked on a timeline at some time."""

    state: TimelineState
    nodes: NodeSteps | None


class Timeline:
    """The free amounts of every column from second 0 on; mutable.

    `demands`: the demands that can be searched for; more may be added later.

    Notes
    -----
    The structure is that of ``kernels``; a booking that was released leaves no trace, and two timelines with the
    same bookings answer alike, whatever happened in between. Amounts of node columns lie within 32 bits.

    Each node has steps of its own (`NodeSteps`), and the time axis has the system columns only, until something asks
    for rows of all nodes (`kernel_arguments`): then they are spelled out. The answers are the same.
    """

    def __init__(self, demands: Demands) -> None:
        layout = demands.layout
        self.demands = demands
        nodes, systems = layout.num_nodes, len(layout.system_capacity)
        #: The tables for which the scratch has space.
        self._known = demands.tables()
        self._state = _empty_state(self._known.capacity[:0], np.array(layout.system_capacity, dtype=np.int64))
        #: None when rows of all nodes are spelled out.
        self._nodes: NodeSteps | None = NodeSteps(*demands.columns_by_node())
        self._bounds = np.zeros((0, _MEMORY + 1, 3), dtype=np.int64)
        entries, columns, amounts = self._space_for(_most_kinds(self._known))
        self._scratch = Scratch(
            free=np.zeros((2, demands.num_columns), dtype=np.int32),
            buffer=np.zeros(nodes, dtype=np.float64),
            entries=entries,
            columns=columns,
            amounts=amounts,
            scolumns=np.zeros(systems, dtype=np.int64),
            samounts=np.zeros(systems, dtype=np.int64),
            stamps=np.zeros(nodes, dtype=np.int64),
            stamp=np.zeros(1, dtype=np.int64),
        )

    def _space_for(self, kinds: int) -> tuple[Entries, Ints, Ints]:
        """Return space for the entries of a demand of this many kinds, and for their columns and amounts."""
        entries = max(1, self.demands.layout.num_nodes * kinds)
        columns = entries * max((len(run.capacity) for run in self.demands.layout.runs), default=1)
        return (
            np.zeros((entries, 3), dtype=np.int32),
            np.zeros(columns, dtype=np.int64),
            np.zeros(columns, dtype=np.int64),
        )

    # --- the arguments of the kernels ---------------------------------------------------------------------------

    def kernel_arguments(self) -> tuple[TimelineState, Tables, Scratch]:
        """Return the arrays that a kernel of another room needs to book, release and search: state, tables, scratch."""
        if self._nodes is not None:
            self._state, self._nodes = self._nodes.spelled_out(self._state), None
        return self._state, *self.instant_views()

    def node_arguments(self) -> tuple[TimelineState, Nodes, Tables, Scratch]:
        """Return the arrays for booking and searching node by node; rows of all nodes become steps of nodes again."""
        if self._nodes is None:
            state, times = self._state, self.breakpoints()
            blocks = state.order[: state.head[H.BLOCKS]]
            counts = state.members[blocks, -1]
            rows = np.concatenate([state.members[block, :count] for block, count in zip(blocks, counts, strict=True)])
            self._nodes = NodeSteps(*self.demands.columns_by_node())
            self._nodes.gather(times, state.rows[rows] + np.repeat(state.blk[blocks, LAZY], counts, axis=0))
            self._state = state._replace(rows=state.rows[:, :0].copy(), blk=state.blk[:, :, :0].copy())
        return self._state, self._nodes.arrays, *self.instant_views()

    def instant_views(self) -> tuple[Tables, Scratch]:
        """Return the tables and the scratch that the kernels of one moment need, for the demands that there are now."""
        if (tables := self.demands.tables()) is not self._known:
            self._known, kinds = tables, _most_kinds(tables)
            if kinds * self.demands.layout.num_nodes > len(self._scratch.entries):
                entries, columns, amounts = self._space_for(kinds)
                self._scratch = self._scratch._replace(entries=entries, columns=columns, amounts=amounts)
        return tables, self._scratch

    def entries_found(self, count: int) -> Entries:
        """Return the entries that a kernel of another room has found with these arrays."""
        return self._scratch.entries[:count].copy()

    def grow(self, lacking: int = 1) -> None:
        """Double the space for slots, as often as so many are lacking."""
        self._state = _copied(self._state, lacking)

    # --- single bookings ----------------------------------------------------------------------------------------

    def book(self, booking: Booking) -> None:
        """Book amounts; the caller guarantees that they are free, and in range (OCCS-33)."""
        if not 0 <= booking.start < booking.end:
            raise ValueError(f"Expected 0 <= start < end, got a booking of [{booking.start}, {booking.end})")
        head = self._state.head
        if head[H.SPARE_ROWS] < 2 or head[H.SPARE_BLOCKS] < 2:
            self.grow()
        self._take(booking, -1)

    def _take(self, booking: Booking, sign: int) -> None:
        """Book amounts (sign -1), or release them (sign 1)."""
        start, end = booking.start, min(booking.end, FOREVER)
        taken = Taken(booking.columns, booking.amounts, booking.system_columns, booking.system_amounts)
        if self._nodes is not None:
            self._nodes.shift(start, end, sign, taken.columns, taken.amounts)
            taken = taken._replace(columns=taken.columns[:0], amounts=taken.amounts[:0])
        (book if sign < 0 else release)(start, end, taken, self._state)

    def book_all(self, spans: Ints, amounts: Sequence[tuple[Mapping[int, int], Mapping[int, int]]]) -> Iterator[int]:
        """Book many at once, in order; yield the index of each for which not all is free, which is left to the caller.

        `spans`: int64 (bookings, 3): start, end, and which of `amounts` is booked. `amounts`: see `booking`: those by
        node column, and by system column.
        """
        columns = np.array([column for taken, _ in amounts for column in taken], dtype=np.int64)
        values = np.array([amount for taken, _ in amounts for amount in taken.values()], dtype=np.int64)
        owners = np.repeat(np.arange(len(amounts)), [len(taken) for taken, _ in amounts])
        system = np.zeros((len(amounts), len(self.demands.layout.system_capacity)), dtype=np.int64)
        for sums in self._known.colsys[columns].T:
            np.add.at(system, (owners[sums >= 0], sums[sums >= 0]), values[sums >= 0])
        for row, (_, licenses) in enumerate(amounts):
            for number, amount in licenses.items():
                system[row, number] += amount
        changed = np.nonzero(system)
        counts = [np.bincount(of_sets, minlength=len(amounts)) for of_sets in (owners, changed[0])]
        firsts = np.concatenate([[(0, 0)], np.cumsum(counts, axis=1).T])
        bookings = Bookings(  # arrays whose numbers lie otherwise would be of other types, to be compiled for
            spans=np.minimum(spans, FOREVER),
            firsts=np.ascontiguousarray(firsts),
            columns=columns,
            amounts=values,
            scolumns=np.ascontiguousarray(changed[1]),
            samounts=system[changed],
        )
        if np.diff(firsts[:, 0])[spans[:, 2]].sum() * _SPELLED_OUT > len(spans) * self.demands.num_columns:
            self.kernel_arguments()
        done, nodes = 0, self._nodes
        breaks = len(np.unique(spans[:, :2]))
        while done < len(spans):
            # each break makes at most one slot more, and a block is divided in two when it is full
            head, slots = self._state.head, min(breaks, 2 * (len(spans) - done))
            blocks = int(head[H.BLOCKS]) + 2 * slots // BLOCK + 1
            lacking = slots - head[H.SPARE_ROWS], blocks - head[H.SPARE_BLOCKS]
            if max(lacking) > 0:
                self.grow(max(int(lacking[0]), int(lacking[1]) * _SLOTS_PER_BLOCK))
            steps = None if nodes is None else nodes.arrays
            done, is_short = book_all(done, bookings, self._state, steps)
            if nodes is not None:
                note_all_gaps(nodes.arrays)
                if is_short:
                    nodes.grow()
            if is_short:
                continue
            if done < len(spans):
                yield done
                done += 1

    def release(self, booking: Booking) -> None:
        """Release a booking: the exact inverse of `book`."""
        self._forget()
        self._take(booking, 1)

    def pass_time(self, seconds: int) -> None:
        """Make second `seconds` the new second 0, as if the same was booked from then on; no booking ends before it."""
        if seconds > 0:
            self._forget()
            pass_time(seconds, self._state)
            if self._nodes is not None:
                pass_time_by_node(seconds, self._nodes.arrays)

    def marked(self) -> TimelineMark:
        """Return a mark of the current bookings, for `back_to`."""
        nodes = None if self._nodes is None else self._nodes.copy()
        return TimelineMark(_copied(self._state), nodes)

    def back_to(self, mark: TimelineMark) -> None:
        """Restore the bookings at the time of the mark."""
        self._forget()
        self._state = _copied(mark.state)
        self._nodes = None if mark.nodes is None else mark.nodes.copy()

    def is_free(self, booking: Booking) -> bool:
        """Return whether the amounts of a booking are free during its whole interval."""
        return self.free_until(booking, booking.end) == booking.end

    def free_until(self, booking: Booking, end: int) -> int:
        """Return the first second, from a booking's start on, at which not all of it is free, or `end`."""
        state, start = self._state, booking.start
        taken = _summed(booking.columns, booking.amounts)
        if self._nodes is not None:
            end = free_until_by_node(start, end, *taken, self._nodes.arrays)
        else:
            end = free_until(start, end, *taken, state.rows, state.blk, state)
        of_system = booking.system_columns, booking.system_amounts
        return int(free_until(start, end, *of_system, state.srows, state.sblk, state))

    def free_slots(self, start: int, bookings: Sequence[Booking]) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the slots from `start` on, and which of some bookings' amounts are free in each, whatever their times.

        Returns int64 (slots,), the first second of each slot, ascending from `start`, of which the last has no end; and
        bool (bookings, slots).
        """
        state, _, _ = self.kernel_arguments()
        place, index = locate(start, state)
        blocks = state.order[place : state.head[H.BLOCKS]]
        counts = state.members[blocks, -1]
        rows = np.concatenate([state.members[block, :count] for block, count in zip(blocks, counts, strict=True)])
        rows, of_slot = rows[index:], np.repeat(blocks, counts)[index:]
        times: Ints = state.slots[rows, 0].copy()
        times[0] = start
        is_free: NDArray[np.bool_] = np.ones((len(bookings), len(rows)), dtype=bool)
        for free, booking in zip(is_free, bookings, strict=True):
            for (columns, amounts), slot_rows, lazy in (
                (_summed(booking.columns, booking.amounts), state.rows, state.blk[:, LAZY]),
                ((booking.system_columns, booking.system_amounts), state.srows, state.sblk[:, LAZY]),
            ):
                there = slot_rows[rows[:, None], columns] + lazy[of_slot[:, None], columns]
                free &= (there >= amounts).all(axis=1)
        return times, is_free

    def _slots_of(self, start: int, end: int) -> tuple[NDArray[Any], list[tuple[int, NDArray[Any]]]]:
        """Return the blocks that lie in ``[start, end)`` as a whole, and the slots of the first and the last block."""
        order, members = self._state.order, self._state.members
        place, index = locate(start, self._state)
        last_place, last_index = locate(end - 1, self._state)
        first, last = members[order[place]], members[order[last_place]]
        parts = [(order[place], first[index : first[-1]]), (order[last_place], last[: last_index + 1])]
        if place == last_place:
            parts = [(order[place], first[index : last_index + 1])]
        return order[place + 1 : last_place], parts

    def _forget(self) -> None:
        """Drop remembered starts: they hold only while nothing is given back."""
        self._bounds[:, 0, 0] = 0
        self._state.head[H.FREED] = FOREVER

    def earliest_fit(self, demand: int, *, earliest: int, latest: int, duration: int) -> Fit | None:
        """Return the earliest start in ``[earliest, latest]`` at which `demand` fits, and where; or None."""
        window = demand, max(earliest, 0), duration, latest
        if self._nodes is None:
            start, count = earliest_fit(*window, *self.kernel_arguments())
        else:
            tables, scratch = self.instant_views()
            start, count = earliest_fit_by_node(*window, self._state, self._nodes.arrays, tables, scratch)
        return None if start < 0 else Fit(int(start), self.entries_found(count))

    def fit_late(self, demand: int, held: Booking, now: int) -> Entries | None:
        """Return where a booked demand can move to, at the same time, so that much is left of what is free at `now`:
        first to what is not free then; None if no such place is found. What it holds is no obstacle.
        """
        tables, scratch = self.instant_views()
        later, free = (
            amounts.astype(np.int32) for amounts in (self.least_free(held.start, held.end)[0], self.free_at(now)[0])
        )
        np.add.at(later, held.columns, held.amounts)
        count = instant_kernels.map_late(demand, free, later, free.copy(), tables, scratch)
        return scratch.entries[:count].copy() if count else None

    def free_from(self, demand: int, start: int, end: int) -> int:
        """Return the earliest second in ``[start, end]`` from which each kind of `demand` fits until `end`."""
        return int(free_from(demand, start, end, *self.kernel_arguments()))

    def find_sequence(
        self, sequences: StepSequences, sequence: int, *, earliest: int, latest: int, end_by: int, tries: int
    ) -> list[tuple[int, Entries]] | None:
        """Return begin and entries of each step of a sequence that completes as early as is found, and then starts as
        late; None if no place is found.

        `sequences`, `sequence`: the sequence's index. `earliest`, `latest`: the limits of its start. `end_by`: the
        latest end. `tries`: the number of schedules with held steps for which a mapping is tried.
        """
        tables, timeline, trial = self.sequence_arguments(sequences)
        steps = sequences.num_steps[sequence]
        place = step_kernels.Place(
            begins=np.zeros(steps, dtype=np.int64),
            found=np.zeros((sequences.most_entries[sequence], 3), dtype=np.int32),
            spans=np.zeros(steps + 1, dtype=np.int64),
        )
        if not step_kernels.find_sequence(sequence, earliest, latest, end_by, tries, place, tables, timeline, trial):
            return None
        parts = np.split(place.found[: place.spans[-1]], place.spans[1:-1])
        return list(zip(place.begins.tolist(), parts, strict=True))

    def sequence_arguments(
        self, sequences: StepSequences
    ) -> tuple[step_kernels.Sequences, step_kernels.TimelineArrays, step_kernels.Trial]:
        """Return the arguments of the kernels for step sequences: their tables, the timeline, and a scratch."""
        timeline = step_kernels.TimelineArrays(*self.kernel_arguments())
        return sequences.tables, timeline, sequences.trial(self.demands.num_columns, _most_kinds(timeline.tables))

    def booking(self, start: int, end: int, taken: Mapping[int, int], licenses: Mapping[int, int]) -> Booking:
        """Return a booking of amounts by node column, and by system column for what no node has."""
        columns = np.array(list(taken), dtype=np.int64)
        amounts = np.array(list(taken.values()), dtype=np.int64)
        system = np.zeros(len(self.demands.layout.system_capacity), dtype=np.int64)
        for sums in self._known.colsys[columns].T:
            np.add.at(system, sums[sums >= 0], amounts[sums >= 0])
        for number, amount in licenses.items():
            system[number] += amount
        changed = np.flatnonzero(system)
        return Booking(start, end, columns, amounts, changed, system[changed])

    def booking_of(self, demand: int, entries: Entries, start: int, end: int) -> Booking:
        """Return the booking of a demand placed at `entries` in ``[start, end)``."""
        tables, scratch = self.instant_views()
        filled, systems = placement_columns(demand, entries, len(entries), tables, scratch)
        of_nodes = scratch.columns[:filled].copy(), scratch.amounts[:filled].copy()
        return Booking(start, end, *of_nodes, scratch.scolumns[:systems].copy(), scratch.samounts[:systems].copy())

    # --- many jobs ----------------------------------------------------------------------------------------------

    def plan(
        self,
        table: JobTable,
        queue: Ints,
        progress: Callable[[int, int], None] | None = None,
        choices: Choices | None = None,
    ) -> int:
        """Plan and book the jobs `queue`, each as early as it fits beside those before it; return how many got a start.

        With `choices` a job gets the mode that costs it least. One that has a place keeps it or gets an earlier one.
        """
        done, moved = 0, 0
        lacking = len(self.demands) - len(self._bounds)
        if lacking > 0:
            self._bounds = np.concatenate([self._bounds, np.zeros((lacking, _MEMORY + 1, 3), dtype=np.int64)])
        while done < len(queue):
            tables, scratch = self.instant_views()
            portion = (
                queue,
                done,
                min(done - done % PORTION + PORTION, len(queue)),
                self._bounds,
                choices,
                table.arrays(),
            )
            steps = None if self._nodes is None else self._nodes.arrays
            code, done, more = place_jobs(*portion, self._state, steps, tables, scratch)
            moved += more
            if code != R.DONE:
                self.make_room(code, table)
            elif progress is not None:
                progress(done, len(queue))
        return moved

    def backfill(self, table: JobTable, queue: Ints, progress: Callable[[int, int], None] | None = None) -> int:
        """Try once, in this order, to start each job earlier, none later; return how many got a start (OCCS-34)."""
        if self._state.head[H.FREED] < FOREVER:
            self._forget()
        return self.plan(table, queue, progress)

    def make_room(self, code: int, table: JobTable) -> None:
        """Enlarge the arrays that a kernel for a table of jobs asks for."""
        if code == R.GROW_STATE:
            self.grow()
        elif code == R.GROW_NODES and self._nodes is not None:
            self._nodes.grow()
        else:
            room = max(len(table.pool), len(self._scratch.entries))
            table.pool = np.concatenate([table.pool, np.zeros((room, 3), dtype=np.int32)])

    # --- looking ------------------------------------------------------------------------------------------------

    def breakpoints(self) -> Ints:
        """Return the starts of all slots, ascending; the first is 0."""
        state = self._state
        used = state.order[: state.head[H.BLOCKS]]
        rows = [row for block in used for row in state.members[block, : state.members[block, -1]]]
        starts: Ints = state.slots[rows, 0]
        return starts

    def free_at(self, time: int) -> tuple[Ints, Ints]:
        """Return the free amounts at `time`: of the node columns, and of the system columns."""
        return self.least_free(time, time + 1)

    def least_free(self, start: int, end: int) -> tuple[Ints, Ints]:
        """Return the amounts that are free throughout ``[start, end)``: of node columns, and of system columns."""
        state = self._state
        between, parts = self._slots_of(start, end)
        found: list[Ints] = []
        of_system = state.srows, state.sblk
        if self._nodes is not None:
            found.append(self._nodes.least_free(start, end, self._known).astype(np.int64))
        for slot_rows, blocks in (of_system,) if self._nodes is not None else ((state.rows, state.blk), of_system):
            least = [blocks[between, LOW].min(axis=0)] if len(between) else []
            least += [slot_rows[inside].min(axis=0) + blocks[block, LAZY] for block, inside in parts]
            found.append(np.min(least, axis=0).astype(np.int64))
        return found[0], found[1]

    def idle_nodes(self, free: Ints) -> NDArray[np.bool_]:
        """Return which nodes are completely free; `free` has the amount of each node column."""
        tables = self._known
        idle: NDArray[np.bool_] = np.ones(self.demands.layout.num_nodes, dtype=bool)
        for (first, length, _), columns in zip(tables.runs.tolist(), self.demands.columns, strict=False):
            for column in columns:
                whole = slice(column, column + length)
                idle[first : first + length] &= free[whole] == tables.capacity[whole]
        return idle


def _summed(columns: Ints, amounts: Ints) -> tuple[Ints, Ints]:
    """Return each column once, with the sum of its amounts: a node may have chunks of several kinds."""
    once, place = np.unique(columns, return_inverse=True)
    sums: Ints = np.zeros(len(once), dtype=np.int64)
    np.add.at(sums, place, amounts)
    return once, sums


def _empty_state(capacity: NDArray[Any], system: Ints, rows: int = 256) -> TimelineState:
    """Return the arrays of a timeline on which nothing is booked, with space for this many slots."""
    blocks = rows // _SLOTS_PER_BLOCK
    head = np.zeros(len(H), dtype=np.int64)
    slots = np.zeros((rows, 2), dtype=np.int64)
    slots[0] = 0, 1
    members = np.zeros((blocks, BLOCK + 1), dtype=np.int32)
    members[0, -1] = 1
    free = np.zeros((rows, len(capacity)), dtype=capacity.dtype)
    free[0] = capacity
    blk = np.zeros((blocks, 2, len(capacity)), dtype=capacity.dtype)
    blk[0, LOW] = capacity
    srows = np.zeros((rows, len(system)), dtype=np.int64)
    srows[0] = system
    sblk = np.zeros((blocks, 3, len(system)), dtype=np.int64)
    sblk[0, LOW] = sblk[0, HIGH] = system
    spare = np.zeros((2, rows), dtype=np.int32)
    for stack, count in zip(spare, (rows, blocks), strict=True):
        stack[: count - 1] = np.arange(count - 1, 0, -1)
    head[H.BLOCKS] = 1
    head[H.FREED] = FOREVER
    head[H.SPARE_ROWS], head[H.SPARE_BLOCKS] = rows - 1, blocks - 1
    order = np.zeros(blocks, dtype=np.int32)
    return TimelineState(head, slots, order, members, free, blk, srows, sblk, spare)


def _copied(state: TimelineState, lacking: int = 0) -> TimelineState:
    """Return a copy of a timeline whose arrays have so many more slots, doubled in number, and blocks for them."""
    head, spare = state.head.copy(), state.spare
    factor = 1
    while factor * len(state.slots) < len(state.slots) + lacking:
        factor *= 2
    more = np.zeros((2, factor * spare.shape[1]), dtype=spare.dtype)
    tops = []
    counters = (len(state.slots), H.SPARE_ROWS), (len(state.order), H.SPARE_BLOCKS)
    for stack, (old, counter) in enumerate(counters):
        new, count = factor * old, int(head[counter])
        in_use = np.ones(old, dtype=bool)
        in_use[spare[stack, :count]] = False
        tops.append(int(np.flatnonzero(in_use)[-1]) + 1)
        more[stack, : new - old] = np.arange(new - 1, old - 1, -1)
        more[stack, new - old : new - old + count] = spare[stack, :count]
        head[counter] = new - old + count

    def copied(array: NDArray[Any], top: int) -> NDArray[Any]:
        grown = np.zeros((factor * len(array), *array.shape[1:]), dtype=array.dtype)  # only what is written takes time
        grown[:top] = array[:top]
        return grown

    of_slots, of_blocks = tops
    return TimelineState(
        head=head,
        slots=copied(state.slots, of_slots),
        order=copied(state.order, of_blocks),
        members=copied(state.members, of_blocks),
        rows=copied(state.rows, of_slots),
        blk=copied(state.blk, of_blocks),
        srows=copied(state.srows, of_slots),
        sblk=copied(state.sblk, of_blocks),
        spare=more,
    )
