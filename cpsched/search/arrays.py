"""The arrays of the search.

Each job runs in one of its *modes*. Its place is a list of *parts*, one after the other, each with the number of a mode
or of a step, and with its entries: rows of (node, kind, chunks). A rigid job has one mode and one part, an evolving job
a part for each of its steps, a malleable one a part for each change of its share, all on the same nodes.

Rows are the waiting jobs and, behind these, the running ones that a plan may change. A running job keeps its start, its
nodes, and what it takes of them in each mode; it has no entries.
"""

from typing import NamedTuple

from cpsched.rusv import Array, kernels, step_kernels

#: A timeline, as its kernels take it.
Timeline = step_kernels.TimelineArrays

#: Places in `Step.figures`. `FINES` is the part of the value that is paid for jobs that the plan leaves out.
VALUE, STEPS, KEPT, FINES = 0, 1, 2, 3
#: The demand of the mode in which a plan leaves a job out. It is the job's last one.
NO_DEMAND = -1
#: The most parts of a malleable job.
MOST_PARTS = 16
#: The result for a list in which a job has no place, or that costs too much.
FAILED = 3


class Counted(NamedTuple):
    """Jobs on whole nodes of one kind, and the nodes in use, see `count_kernels`."""

    #: int64 (jobs + 1,): where the pieces of each job begin.
    first_piece: Array
    #: int64 (pieces,): begin and end, counted from the start of the job, and the number of nodes.
    since: Array
    until: Array
    amounts: Array
    #: int64 (1,): the number of nodes.
    capacity: Array
    #: int64 (·,): the breakpoints, and the nodes in use from each on; int64 (1,): how many breakpoints there are.
    times: Array
    used: Array
    size: Array
    #: The same for the plan that was kept last.
    kept_times: Array
    kept_used: Array
    kept_size: Array


class Jobs(NamedTuple):
    """What is planned."""

    #: int64 (rows + 1,): where the modes of each job begin; an evolving job has one.
    first_mode: Array
    #: int64 (modes,): demand, last start, and seconds from start to end.
    demands: Array
    latest: Array
    durations: Array
    #: float64 (modes, ·): what starts cost, see `cost_of`. Where jobs change while they run, only those of first modes
    #: count, and each second that a job takes longer has a price.
    costs: Array
    #: Of the waiting jobs: int64, the earliest start that the job and its dependencies allow; float64, what that costs
    #: in the cheapest mode; and float64, by which jobs are inserted, small ones first.
    earliest: Array
    least: Array
    ranks: Array
    #: int64 (waiting jobs,): the mode in which lists plan a job; -1: that which costs it least.
    listed: Array
    #: The distances between the jobs; its `starts` are those of the plan.
    linked: kernels.Jobs
    #: Where nodes are only counted, and there is no timeline; None elsewhere.
    counted: Counted


class Places(NamedTuple):
    """Places of some jobs."""

    #: int64 (rows,): start (`NOWHERE`: none), end, and number of parts.
    starts: Array
    ends: Array
    counts: Array
    #: float64 (rows,): what the place costs.
    paid: Array
    #: int64 (rows, ·): start and end of each part, its mode or step, its first entry in the job's space, and how many
    #: it has.
    begins: Array
    until: Array
    numbers: Array
    first_entry: Array
    entries: Array
    #: int64 (rows + 1,): where the space of each row begins in the pool; int32 (·, 3): entries.
    spaces: Array
    pool: Array


class Step(NamedTuple):
    """What a step writes down."""

    #: float64 (4,): see ``VALUE``; carried from call to call.
    figures: Array
    #: uint64 (1,): the state of the random numbers.
    random: Array
    #: int64 (jobs + 1,): the step in which a job was last removed; the last one is the present step.
    marks: Array
    #: int64 (·,): the removed jobs, as many as a step may remove; float64 and int64: their keys, and the order in which
    #: they are inserted.
    chosen: Array
    keys: Array
    order: Array
    #: uint64 (jobs, ·): a bit for each node that a job holds in the plan that was kept last.
    nodes_of: Array
    #: int64 (nodes,): the number of chunks that fit on a node, and how many of them are taken.
    fits: Array
    taken: Array
    #: The old places of the removed jobs, and of one that is shrunk for them; a place that is tried.
    old: Places
    trial: Places


class Changes(NamedTuple):
    """How jobs change while they run."""

    #: int64 (rows,): the step sequence of an evolving job; -1 for the others.
    sequence: Array
    #: int64 (rows,): units of work, of which a job does a whole number in each second, in each of its modes; seconds
    #: from start to end that cost nothing; the last end.
    units: Array
    durations: Array
    last_ends: Array
    #: int64 (modes,): units of work in a second; and a job's modes, counted from its first one, the fastest first.
    rates: Array
    by_speed: Array
    #: float64 (rows,): the prices of a second more from start to end, and of a core second that is held in vain; and of
    #: an evolving job's slowdown: of a second, times the seconds that the job takes. int64: when it was submitted.
    late: Array
    waste: Array
    slow: Array
    submits: Array
    #: int64 (steps,): the cores of each step of all sequences.
    cores: Array
    #: int64 (·,): the rows of the jobs with several modes.
    lenders: Array
    #: int64 (kinds,): which kind of chunks of its request a kind of a demand is; int64 (modes, ·): the kind of the
    #: mode's demand for each kind of chunks; int32 (·, 3): entries in another mode.
    chunk_of: Array
    kinds_in: Array
    turned: Array
    #: What running jobs take in each of their modes: int64 (modes + 1,), where its columns begin in the arrays.
    first_column: Array
    first_system: Array
    running: kernels.Taken
    #: What one job takes on its nodes in each of its modes: int64 (modes,), how many columns, -1 if it may not have the
    #: nodes in the mode; the arrays have a row for each mode.
    num_columns: Array
    num_systems: Array
    in_modes: kernels.Taken
    #: Parts with which a job ends as early, and as late, as it can.
    faster: Places
    slower: Places
    #: The step sequences of evolving jobs, the scratch of the search for their places, and the place of one.
    sequences: step_kernels.Sequences
    sequence_trial: step_kernels.Trial
    sequence_place: step_kernels.Place
