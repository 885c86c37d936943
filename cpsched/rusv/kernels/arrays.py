"""The arrays of the kernels; `constants.py` has what the numbers in them mean."""

from typing import Any, NamedTuple

from numpy.typing import NDArray


class TimelineState(NamedTuple):
    """What is free, and when: a timeline."""

    #: int64 (4,): counters, see `H`.
    head: NDArray[Any]
    #: int64 (rows, 2): start of the slot; how many bookings begin or end there (the origin has one more).
    slots: NDArray[Any]
    #: int32 (blocks,): the blocks in time order.
    order: NDArray[Any]
    #: int32 (blocks, BLOCK + 1): the slots of a block in time order; in the last place how many there are.
    members: NDArray[Any]
    #: int32 (rows, W): free amounts of the node columns, without the block's lazy part.
    rows: NDArray[Any]
    #: int32 (blocks, 2, W): lazy part and minimum of each node column.
    blk: NDArray[Any]
    #: int64 (rows, Q): free amounts of the system columns, without the block's lazy part.
    srows: NDArray[Any]
    #: int64 (blocks, 3, Q): lazy part, minimum and maximum of each system column.
    sblk: NDArray[Any]
    #: int32 (2, rows): stacks of unused rows and blocks.
    spare: NDArray[Any]


class Nodes(NamedTuple):
    """What is free on each node, and when: its own steps from second 0 on, in time order, no two neighbours equal."""

    #: int64 (nodes, 3): first row of a node's steps, how many there are, and how many there is room for, see `N`.
    spans: NDArray[Any]
    #: int64 (rows, 1 + resources): the second at which a step begins, and the free amounts; 0 of what the node has not.
    steps: NDArray[Any]
    #: int64 (1,): rows in use, or given up, from the first one on.
    used: NDArray[Any]
    #: int64 (W,): the node of each node column, and its column in a step.
    node_of: NDArray[Any]
    place_of: NDArray[Any]
    #: int64 (nodes, 1 + resources): the step of each node when nothing is booked.
    idle: NDArray[Any]
    #: int64 (1,): see `nodes.earliest_fit_by_node`.
    lacking: NDArray[Any]
    #: int64 (nodes, 4): from when on a node has something of its first resource, for how long at most before it has
    #: none again, from when on for good, and since when it is idle for good (FOREVER: never), see `G`. After some time
    #: has passed the first may be too early, and the second too long.
    gaps: NDArray[Any]
    #: Scratch, int64 (1 + resources, 2): (column of a step, amount that must be free).
    wanted: NDArray[Any]
    #: Scratch, int64 (nodes + 1, 2): a heap of (second, chunks that may fit from then on), the latest second first.
    coming: NDArray[Any]


class Tables(NamedTuple):
    """What can be asked for, and the machine; tables of demands, segments and runs have a last row with the ends."""

    #: int64 (demands + 1, 7): where the rows of each demand begin in the other tables, its flags, and what is tried
    #: where it does not fit, see `D`.
    demands: NDArray[Any]
    #: int64 (kinds, 4): chunks needed, first segment and that behind the last, which kinds of equal chunks on the same
    #: nodes share, and the most chunks on a node, see `K`.
    kinds: NDArray[Any]
    #: int64 (segments + 1, 3): adjacent nodes that may hold a kind: first, number, first term, see `S`.
    segments: NDArray[Any]
    #: int64 (terms, 2): column of a segment's first node, and the amount that a chunk takes of it.
    terms: NDArray[Any]
    #: float64 (terms, 2): factor and summand that divide by the amount (`count_kind`).
    scale: NDArray[Any]
    #: int64 (·, 2): system column, and the amount that must be free of it; a demand's licences come last.
    sysreq: NDArray[Any]
    #: int64 (·, 2): ranges ``[begin, end)`` of the columns that a demand looks at.
    ranges: NDArray[Any]
    #: int64 (·,): the runs whose nodes a demand may have.
    reach: NDArray[Any]
    #: int64 (runs + 1, 3): equal neighbours: first node, number of nodes, and where their columns begin in `runcols`.
    runs: NDArray[Any]
    #: int64 (·,): columns of the first node of each run.
    runcols: NDArray[Any]
    #: int32 (W,): the amount of each node column when nothing is booked.
    capacity: NDArray[Any]
    #: int64 (W, 2): the system columns that add up a node column, -1 for none.
    colsys: NDArray[Any]
    #: int64 (nodes,): the run of each node.
    run_of: NDArray[Any]


class Scratch(NamedTuple):
    """The arrays that kernels write into: the search and the mapping of a demand, and the amounts of a placement."""

    #: int32 (2, W): the least that is free in a window, while it is looked for.
    free: NDArray[Any]
    #: float64 (nodes,)
    buffer: NDArray[Any]
    #: int32 (·, 3): where a demand was mapped to, rows of (node, kind, chunks).
    entries: NDArray[Any]
    #: int64 (·,): node columns of a placement, and their amounts.
    columns: NDArray[Any]
    amounts: NDArray[Any]
    #: int64 (Q,): system columns of a placement, and their amounts.
    scolumns: NDArray[Any]
    samounts: NDArray[Any]
    #: int64 (nodes,): the last placement, by the counter `stamp`, that took the node whole.
    stamps: NDArray[Any]
    #: int64 (1,): the number of placements so far.
    stamp: NDArray[Any]


class Taken(NamedTuple):
    """Amounts of node columns and of system columns, int64 (·,)."""

    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]


class Bookings(NamedTuple):
    """Bookings of which many take the same amounts."""

    #: int64 (bookings, 3): start, end, and which amounts it takes.
    spans: NDArray[Any]
    #: int64 (sets of amounts + 1, 2): where each begins in `columns`, and in `scolumns`.
    firsts: NDArray[Any]
    #: int64 (·,): columns with amounts; a set has each column once.
    columns: NDArray[Any]
    amounts: NDArray[Any]
    scolumns: NDArray[Any]
    samounts: NDArray[Any]


class Links(NamedTuple):
    """The milestones between jobs, and their longest delays: where the entries of each begin in the array behind it,
    int64 (·,) and (·, 2).
    """

    #: Of each job: (milestone that it waits for, delay).
    waits_of: NDArray[Any]
    waits: NDArray[Any]
    #: Of each milestone: (job that must have run, seconds).
    before_of: NDArray[Any]
    before: NDArray[Any]
    #: The same by job: (milestone, seconds).
    leads_of: NDArray[Any]
    leads: NDArray[Any]
    #: Of each milestone: (job that waits for it, delay).
    after_of: NDArray[Any]
    after: NDArray[Any]
    #: Of each job: (another one, most seconds from the start of that one to its own); the same by that one.
    soon_of: NDArray[Any]
    soon: NDArray[Any]
    hurries_of: NDArray[Any]
    hurries: NDArray[Any]


class Choices(NamedTuple):
    """The modes of jobs, each of which is planned in that which costs it least."""

    #: int64 (jobs + 1,): where those of each job begin. They are tried in turn: the sooner a cheap one comes, the less
    #: the others are searched.
    first: NDArray[Any]
    #: int64 (modes, 3): demand, latest start, duration.
    modes: NDArray[Any]
    #: float64 (modes, ·): what starts cost, see ``RATE``.
    costs: NDArray[Any]


class Jobs(NamedTuple):
    """Jobs and their places: the arrays of a `timeline.JobTable`, which describes them."""

    jobs: NDArray[Any]
    starts: NDArray[Any]
    spans: NDArray[Any]
    pool: NDArray[Any]
    used: NDArray[Any]
    links: Links
