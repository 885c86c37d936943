"""What the fields of a job and its note say of how it is steered: its facts, and whether it is left to Slurm."""

from __future__ import annotations

from collections.abc import Iterable

from cpsched.errors import SyntaxFault
from cpsched.formats import expand_hostlist
from cpsched.site.bridge.protocol import JobFacts, JobState
from cpsched.site.bridge.slurm.marker import GATE, Marker, is_same_begin
from cpsched.site.bridge.slurm.records import JobRecord
from cpsched.site.bridge.slurm.site import OPT_OUT, SiteChoices

_WAITING = (JobState.WAITING, JobState.HELD)


def job_facts(record: JobRecord, view: JobRecord, marker: Marker | None, revision: str, now: int) -> JobFacts:
    """Return the facts of a job at a second.

    `record`, `view`: the job as Slurm has it, and as its user asked for it. `marker`: its note.
    """
    is_waiting = view.state in _WAITING
    order = marker if is_waiting and marker is not None and _is_as_ordered(record, marker, now) else None
    until = marker.until if is_waiting and marker is not None and _is_held(record, marker, now) else None
    is_ranked = marker is not None and marker.own and record.priority != marker.rank  # by somebody else
    nodes: Iterable[str] = ()
    if order is not None:
        nodes = _hosts(order.ordered)
    elif view.state is JobState.RUNNING:
        nodes = (share.node for share in view.shares)
    elif view.state.is_over and view.ran_on:
        nodes = _hosts(view.ran_on)
    return JobFacts(
        state=view.state,
        revision=revision,
        restarts=view.restarts,
        is_steered=is_waiting and (record.begin == GATE or order is not None or until is not None),
        until=until,
        is_marked=is_waiting and (marker is not None or record.begin == GATE or bool(record.site_factor)),
        priority=0 if is_ranked or not is_waiting else record.priority,
        batch=str(record.number) if record.array is not None and record.task is None else "",
        due=None if order is None else order.at,
        nodes=tuple(sorted(nodes)),
        # Slurm writes a start for jobs that were cancelled as they waited, too
        start=None if is_waiting or (view.state.is_over and not view.ran_on) else view.start,
        end=view.end if view.state.is_over else None,
    )


def changes_at(record: JobRecord, marker: Marker | None) -> tuple[int, ...]:
    """Return the seconds at which the facts of a waiting job may become others, though Slurm says the same of it."""
    if marker is None or record.begin is None:
        return ()
    return record.begin, max(marker.given, record.begin)


def why_left(record: JobRecord, marker: Marker | None, choices: SiteChoices, now: int) -> str | None:
    """Return why a waiting job is left to Slurm though it could be planned; None: it is not."""
    if OPT_OUT in record.comment.split():
        return f"its comment says {OPT_OUT}"
    if not choices.leave_partitions.isdisjoint(record.partitions):
        return f"the site leaves partition {','.join(record.partitions)} to Slurm"
    if record.account in choices.leave_accounts:
        return f"the site leaves account {record.account} to Slurm"
    if marker is not None and _is_freed(record, marker, now):
        return "its StartTime was set by hand"
    return None


def _is_held(record: JobRecord, marker: Marker, now: int) -> bool:
    """Tell whether a job is held, for some time yet."""
    return record.begin is not None and now < record.begin == marker.until


def _is_as_ordered(record: JobRecord, marker: Marker, now: int) -> bool:
    """Tell whether a waiting job still has the nodes and the begin of its order, and has not run since."""
    is_same = bool(marker.ordered) and record.required_nodes == marker.ordered and record.restarts == marker.restarts
    return is_same and is_same_begin(marker.given, record.begin, now)


def _is_freed(record: JobRecord, marker: Marker, now: int) -> bool:
    """Tell whether somebody has set the begin of a steered job to a second that has passed: it is to run now.

    One that was queued again after a failure has another begin, too.
    """
    if record.begin is None or record.begin > now or record.restarts != marker.restarts:
        return False
    was_steered = bool(marker.until or marker.ordered)
    ours = (GATE, marker.until, marker.given, marker.begin)
    return was_steered and record.begin not in ours and not (marker.ordered and marker.given <= now)


def _hosts(text: str) -> tuple[str, ...]:
    try:
        return expand_hostlist(text) if text else ()
    except SyntaxFault:
        return ()
