"""Slurm's states in our words: the one place where both are known. An unknown one is an error.

Slurm writes a state as one word, as a list of words (a base and flags), with plus signs between them, or with a sign
for a flag at its end; ``squeue`` of 22.05 shows a flag in place of the base. Words from `man squeue` and `man sinfo`,
21.08 to 25.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cpsched.domain import NodeState
from cpsched.site.bridge.protocol import JobState

JOB_BASES = {
    "PENDING": JobState.WAITING,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "TIMEOUT": JobState.TIMED_OUT,
    "NODE_FAIL": JobState.NODE_FAILED,
    "PREEMPTED": JobState.CANCELLED,
    "BOOT_FAIL": JobState.NODE_FAILED,
    "DEADLINE": JobState.TIMED_OUT,
    "OUT_OF_MEMORY": JobState.FAILED,
}

#: Flags that say more than the base that they stand beside, or in place of; None: the base alone counts.
JOB_FLAGS = {
    "COMPLETING": JobState.RUNNING,
    "CONFIGURING": JobState.RUNNING,
    "EXPEDITING": None,
    "LAUNCH_FAILED": JobState.HELD,
    "POWER_UP_NODE": JobState.RUNNING,
    "RECONFIG_FAIL": JobState.HELD,
    "REQUEUED": JobState.WAITING,
    "REQUEUE_FED": JobState.WAITING,
    "REQUEUE_HOLD": JobState.HELD,
    "RESIZING": JobState.RUNNING,
    "RESV_DEL_HOLD": JobState.HELD,
    "REVOKED": JobState.CANCELLED,
    "SIGNALING": JobState.RUNNING,
    "SPECIAL_EXIT": JobState.HELD,
    "STAGE_OUT": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "UPDATE_DB": None,
}

#: Slurm's reasons why a job cannot start before somebody changes it, or the site.
NEVER = frozenset({
    "AccountNotAllowed", "BadConstraints", "DependencyNeverSatisfied", "InvalidAccount", "InvalidQOS",
    "PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed", "ReservationDeleted",
})  # fmt: skip
#: States of partitions in which no job starts.
CLOSED = frozenset({"DOWN", "INACTIVE"})

_UP, _DRAIN, _DOWN = NodeState.UP, NodeState.DRAIN, NodeState.DOWN

#: The worst of a node's words is its state.
NODE_WORDS = {
    "ALLOCATED": _UP,
    "BLOCKED": _DRAIN,
    "CLOUD": _UP,
    "COMPLETING": _UP,
    "DOWN": _DOWN,
    "DRAIN": _DRAIN,
    "DRAINED": _DRAIN,
    "DRAINING": _DRAIN,
    "DYNAMIC_FUTURE": _UP,
    "DYNAMIC_NORM": _UP,
    "ERROR": _DOWN,
    "EXTERNAL": _UP,
    "FAIL": _DRAIN,
    "FAILING": _DRAIN,
    "FUTURE": _DOWN,
    "IDLE": _UP,
    "INVAL": _DOWN,
    "INVALID": _DOWN,
    "INVALID_REG": _DRAIN,
    "MAINT": _UP,
    "MAINTENANCE": _UP,
    "MIXED": _UP,
    "NET": _UP,
    "NOT_RESPONDING": _DRAIN,
    "NO_RESPOND": _DRAIN,
    "PERFCTRS": _UP,
    "PLANNED": _UP,
    "POWERED_DOWN": _UP,
    "POWERING_DOWN": _DRAIN,
    "POWERING_UP": _UP,
    "POWER_DOWN": _DRAIN,
    "POWER_DRAIN": _DRAIN,
    "POWER_UP": _UP,
    "POWER_DOWN_ASAP": _DRAIN,
    "POWER_DOWN_FORCE": _DRAIN,
    "REBOOT": _DRAIN,
    "REBOOT_CANCELED": _UP,
    "REBOOT_ISSUED": _DOWN,
    "REBOOT_REQUESTED": _DRAIN,
    "RES": _UP,
    "RESERVED": _UP,
    "RESUME": _UP,
    "UNDRAIN": _UP,
    "UNKNOWN": _DOWN,
}

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
_ORDER = (_UP, _DRAIN, _DOWN)


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
