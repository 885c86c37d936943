"""Slurm's states in our words: the one place where both are known. An unknown one is an error.

Slurm writes a state as one word, as a list of words (a base and flags), with plus signs between them, or with a sign
for a flag at its end; ``squeue`` of 22.05 shows a flag in place of the base. Words from `man squeue` and `man sinfo`,
21.08 to 25.05.
"""

from collections.abc import Iterable, Sequence

from cpsched.domain import NodeState
from cpsched.site.bridge.protocol import JobState, by_word

JOB_BASES = by_word(
    {
        JobState.WAITING: "PENDING",
        JobState.RUNNING: "RUNNING SUSPENDED",
        JobState.COMPLETED: "COMPLETED",
        JobState.CANCELLED: "CANCELLED PREEMPTED",
        JobState.FAILED: "FAILED OUT_OF_MEMORY",
        JobState.TIMED_OUT: "TIMEOUT DEADLINE",
        JobState.NODE_FAILED: "NODE_FAIL BOOT_FAIL",
    }
)

#: Flags that say more than the base that they stand beside, or in place of; None: the base alone counts.
JOB_FLAGS = by_word(
    {
        JobState.WAITING: "REQUEUED REQUEUE_FED",
        JobState.HELD: "LAUNCH_FAILED RECONFIG_FAIL REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
        JobState.RUNNING: "COMPLETING CONFIGURING POWER_UP_NODE RESIZING SIGNALING STAGE_OUT STOPPED",
        JobState.CANCELLED: "REVOKED",
        None: "EXPEDITING UPDATE_DB",
    }
)

#: Slurm's reasons why a job cannot start before somebody changes it, or the site.
NEVER = frozenset({
    "AccountNotAllowed", "BadConstraints", "DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS",
    "PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed", "ReservationDeleted",
})  # fmt: skip
#: States of partitions in which no job starts.
CLOSED = frozenset({"DOWN", "INACTIVE"})

_ORDER = (NodeState.UP, NodeState.DRAIN, NodeState.DOWN)
#: The worst of a node's words is its state.
NODE_WORDS = by_word(
    {
        NodeState.UP: "ALLOCATED CLOUD COMPLETING DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL IDLE MAINT MAINTENANCE MIXED "
        "NET PERFCTRS PLANNED POWERED_DOWN POWERING_UP POWER_UP REBOOT_CANCELED RES RESERVED RESUME UNDRAIN",
        NodeState.DRAIN: "BLOCKED DRAIN DRAINED DRAINING FAIL FAILING INVALID_REG NOT_RESPONDING NO_RESPOND "
        "POWERING_DOWN POWER_DOWN POWER_DRAIN POWER_DOWN_ASAP POWER_DOWN_FORCE REBOOT REBOOT_REQUESTED",
        NodeState.DOWN: "DOWN ERROR FUTURE INVAL INVALID REBOOT_ISSUED UNKNOWN",
    }
)

#: The signs at the end of a state, and the words that they stand for.
_SIGNS = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}


class UnknownStateError(ValueError):
    """Slurm says a state that is in none of the tables."""


def words_of(state: str | Iterable[str]) -> tuple[str, ...]:
    """Return the words of a state in capitals, with a word for each sign at its end."""
    found: list[str] = []
    for word in state.split("+") if isinstance(state, str) else state:
        rest = word.strip()
        while rest and rest[-1] in _SIGNS:
            found.append(_SIGNS[rest[-1]])
            rest = rest[:-1]
        found.append(rest.upper())
    return tuple(found)


def job_state(words: Sequence[str]) -> JobState:
    """Return the state of a job; one that waits with priority 0 is held, which these words do not say.

    Raises `UnknownStateError` if a word is unknown, or there is none.
    """
    unknown = [word for word in words if word not in JOB_BASES and word not in JOB_FLAGS]
    if unknown or not words:
        raise UnknownStateError(f"Expected states of jobs that Slurm has, got {' '.join(unknown) or 'none'}")
    of_flags = {state for word in words if (state := JOB_FLAGS.get(word)) is not None}
    base = next((JOB_BASES[word] for word in words if word in JOB_BASES), None)
    if JobState.HELD in of_flags:
        return JobState.HELD
    if JobState.CANCELLED in of_flags:
        return JobState.CANCELLED
    if "COMPLETING" in words and base is not JobState.WAITING:
        return JobState.RUNNING
    if base is not None:
        return base
    if not of_flags:
        raise UnknownStateError(f"Expected the state of a job, got {' '.join(words)} alone")
    return min(of_flags)


def node_state(words: Sequence[str]) -> NodeState:
    """Return the state of a node: the worst of its words.

    Raises `UnknownStateError` if a word is unknown, or there is none.
    """
    unknown = [word for word in words if word not in NODE_WORDS]
    if unknown or not words:
        raise UnknownStateError(f"Expected states of nodes that Slurm has, got {' '.join(unknown) or 'none'}")
    return max((NODE_WORDS[word] for word in words), key=_ORDER.index)
