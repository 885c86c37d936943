"""Slurm's states become ours in one place: all are mapped, and an unknown one is an error."""

from __future__ import annotations

import pytest

from cpsched.domain import NodeState
from cpsched.site.bridge import JobState
from cpsched.site.bridge.slurm.states import (
    JOB_BASES,
    JOB_FLAGS,
    NODE_WORDS,
    UnknownStateError,
    job_state,
    node_state,
    words_of,
)

#: From the manuals of squeue and sacct, and the schema of slurmrestd (v0.0.40 to v0.0.43).
BASES = (
    "PENDING RUNNING SUSPENDED COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY"
)
FLAGS = (
    "LAUNCH_FAILED REQUEUED REQUEUE_HOLD SPECIAL_EXIT RESIZING CONFIGURING COMPLETING STOPPED RECONFIG_FAIL "
    "POWER_UP_NODE REVOKED REQUEUE_FED RESV_DEL_HOLD SIGNALING STAGE_OUT UPDATE_DB EXPEDITING"
)
#: From the manual of sinfo and the same schemas.
NODES = (
    "INVALID UNKNOWN DOWN IDLE ALLOCATED ERROR MIXED FUTURE RESERVED UNDRAIN CLOUD RESUME DRAIN COMPLETING "
    "NOT_RESPONDING POWERED_DOWN FAIL POWERING_UP MAINTENANCE REBOOT_REQUESTED REBOOT_CANCELED POWERING_DOWN "
    "DYNAMIC_FUTURE REBOOT_ISSUED PLANNED INVALID_REG POWER_DOWN POWER_UP POWER_DRAIN DYNAMIC_NORM BLOCKED EXTERNAL "
    "PERFCTRS NET NO_RESPOND DRAINED DRAINING FAILING MAINT REBOOT RES INVAL POWER_DOWN_ASAP POWER_DOWN_FORCE"
)


def test_every_state_of_a_job_is_mapped() -> None:
    """The tables have each state and each flag that the manuals have, and no others."""
    assert set(BASES.split()) == set(JOB_BASES)
    assert set(FLAGS.split()) == set(JOB_FLAGS)
    assert {job_state([word]) for word in JOB_BASES} | {JobState.HELD} == set(JobState)


def test_every_state_of_a_node_is_mapped() -> None:
    """The table has each word that the manuals have, and no others."""
    assert set(NODES.split()) == set(NODE_WORDS)
    assert {node_state([word]) for word in NODE_WORDS} == set(NodeState)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["RUNNING", "COMPLETING"], JobState.RUNNING),
        (["COMPLETED", "COMPLETING"], JobState.RUNNING),
        (["PENDING", "REQUEUED"], JobState.WAITING),
        (["PENDING", "REQUEUED", "COMPLETING"], JobState.WAITING),
        (["PENDING", "SPECIAL_EXIT"], JobState.HELD),
        (["CANCELLED", "REVOKED"], JobState.CANCELLED),
        (["COMPLETED", "UPDATE_DB"], JobState.COMPLETED),
        (["RUNNING", "RESIZING"], JobState.RUNNING),
        (["COMPLETING"], JobState.RUNNING),
        (["CONFIGURING"], JobState.RUNNING),
        (["REQUEUE_HOLD"], JobState.HELD),
    ],
)
def test_flags_of_jobs(said: list[str], expected: JobState) -> None:
    """A job that gives back its nodes still runs; one that was queued again waits, or is held."""
    assert job_state(said) is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("IDLE", NodeState.UP),
        ("idle*", NodeState.DRAIN),
        ("MIXED+DRAIN", NodeState.DRAIN),
        ("IDLE+CLOUD+POWERED_DOWN", NodeState.UP),
        ("idle~", NodeState.UP),
        ("DOWN*+DRAIN", NodeState.DOWN),
        ("allocated@", NodeState.DRAIN),
        ("IDLE+MAINTENANCE+RESERVED", NodeState.UP),
    ],
)
def test_texts_of_nodes(said: str, expected: NodeState) -> None:
    """The worst of the words counts, and the signs at the end are words."""
    assert node_state(words_of(said)) is expected


@pytest.mark.parametrize("said", [[], ["DANCING"], ["RUNNING", "DANCING"], ["UPDATE_DB"], [""]])
def test_an_unknown_state_of_a_job_is_an_error(said: list[str]) -> None:
    """Nothing is guessed of a state that is in no table."""
    with pytest.raises(UnknownStateError, match="Expected"):
        job_state(said)


@pytest.mark.parametrize("said", [[], ["DANCING"], ["IDLE", "DANCING"]])
def test_an_unknown_state_of_a_node_is_an_error(said: list[str]) -> None:
    """Nothing is guessed of a state that is in no table."""
    with pytest.raises(UnknownStateError, match="Expected"):
        node_state(said)
