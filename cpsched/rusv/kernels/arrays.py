"""The arrays of the kernels; `constants.py` has what the numbers in them mean."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class TimelineState(NamedTuple):
    """What is free, and when: a timeline."""

    #: int64 (4,): counters, see `H`.
    head: Array
    #: int64 (rows, 2): start of the slot; how many bookings begin or end there (the origin has one more).
    slots: Array
    #: int32 (blocks,): the blocks in time order.
    order: Array
    #: int32 (blocks, BLOCK + 1): the slots of a block in time order; in the last place how many there are.
    members: Array
    #: int32 (rows, W): free amounts of the node columns, without the block's lazy part.
    rows: Array
    #: int32 (blocks, 2, W): lazy part and minimum of each node column.
    blk: Array
    #: int64 (rows, Q): free amounts of the system columns, without the block's lazy part.
    srows: Array
    #: int64 (blocks, 3, Q): lazy part, minimum and maximum of each system column.
    sblk: Array
    #: int32 (2, rows): stacks of unused rows and blocks.
    spare: Array


class Nodes(NamedTuple):
    """What is free on each node, and when: its own steps from second 0 on, in time order, no two neighbours equal."""

    #: int64 (nodes, 3): first row of a node's steps, how many there are, and how many there is room for, see `N`.
    spans: Array
    #: int64 (rows, 1 + resources): the second at which a step begins, and the free amounts; 0 of what the node has not.
    steps: Array
    #: int64 (1,): rows in use, or given up, from the first one on.
    used: Array
    #: int64 (W,): the node of each node column, and its column in a step.
    node_of: Array
    place_of: Array
    #: int64 (nodes, 1 + resources): the step of each node when nothing is booked.
    idle: Array
    #: int64 (1,): see `nodes.earliest_fit_by_node`.
    lacking: Array
    #: int64 (nodes, 4): from when on a node has something of its first resource, for how long at most before it has
    #: none again, from when on for good, and since when it is idle for good (FOREVER: never), see `G`. After some time
    #: has passed the first may be too early, and the second too long.
    gaps: Array
    #: Scratch, int64 (1 + resources, 2): (column of a step, amount that must be free).
    wanted: Array
    #: Scratch, int64 (nodes + 1, 2): a heap of (second, chunks that may fit from then on), the latest second first.
    coming: Array


class Tables(NamedTuple):
    """What can be asked for, and the machine; tables of demands, segments and runs have a last row with the ends."""

    #: int64 (demands + 1, 7): where the rows of each demand begin in the other tables, its flags, and what is tried
    #: where it does not fit, see `D`.
    demands: Array
    #: int64 (kinds, 4): chunks needed, first segment and that behind the last, which kinds of equal chunks on the same
    #: nodes share, and the most chunks on a node, see `K`.
    kinds: Array
    #: int64 (segments + 1, 3): adjacent nodes that may hold a kind: first, number, first term, see `S`.
    segments: Array
    #: int64 (terms, 2): column of a segment's first node, and the amount that a chunk takes of it.
    terms: Array
    #: float64 (terms, 2): factor and summand that divide by the amount (`count_kind`).
    scale: Array
    #: int64 (·, 2): system column, and the amount that must be free of it; a demand's licences come last.
    sysreq: Array
    #: int64 (·, 2): ranges ``[begin, end)`` of the columns that a demand looks at.
    ranges: Array
    #: int64 (·,): the runs whose nodes a demand may have.
    reach: Array
    #: int64 (runs + 1, 3): equal neighbours: first node, number of nodes, and where their columns begin in `runcols`.
    runs: Array
    #: int64 (·,): columns of the first node of each run.
    runcols: Array
    #: int32 (W,): the amount of each node column when nothing is booked.
    capacity: Array
    #: int64 (W, 2): the system columns that add up a node column, -1 for none.
    colsys: Array
    #: int64 (nodes,): the run of each node.
    run_of: Array


class Scratch(NamedTuple):
    """The arrays that kernels write into: the search and the mapping of a demand, and the amounts of a placement."""

    #: int32 (2, W): the least that is free in a window, while it is looked for.
    free: Array
    #: float64 (nodes,)
    buffer: Array
    #: int32 (·, 3): where a demand was mapped to, rows of (node, kind, chunks).
    entries: Array
    #: int64 (·,): node columns of a placement, and their amounts.
    columns: Array
    amounts: Array
    #: int64 (Q,): system columns of a placement, and their amounts.
    scolumns: Array
    samounts: Array
    #: int64 (nodes,): the last placement, by the counter `stamp`, that took the node whole.
    stamps: Array
    #: int64 (1,): the number of placements so far.
    stamp: Array


class Taken(NamedTuple):
    """Amounts of node columns and of system columns, int64 (·,)."""

    columns: Array
    amounts: Array
    scolumns: Array
    samounts: Array


class Bookings(NamedTuple):
    """Bookings of which many take the same amounts."""

    #: int64 (bookings, 3): start, end, and which amounts it takes.
    spans: Array
    #: int64 (sets of amounts + 1, 2): where each begins in `columns`, and in `scolumns`.
    firsts: Array
    #: int64 (·,): columns with amounts; a set has each column once.
    columns: Array
    amounts: Array
    scolumns: Array
    samounts: Array


class Links(NamedTuple):
    """The milestones between jobs, and their longest delays: where the entries of each begin in the array behind it,
    int64 (·,) and (·, 2).
    """

    #: Of each job: (milestone that it waits for, delay).
    waits_of: Array
    waits: Array
    #: Of each milestone: (job that must have run, seconds).
    before_of: Array
    before: Array
    #: The same by job: (milestone, seconds).
    leads_of: Array
    leads: Array
    #: Of each milestone: (job that waits for it, delay).
    after_of: Array
    after: Array
    #: Of each job: (another one, most seconds from the start of that one to its own); the same by that one.
    soon_of: Array
    soon: Array
    hurries_of: Array
    hurries: Array


class Choices(NamedTuple):
    """The modes of jobs, each of which is planned in that which costs it least."""

    #: int64 (jobs + 1,): where those of each job begin. They are tried in turn: the sooner a cheap one comes, the less
    #: the others are searched.
    first: Array
    #: int64 (modes, 3): demand, latest start, duration.
    modes: Array
    #: float64 (modes, ·): what starts cost, see ``RATE``.
    costs: Array


class Jobs(NamedTuple):
    """Jobs and their places: the arrays of a `timeline.JobTable`, which describes them."""

    jobs: Array
    starts: Array
    spans: Array
    pool: Array
    used: Array
    links: Links
