"""Orders as lines for ``scontrol``, what became of them, and Slurm's errors in our words."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from cpsched.domain import Placement
from cpsched.formats import fold_hostlist
from cpsched.site.bridge.protocol import (
    Announce,
    HandBack,
    Hold,
    JobOrder,
    JobState,
    Note,
    Rank,
    Refusal,
    Requeue,
    Start,
)
from cpsched.site.bridge.slurm.jobs import revision_of
from cpsched.site.bridge.slurm.marker import (
    GATE,
    Marker,
    forecast_text,
    is_same_begin,
    is_sayable,
    marked,
    prefix_of,
    shown_time,
    user_view,
)
from cpsched.site.bridge.slurm.records import MANY_NODES, JobRecord

#: What Slurm says of a line that it refuses, and what that means; the first one that occurs in its words counts.
ERRORS: tuple[tuple[str, Refusal], ...] = (
    ("Job has already finished", Refusal.GONE),
    ("Invalid job id specified", Refusal.GONE),
    ("Job/step already completing or completed", Refusal.GONE),
    ("Job is no longer pending execution", Refusal.RUNNING),
    ("Job is in held state", Refusal.HELD),
    ("Invalid node name specified", Refusal.NODES),
    ("Requested nodes are busy", Refusal.NODES),
    ("Required node not available", Refusal.NODES),
    ("Node count specification invalid", Refusal.IMPOSSIBLE),
    ("Requested node configuration is not available", Refusal.IMPOSSIBLE),
    ("Requested operation is presently disabled", Refusal.UNSUPPORTED),
    ("Only batch jobs are accepted", Refusal.UNSUPPORTED),
    ("Job resizing not supported for job arrays", Refusal.UNSUPPORTED),
    ("Access/permission denied", Refusal.FORBIDDEN),
    ("Invalid user id", Refusal.FORBIDDEN),
    ("are set by cpsched", Refusal.FORBIDDEN),
)

_ID = re.compile(r"\d+(?:_\d+)?")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_WHY = 200


class Refused(Exception):  # noqa: N818 - no error: a refusal is an answer
    """An order that is not given, with the reason."""

    def __init__(self, refusal: Refusal, detail: str) -> None:
        self.refusal = refusal
        super().__init__(detail)


class Change(NamedTuple):
    """The fields of a job that an order sets; a tuple as the records are."""

    job: str
    #: None, here and below: as it is.
    comment: str | None
    begin: int | None = None
    required: str | None = None
    nodes: tuple[int, int | None] | None = None
    cpus: int | None = None
    cpus_per_node: int | None = None
    site_factor: int | None = None
    #: Whether Slurm holds the job since an order was impossible.
    is_released: bool = False
    #: The tasks of an array that are changed with the job; empty: it is changed alone.
    whole: str = ""
    #: How often a job that is to be queued again has been so before; None: it is not to be.
    restarts: int | None = None

    def is_done(self, job: JobRecord, now: int) -> bool:
        """Tell whether a job that waits is so at a second; a begin that has passed is as good as another one."""
        if self.restarts is not None:
            return job.restarts > self.restarts
        return (
            self.required in (None, job.required_nodes)
            and self.cpus_per_node in (None, job.cpus_per_node)
            and (self.nodes is None or self.nodes[0] == job.nodes)
            and (self.begin is None or is_same_begin(self.begin, job.begin, now))
            and (self.comment is None or job.admin_comment.strip() == self.comment.strip())
            and self.site_factor in (None, job.site_factor)
            and not (self.is_released and job.state is JobState.HELD)
        )

    def lines(self) -> tuple[str, ...]:
        """Return the lines for ``scontrol``: times are Unix seconds."""
        name = self.whole or self.job
        fewest, most = self.nodes or (0, 0)
        fields = {
            "ReqNodeList": self.required,
            "NumNodes": None if self.nodes is None else f"{fewest}-{MANY_NODES if most is None else most}",
            "MinCPUsNode": self.cpus_per_node,
            "NumCPUs": self.cpus,  # a smaller MinCPUsNode would lower it
            "StartTime": None if self.begin is None else f"uts{self.begin}",
            "SiteFactor": self.site_factor,
            "AdminComment": self.comment,
        }
        set_to = [f"{field}={value}" for field, value in fields.items() if value is not None]
        line = " ".join([f"update JobId={name}", *set_to])
        if self.restarts is not None:  # incomplete: not where it has just ended; what still runs refuses the nodes
            return (f"requeue Incomplete {name}", line)[: 1 + bool(set_to)]
        return (line, f"release {name}") if self.is_released else (line,)


def refusal_of(said: str) -> Refusal:
    """Return the meaning of Slurm's words about a refused line."""
    return next((refusal for words, refusal in ERRORS if words in said), Refusal.OTHER)


def change_of(order: JobOrder, job: JobRecord | None, now: int, by: str = "") -> Change | None:
    """Return the job as an order makes it; None where it is so already.

    Raises `Refused` if the order must not be given.

    `job`: the job as Slurm has it now; None: it does not know it.
    `now`: unix seconds.
    `by`: who orders, for the note.
    """
    if job is None or job.state.is_over:
        raise Refused(Refusal.GONE, f"job {order.job} is {'not known' if job is None else job.state}")
    if _ID.fullmatch(order.job) is None:
        raise Refused(Refusal.GONE, f"Expected the id of a job of Slurm, got {order.job!r}")
    view, marker = user_view(job)
    if isinstance(order, Requeue):
        return _requeue(order, job, view, marker)
    if job.state is JobState.RUNNING:
        ordered = {place.node for place in order.allocation} if isinstance(order, Start) else set()
        if marker is not None and ordered and ordered == {share.node for share in view.shares}:
            return None
        if isinstance(order, Note) and order.forecast is None:
            return _changed(_note(order, marker, prefix_of(job.admin_comment)), job, now)
        raise Refused(Refusal.RUNNING, f"job {order.job} runs")
    prefix = prefix_of(job.admin_comment)
    if not is_sayable(prefix) and not isinstance(order, HandBack):
        raise Refused(Refusal.UNSUPPORTED, "its AdminComment has signs that scontrol cannot be given")
    if isinstance(order, Start):
        change = _start(order, view, marker, prefix, now, by)
    elif isinstance(order, Rank):
        change = _rank(order, job)
    elif isinstance(order, Note):
        change = _note(order, marker, prefix)
    elif isinstance(order, Announce):
        kept = marker or Marker(begin=_own_begin(view, now))
        change = _announce(order, kept, prefix, by)
    else:
        if isinstance(order, Hold):
            change = _hold(order, view, marker, prefix, now, by)
        else:
            change = _hand_back(order, job, view, marker, prefix, now)
        if marker is not None and marker.ordered:
            change = _unordered(change, view)
    if job.state is JobState.HELD and view.state is JobState.WAITING and not isinstance(order, Announce | Note | Rank):
        change = change._replace(is_released=True)
    return _changed(change, job, now)


def _changed(change: Change, job: JobRecord, now: int) -> Change | None:
    if change.cpus_per_node == job.cpus_per_node:
        change = change._replace(cpus_per_node=None, cpus=None)
    return None if change.is_done(job, now) else change


def _unordered(change: Change, view: JobRecord) -> Change:
    """Return a change that also takes an order back: nodes and CPUs are as the user gave them."""
    return change._replace(
        required=view.required_nodes,
        nodes=(view.nodes, view.max_nodes),
        cpus=view.cpus,
        cpus_per_node=view.cpus_per_node,
    )


def _hosts(allocation: Sequence[Placement]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(place.node for place in allocation))
    wrong = [name for name in names if _NODE.fullmatch(name) is None]
    if wrong or not names:
        raise Refused(Refusal.NODES, f"Expected names of nodes, got {wrong or 'none'}")
    return names


def _own_begin(view: JobRecord, now: int) -> int:
    """Return the begin that the user asked for; 0 where there is none, or it has passed."""
    return view.begin if view.begin is not None and view.begin > now else 0


def _start(order: Start, view: JobRecord, marker: Marker | None, prefix: str, now: int, by: str) -> Change:
    if view.state is JobState.HELD:
        raise Refused(Refusal.HELD, f"job {order.job} is held")
    if revision_of(view) != order.revision:
        raise Refused(Refusal.CHANGED, f"job {order.job} has changed since it was planned")
    names = _hosts(order.allocation)
    count = len(names)
    if count < view.nodes or (view.max_nodes is not None and count > view.max_nodes):
        raise Refused(Refusal.IMPOSSIBLE, f"job {order.job} asks for {view.nodes} nodes, and was given {count}")
    hosts = fold_hostlist(names)
    least = None
    if count > 1 and view.tasks_per_node is None and not view.exclusive:
        least = min(place.resources.get("cores", 1) for place in order.allocation)
    kept = marker or Marker(begin=_own_begin(view, now))
    if marker is None or not marker.ordered:
        kept = kept._replace(
            required=view.required_nodes,
            nodes=view.nodes,
            most=view.max_nodes or 0,
            cpus=view.cpus,
            pernode=view.cpus_per_node,
        )
    begin = max(order.at, now)
    if marker is not None and (marker.ordered, marker.at) == (hosts, order.at):
        begin = marker.given  # the same order again
    kept = kept._replace(
        ordered=hosts,
        at=order.at,
        given=begin,
        restarts=view.restarts,
        start=shown_time(begin),
        where="",
        forecast="",
        until=0,
        by=by,
    )
    return Change(
        job=order.job,
        comment=marked(prefix, kept),
        begin=begin,
        required=hosts,
        nodes=(count, count),
        cpus=view.cpus if least is None else None,
        cpus_per_node=least or view.cpus_per_node,
    )


def _requeue(order: Requeue, job: JobRecord, view: JobRecord, marker: Marker | None) -> Change | None:
    """Return a job that is queued again without the order of its run, if that is the one that is to be stopped."""
    nodes = tuple(sorted(share.node for share in view.shares))
    if job.state is not JobState.RUNNING or job.is_completing or job.is_suspended:
        raise Refused(Refusal.CHANGED, f"job {order.job} does not run any more")
    if (revision_of(view), nodes) != (order.revision, order.nodes):
        raise Refused(Refusal.CHANGED, f"job {order.job} has changed since it was planned to be stopped")
    if not job.can_requeue:
        raise Refused(Refusal.UNSUPPORTED, f"job {order.job} may not be queued again (Requeue=0, or no batch job)")
    change, prefix = Change(job=order.job, comment=None, restarts=job.restarts), prefix_of(job.admin_comment)
    if marker is not None and job.required_nodes == marker.ordered != "" and is_sayable(prefix):
        change = _unordered(change._replace(comment=prefix), view)
    return _changed(change, job, 0)


def _rank(order: Rank, job: JobRecord) -> Change:
    """Return a job with another priority: what Slurm adds up for it stays. Slurm changes all of a heterogeneous job."""
    if job.site_factor is None:
        raise Refused(Refusal.UNSUPPORTED, "nothing can be added to its priority")
    whole = ""
    if job.array is not None and job.task is None:
        whole = job.whole_id
    factor = job.site_factor + order.priority - job.priority
    return Change(job=order.job, comment=None, site_factor=factor, whole=whole)


def _announce(order: Announce, kept: Marker, prefix: str, by: str) -> Change:
    """Return a job with the announced start in its note."""
    why = "_".join(order.why.split())[:_LONGEST_WHY]
    told = kept._replace(by=by, start=shown_time(order.start), where=fold_hostlist(order.nodes), why=why)
    return Change(job=order.job, comment=marked(prefix, told))


def _note(order: Note, marker: Marker | None, prefix: str) -> Change:
    """Return a job with another forecast in its note, or without; what others wrote is not touched."""
    if order.forecast is None:
        kept = Marker() if marker is None else marker._replace(forecast="")
        return Change(job=order.job, comment=prefix if kept == Marker() else marked(prefix, kept))
    if prefix:
        raise Refused(Refusal.UNSUPPORTED, "somebody else writes into its AdminComment")
    return Change(
        job=order.job, comment=marked("", (marker or Marker())._replace(forecast=forecast_text(*order.forecast)))
    )


def _hold(order: Hold, view: JobRecord, marker: Marker | None, prefix: str, now: int, by: str) -> Change:
    """Return a job without its order, and steered."""
    own, told = _own_begin(view, now), marker or Marker()
    kept = Marker(
        begin=own,
        restarts=view.restarts,
        until=order.until,
        by=by,
        start=told.start,
        where=told.where,
        why=told.why,
        forecast=told.forecast,
    )
    # a begin of the user that is later needs no other one, and is shown
    return Change(job=order.job, comment=marked(prefix, kept), begin=max(order.until, own))


def _hand_back(
    order: HandBack, job: JobRecord, view: JobRecord, marker: Marker | None, prefix: str, now: int
) -> Change:
    """Return a job as its user asked for it. It may be held by an earlier cpsched, and without a note."""
    was_held = job.begin == GATE or (marker is not None and bool(marker.until or marker.ordered))
    return Change(
        job=order.job,
        comment=prefix if marker is not None and is_sayable(prefix) else None,
        begin=(_own_begin(view, now) or now) if was_held else None,
        site_factor=0 if job.site_factor else None,
    )
