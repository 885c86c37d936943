"""The arrays of the event loop, what the numbers in them mean, and the sorted lists that some of them are."""

from typing import NamedTuple

from cpsched.rusv import Array, inner_kernel, kernel, numbered

#: Places in `SimState.clock`, of which there are `C.CLOCK`, and columns of `jobs`, `runs` and `reserved`.
C = numbered(
    "C",
    "NOW SUBMITTED QUEUED RUNNING HEAP POOL OUTAGE ATTEMPTS PASSES STAMP SHADOW HEAD UNTIL DONE IS_FULL LACKS RESERVED "
    "GONE CHANGES MODES FIXED OVERTAKING RESUME LEVEL SPARE BOOKINGS EXPIRED OPENS BLOCKED STEPS HORIZON WORK LONGEST "
    "COME TURN REPLAYED REPLAY_QUEUED REPLAY_RUNNING COMPARED NEXT_DAY AS_EASY EASY_FROM EASY_UNTIL EASY_SECONDS "
    "NOTICE EXEMPT CHOICE ASLEEP DOZES CLOCK",
)
J = numbered("J", "SUBMIT ARRIVAL WALLTIME LENGTH ENDING")
R = numbered("R", "START END ENDING STARTS FIRST COUNT")
V = numbered("V", "JOB START END FIRST COUNT")
#: Columns of `stops`, and places in `stop_rules`.
S = numbered("S", "CLASS LEVEL COST INTERVAL COUNT TOLD LEFT WALLTIME")
P = numbered("P", "NOTICE EXEMPT STOPS RESUMES BY_SIZE")

# kinds of events, in their order within a second
ENDED, EXCEEDED, EXPIRED, OPENED, BOOKED, RELEASED = 0, 1, 2, 3, 4, 5
BREAKS, RETURNS = 0, 1

AFTER_START, AFTER_OK, AFTER_ANY, AFTER_NOT_OK = 0, 1, 2, 3
WAITING, REFUSED, COMPLETED, KILLED = 0, 1, 2, 3

# backfill rules: which jobs may start ahead of a head that has to wait
NOBODY, ANYBODY, NOT_DELAYING, RESERVING = 0, 1, 2, 3
# orders: the key by which the queue is sorted
BY = numbered("BY", "SUBMISSION WALLTIME AREA F1 WSPT KEY SMITH WFP3 UNICEF")

# what predicted runtimes are used for: nothing, the order of the queue, or expected ends and reservations too
PREDICTS_NOTHING, PREDICTS_ORDER, PREDICTS_ALL = 0, 1, 2
# what runtimes are predicted from: the last two jobs of the user, or the classes of the job
EXPECTS_USER, EXPECTS_CLASSES = 0, 1

PAUSED, FINISHED, LACKS_ROOM = 0, 1, 2

# the arrival of a job that is submitted when other jobs release it
SUBMITTED_LATER = -2


class RuleNumbers(NamedTuple):
    """A queue rule in numbers."""

    backfill: int
    order: int
    #: The number of jobs after the head that are considered.
    depth: int
    #: A job that could have started for more than so many seconds is starving; -1: none is.
    max_starve: int
    #: What predicted runtimes are used for, see ``PREDICTS_*``, and what they are predicted from, ``EXPECTS_*``.
    predicts: int
    expects: int
    #: The most that a key may be in multiples of that of the first blocked job; -1: anything.
    gate: float
    #: A job is due when it has waited for so many times as long as under EASY (`queue_kernels`); -1: none is.
    due_after: float
    #: The waits here and in the replay of EASY are compared when so many jobs have started there (`compare_waits`), or,
    #: if they are longer here in all, a few.
    trusted: int
    few: int
    #: Whether jobs are counted on interchangeable nodes: one that does not fit beside the head's reservation does not
    #: fit either after others have started, and several reservations need no nodes.
    is_counted: bool


class SimState(NamedTuple):
    """The state of the simulation, and the jobs in the order of submission."""

    #: int64 (CLOCK,): counters and the state of the pass, see `C`.
    clock: Array
    #: int64 (levels, nodes) and (levels,): of each level that slows jobs down the group of each node, and by how many
    #: percent; and (jobs, 2): real length, -1 if it is not known, and real ending of each job where nothing does.
    near: Array
    slowdown: Array
    base: Array
    #: int64 (jobs, 5): submission; arrival (below 0: when the jobs that it waits for release it); walltime; real
    #: length; real ending.
    jobs: Array
    #: int32 (jobs,): its demand; -1: it can never start here.
    demand: Array
    #: float64 (jobs,): all cores that it asks for.
    cores: Array
    #: int64 (jobs + 1,) and (·, 6): of a job that has a choice what it can run by, first what it waits by: demand,
    #: walltime, real length, cores, number in the document, seconds after its submission from which on it is open. None
    #: of all other jobs.
    choices_of: Array
    choices: Array
    #: int64 (jobs,): the number of that by which it runs or waits.
    choice: Array
    #: int64 (jobs + 1,) and (·, 2): the milestones that wait for a job: (milestone, type).
    links_of: Array
    links: Array
    #: int64 (milestones + 1,) and (·, 2): the jobs that wait for a milestone: (job, delay).
    after_of: Array
    after: Array
    #: int64 (milestones,): the number of jobs that have not passed it yet, and the second at which the last one did.
    missing: Array
    passed: Array
    #: int64 (jobs,) and (users, 2): the user of a job, and how long the last two jobs of each user ran (0: unknown).
    user: Array
    history: Array
    #: int64 (jobs,): the number of milestones that have not released it yet, and the second from which on it may start:
    #: it has been submitted, its ``not_before`` has passed, and all these milestones have released it.
    awaited: Array
    release: Array
    #: int64 (jobs, 6): start, end (estimated, then real), ending, number of starts, first entry, number of entries.
    runs: Array
    #: int64 (jobs,): its estimated length, and how often that was raised.
    estimate: Array
    bumps: Array
    #: int64 (jobs,): its predicted runtime, for the order of the queue; the walltime where nothing is predicted.
    predicted: Array
    #: float64 (jobs,): the amount that each second of its length adds to its key by Smith's rule, or its own key.
    smith: Array
    #: float64 (jobs,): the largest share of the machine that it takes of anything.
    share: Array
    #: int64 (jobs, A): what it asks for of each resource and licence that any job asks for.
    asked: Array
    #: int64 (A,) twice: what is free of these in the replay, and beside the first blocked job when that starts there.
    replay_free: Array
    replay_beside: Array
    #: int64 (jobs,): the jobs in the order in which they came, `C.COME` of them; `C.TURN` have come in the replay.
    turns: Array
    #: int64 (jobs,) and (jobs, 2): the jobs that wait in the replay (`easy_kernels`), in the order in which they came,
    #: and those that run there, ascending by their ends if they run for their walltimes, (end, job).
    replay_queue: Array
    replay_ends: Array
    #: int64 (jobs,): how long it has waited in the replay; -1: it has not started there.
    replay_waits: Array
    #: float64 (3,): of the first `C.COMPARED` jobs of `turns`, which have ended, the weighted queue time that was lost
    #: against the replay, that of the replay, and their own (`easy_kernels`); made anew from second `C.NEXT_DAY` on.
    compared: Array
    #: float64 (jobs,): its key in the queue.
    keys: Array
    #: int64 (jobs, Q): the amounts that a running job holds of the system columns.
    sums: Array
    #: int64 (jobs,): the waiting jobs, ascending by (key, job).
    queue: Array
    #: int64 (jobs, 2): the running jobs, ascending by (estimated end, job).
    ends: Array
    #: int64 (·, 3): future events, (time, kind, job), as a binary heap; those of runs that were cut short are ignored.
    heap: Array
    #: int32 (·, 3): entries (node, kind, chunks) of all placements.
    pool: Array
    #: int64 (·, 4) and (·,): outages ascending, (time, kind, first, last) of nodes in `out`.
    outages: Array
    out: Array
    #: int64 (nodes,): the number of current outages of a node.
    down: Array
    #: int64 (·, 7): runs that were cut short: job, start, end, first entry, number of entries, choice, seconds kept.
    attempts: Array
    #: int64 (demands, 2): the last pass in which a demand did not fit: for a short job, for a long one.
    failed: Array
    #: int64 (demands, 4): the same for jobs that run until more is set aside, and the least lengths of such jobs.
    bounded: Array
    #: int64 (jobs, 2), int64 (·,), int64 (·,): of jobs that ran before the beginning, or are not at full share, (first,
    #: number) of node columns with amounts.
    fixed: Array
    fixed_columns: Array
    fixed_amounts: Array
    #: int64 (·, 3): changes of shares in time order, (job, time, first index in `modes`), and int8 (·,): the mode of
    #: the job from then on, on each of its entries.
    changes: Array
    modes: Array
    #: int64 (jobs,), (2 * jobs,) and (jobs,): the jobs that have just arrived, those that have just ended or were cut
    #: short, and those that have just become too late.
    arrived: Array
    gone: Array
    expired: Array
    #: int64 (·,): the seconds by which an estimate is raised at the first correction, the second one, and so on.
    steps: Array
    #: int64 (jobs,): the last second at which a job may start, and the only one (-1: any).
    latest: Array
    start_at: Array
    #: int64 (K,): the seconds at which other amounts are set aside, ascending; the first one is the beginning, and
    #: nothing is set aside from the last one on. None where nothing ever is. `C.LEVEL` is the index of the present one.
    aside_times: Array
    #: int64 (A,): the columns of which something is set aside: node columns, and -1 - q for a system column q.
    aside_columns: Array
    #: int64 (columns,) and (systems,): the index in `aside_columns`, -1 of all others.
    aside_of: Array
    aside_of_sums: Array
    #: int64 (K, A): the amounts that are set aside from these seconds on; those free at these seconds, beside that and
    #: the running jobs, if these run for their walltimes (less than 0 where they have some of it).
    aside_levels: Array
    aside_ahead: Array
    #: int64 (A,): what running jobs do not have of the amounts that are set aside now; what the head takes of them.
    aside_held: Array
    aside_head: Array
    #: int64 (systems,): the amounts of an empty machine.
    whole: Array
    #: int64 (jobs, L): the classes of each job, from the widest to the narrowest; float64 (classes, 2): the decayed sum
    #: of the ratios of runtime to walltime of the ended jobs of each class, and of their number.
    classes: Array
    learnt: Array
    #: int64 (jobs,): the last second at which a job may start that has a promise, ``FOREVER`` of all others.
    promised: Array
    #: int64 (V, 5): the reservations of blocked jobs, see `V`, of which `C.BLOCKED` are there; int64 (·,) and (·,):
    #: the node columns and amounts of each. None where jobs are counted.
    reserved: Array
    reserved_columns: Array
    reserved_amounts: Array
    #: int32 (V, columns): what is free at the start of each reservation, beside all of them.
    beside: Array
    #: int64 (P,) and (P, systems): the sums that are free from these seconds on, ascending from now, beside running
    #: jobs and reservations; of `C.STEPS` seconds.
    step_times: Array
    step_sums: Array
    #: int64 (K, A): as `aside_ahead`, beside the reservations too.
    ahead: Array
    #: int64 (jobs, 8), none where no job can be stopped: its class, and how far that is above others (0: it may stop
    #: none); the cost of a checkpoint and the seconds between two (0: none, -1: it is suspended); how often it was
    #: stopped; since when it has notice (-1: it has none); its real length from now on, whatever its walltime; its own
    #: walltime.
    stops: Array
    #: int64 (5,): see `P`; bool (classes, classes): whose jobs may stop whose that can be stopped.
    stop_rules: Array
    may_stop: Array
    #: bool (K,): the system columns of licences that stand for rules: no job is stopped to make room in these.
    of_rules: Array
    #: float64 (jobs,): what a second of its work is worth on each core; float64 (jobs,), int64 (3, jobs): for the
    #: choice of jobs to stop.
    stop_weights: Array
    stop_prices: Array
    stoppable: Array
    #: int64 (jobs,): the suspended jobs, `C.ASLEEP` of them, the highest level first, then in the order of their stops;
    #: `C.DOZES` counts what has changed of what they have. None where no job is suspended, as of what follows.
    asleep: Array
    #: bool (columns,): the columns of cores, which they lend; int64 (columns,): what they had of these, a scratch; and
    #: what is free of that, and is left to them.
    lends: Array
    owed: Array
    withheld: Array


class Machine(NamedTuple):
    """The free amounts of node columns and of system columns: now; after all ends that are expected by ``C.UNTIL``,
    whatever is set aside; at the start of the head's reservation, beside it; for a job that still runs at that start;
    and for a job that runs until other amounts are set aside.
    """

    free: Array
    sfree: Array
    future: Array
    sfuture: Array
    after: Array
    safter: Array
    low: Array
    slow: Array
    room: Array
    sroom: Array


@inner_kernel
def is_before(heap: Array, one: int, other: int) -> bool:
    """Tell whether an event comes before another one: by time, kind, job."""
    for part in range(3):
        if heap[one, part] != heap[other, part]:
            return heap[one, part] < heap[other, part]
    return False


@inner_kernel
def swap(heap: Array, one: int, other: int) -> None:
    """Exchange two events."""
    for part in range(3):
        heap[one, part], heap[other, part] = heap[other, part], heap[one, part]


@kernel
def push(time: int, kind: int, job: int, heap: Array, clock: Array) -> None:
    """Add an event."""
    i = clock[C.HEAP]
    clock[C.HEAP] += 1
    heap[i, 0], heap[i, 1], heap[i, 2] = time, kind, job
    while i > 0 and is_before(heap, i, (i - 1) // 2):
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@inner_kernel
def pop(heap: Array, clock: Array) -> tuple[int, int, int]:
    """Remove the first event; return (time, kind, job)."""
    time, kind, job = heap[0, 0], heap[0, 1], heap[0, 2]
    clock[C.HEAP] -= 1
    last = clock[C.HEAP]
    swap(heap, 0, last)
    i = 0
    while True:
        least = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < last and is_before(heap, child, least):
                least = child
        if least == i:
            return time, kind, job
        swap(heap, i, least)
        i = least


@inner_kernel
def sort_by_key(jobs: Array, count: int, keys: Array, spare: Array) -> None:
    """Sort the first jobs of a list by (key, job), merging ever longer sorted runs; `spare` has space for them.

    numba's own sorting takes several seconds to compile.
    """
    length = 1
    while length < count:
        for begin in range(0, count - length, 2 * length):
            middle, end = begin + length, min(begin + 2 * length, count)
            if comes_before(jobs[middle - 1], jobs[middle], keys):
                continue
            for k in range(begin, middle):
                spare[k] = jobs[k]
            left, right, place = begin, middle, begin
            while left < middle:
                if right < end and comes_before(jobs[right], spare[left], keys):
                    jobs[place] = jobs[right]
                    right += 1
                else:
                    jobs[place] = spare[left]
                    left += 1
                place += 1
        length *= 2


@inner_kernel
def comes_before(job: int, other: int, keys: Array) -> bool:
    """Tell whether a job is before another one in a queue: by its key, then by its number."""
    return keys[job] < keys[other] or (keys[job] == keys[other] and job < other)


@inner_kernel
def place_of_end(end: int, job: int, ends: Array, count: int) -> int:
    """Return the index of (end, job) among the running jobs, or that at which it would be inserted."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ends[middle, 0] < end or (ends[middle, 0] == end and ends[middle, 1] < job):
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def insert_end(end: int, job: int, ends: Array, clock: Array) -> None:
    """Add a job to the running ones."""
    count = clock[C.RUNNING]
    place = place_of_end(end, job, ends, count)
    for i in range(count, place, -1):
        ends[i, 0], ends[i, 1] = ends[i - 1, 0], ends[i - 1, 1]
    ends[place, 0], ends[place, 1] = end, job
    clock[C.RUNNING] += 1


@inner_kernel
def remove_end(end: int, job: int, ends: Array, clock: Array) -> None:
    """Remove a job from the running ones."""
    place = place_of_end(end, job, ends, clock[C.RUNNING])
    clock[C.RUNNING] -= 1
    for i in range(place, clock[C.RUNNING]):
        ends[i, 0], ends[i, 1] = ends[i + 1, 0], ends[i + 1, 1]


@inner_kernel
def place_in_queue(job: int, keys: Array, queue: Array, clock: Array) -> int:
    """Return the index of a job in the queue, or that at which it would be inserted."""
    low, high = 0, clock[C.QUEUED]
    while low < high:
        middle = (low + high) // 2
        if comes_before(queue[middle], job, keys):
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def enqueue(job: int, keys: Array, queue: Array, clock: Array) -> int:
    """Insert a job into the queue; return its index."""
    place = place_in_queue(job, keys, queue, clock)
    for i in range(clock[C.QUEUED], place, -1):
        queue[i] = queue[i - 1]
    queue[place] = job
    clock[C.QUEUED] += 1
    return place
