"""A line for each job: whether it is as it was, and as an order wants it, without reading the JSON of all jobs.

JSON of all jobs is what Slurm, and who reads it, needs longest for; of some jobs alone squeue 22.05 writes none. A line
is mostly compared with an earlier one of the same job. Its columns are what `JobRecord` has that can change, but for
the excluded nodes, of which squeue has no column, and for estimates, which Slurm changes all the time. No column has a
text that users may choose.
"""

from cpsched.site.bridge.protocol import JobState
from cpsched.site.bridge.slurm.records import JobRecord

#: What ends a column: no value has it.
END = "\x1f"
#: What an order changes, in the order in which the columns come after the job's number.
_ORDERED = ("ReqNodes", "NumNodes", "MaxNodes", "MinCPUs", "NumCPUs", "EligibleTime", "Reason", "admin_comment")
#: What else may change.
_OTHERS = (
    "State", "RestartCnt", "NodeList", "Partition", "Account", "QOS", "TimeLimit", "Deadline", "Reservation",
    "NumTasks", "cpus-per-task", "NTPerNode", "NTPerSocket", "NTPerCore", "NTPerBoard", "MinMemory", "MinTmpDisk",
    "Feature", "Licenses", "Dependency", "OverSubscribe", "Contiguous", "CoreSpec", "ReqSwitch", "Wait4Switch",
    "BurstBuffer", "Sockets", "Cores", "Threads", "tres-per-job", "tres-per-node", "tres-per-socket",
    "tres-per-task", "cpus-per-tres", "mem-per-tres", "JobArrayID",
)  # fmt: skip
COLUMNS = ("JobID", *_ORDERED, *_OTHERS)
_STATE = COLUMNS.index("State")
#: For ``squeue --Format``; a width is not given, so that nothing is cut off.
FORMAT = ",".join(f"{name}:{END}" for name in COLUMNS)
_NONE = frozenset({"", "(null)", "N/A"})


def lines_by_job(text: str) -> dict[str, str]:
    """Return the lines of an answer by the number of the job; an array's tasks that are not told apart are one."""
    return {line[: line.find(END)]: line for line in text.splitlines()}


def is_alive(line: str) -> bool:
    """Tell whether the job of a line waits or runs."""
    columns = line.split(END)
    return len(columns) > _STATE and columns[_STATE] in ("PENDING", "RUNNING")


def as_ordered(record: JobRecord, before: str, now: str) -> JobRecord | None:
    """Return a waiting job as a later line has it; None where more than an order changes is not as it was.

    `record`: the job as it was. `before`, `now`: its lines then and now.
    """
    last = 1 + len(_ORDERED)
    old, new = before.split(END, last), now.split(END, last)
    if now.count(END) != len(COLUMNS) or (old[0], old[last:]) != (new[0], new[last:]):
        return None
    required, nodes, _, cpus_per_node, cpus, begin, reason, comment = new[1:last]
    numbers = nodes, cpus_per_node, cpus
    is_held = reason.startswith(("JobHeld", "JobHold", "BadConstraints"))
    if record.state is not JobState.WAITING or is_held or not all(map(str.isdecimal, numbers)):
        return None
    if begin not in _NONE and not begin.isdecimal():
        return None
    return record.but(
        required_nodes="" if required in _NONE else required,
        nodes=int(nodes),
        cpus_per_node=int(cpus_per_node),
        cpus=int(cpus),
        begin=None if begin in _NONE else int(begin) or None,
        reason=reason,
        admin_comment="" if comment in _NONE else comment,
    )
