"""What the fields of a job and its note say of how it is steered: its facts, and whether it is left to Slurm."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from cpsched.domain import FrozenMap, Job, Preemptible, Preemption, StopKind
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.protocol import JobFacts, JobState
from cpsched.site.bridge.slurm.amounts import minutes
from cpsched.site.bridge.slurm.marker import GATE, Marker, is_same_begin, noted_forecast, prefix_of
from cpsched.site.bridge.slurm.records import JobRecord, SlurmRecords, hosts_of
from cpsched.site.bridge.slurm.site import OPT_OUT, SlurmModel

_WAITING = (JobState.WAITING, JobState.HELD)
#: The parts of a priority, and the priority of the first job where there are none.
_WEIGHTS = ("Age", "Assoc", "FairShare", "JobSize", "Partition", "QOS")
_TOP = 0xFFFF0000
#: Seconds that Slurm takes to stop a job, at least.
_NOTICE = 1
#: Why jobs are left that may start where plans see no free CPU.
_SHARING = "jobs of its partition may have CPUs in common (OverSubscribe=FORCE)"


@dataclass(frozen=True, slots=True)
class Leaving:
    """Whose jobs stay Slurm's, as the site or its Slurm has it."""

    choices: SlurmModel
    #: By partition, the reason.
    partitions: Mapping[str, str]
    #: The greatest priority that Slurm gives a job itself.
    most_priority: float
    #: Whether orders name nodes.
    is_exact: bool
    #: Whose jobs are stopped for whose, by partition; None: nobody's.
    preemption: Preemption | None = None

    @classmethod
    def of(
        cls, records: SlurmRecords, nodes: Mapping[str, Sequence[str]], choices: SlurmModel, *, only_ranks: bool
    ) -> "Leaving":
        """Return that of a Slurm. `nodes`: of each partition. `only_ranks`: whether jobs are never held."""
        chosen = dict.fromkeys(choices.leave_partitions, "the site leaves its partition to Slurm")
        sharing = {one.name: _SHARING for one in records.partitions if one.shares > 1}
        most = _most_priority(records.config)
        if only_ranks:
            return cls(choices, chosen, most, is_exact=False)
        stops, left = defaultdict[str, tuple[str, ...]](tuple), sharing | chosen
        for high, low, mode in _preempting(records, nodes):
            stops[high] += (low,)
            if mode != "REQUEUE" or low in left:
                left.setdefault(high, f"jobs of its partition may preempt those of {low} (PreemptMode={mode})")
        queues = FrozenMap({high: lows for high, lows in stops.items() if high not in left})
        exempt = minutes(records.config.get("PreemptExemptTime", "")) or 0
        preemption = Preemption(queues=queues, notice=_NOTICE, exempt=exempt) if queues else None
        return cls(choices, left, most, is_exact=True, preemption=preemption)

    def placed(self, job: Job, record: JobRecord) -> Job:
        """Return a running job as one that may be stopped, if it is, and others as they are.

        Raises `Inexpressible` if Slurm may stop others for a waiting job, and no plan does.
        """
        queues = {} if self.preemption is None else self.preemption.queues
        if job.running is None:
            may_stop = [name for name in record.partitions if name in queues]
            is_bound = job.deadline is not None or job.reservation is not None
            if may_stop and (is_bound or job.alternatives or len(record.partitions) > 1):
                raise Inexpressible(f"plans stop no jobs of {queues[may_stop[0]][0]} for one with a choice or a bound")
            return job
        is_low = any(job.queue in lows for lows in queues.values())
        is_bound = not record.can_requeue or record.is_completing or record.is_suspended or record.het is not None
        if not is_low or is_bound or record.reservation or self.why_never(record):
            return job
        return replace(job, preemptible=Preemptible(by=StopKind.REQUEUE))

    def why_never(self, record: JobRecord) -> str | None:
        """Return why a job, whether it waits or runs, is never steered; None: it is."""
        if OPT_OUT in record.comment.split():
            return f"its comment says {OPT_OUT}"
        for partition in record.partitions:
            if partition in self.partitions:
                return self.partitions[partition]
        if record.account in self.choices.leave_accounts:
            return f"the site leaves account {record.account} to Slurm"
        return None


def _preempting(records: SlurmRecords, nodes: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, str, str]]:
    """Yield the partitions whose jobs Slurm may start in place of others, lowest tiers first, and those, with what
    becomes of these.
    """
    if records.config.get("PreemptType") != "preempt/partition_prio":
        return
    for high in sorted(records.partitions, key=attrgetter("tier")):
        for low in records.partitions:
            mode = ",".join(word for word in low.preemption.split(",") if word not in ("GANG", "OFF", ""))
            if mode and high.tier > low.tier and not set(nodes[high.name]).isdisjoint(nodes[low.name]):
                yield high.name, low.name, f"{mode}, GraceTime={low.grace}" if low.grace else mode


def _most_priority(config: Mapping[str, str]) -> float:
    """Return the greatest priority that a job can have without anybody's doing; infinite where it is not known."""
    if config.get("PriorityType") == "priority/basic":
        return _TOP
    words = {key.lower(): value for key, value in config.items()}
    weights = [words.get(f"priorityweight{name.lower()}", "") for name in _WEIGHTS]
    tres = words.get("priorityweighttres", "(null)")
    weights += [part.rpartition("=")[2] for part in tres.split(",")] if tres not in ("(null)", "") else []
    is_odd = "NO_NORMAL" in words.get("priorityflags", "")
    is_odd |= words.get("prioritysitefactorplugin", "(null)") not in ("(null)", "none", "")
    if is_odd or not all(map(str.isdecimal, weights)):
        return math.inf
    return sum(map(int, weights))


def why_not_ranked(config: Mapping[str, str]) -> str:
    """Return why the order of jobs cannot be given to a Slurm, and what to do; empty: it can."""
    if config.get("PriorityType") != "priority/basic":
        return ""
    said = "priority/basic adds nothing to priorities that could be taken back"
    return f'{said}: set PriorityType=priority/multifactor in slurm.conf, or steering = "exact"'


def job_facts(record: JobRecord, view: JobRecord, marker: Marker | None, revision: str, now: int) -> JobFacts:
    """Return the facts of a job at a second.

    `record`, `view`: the job as Slurm has it, and as its user asked for it. `marker`: its note.
    """
    is_waiting = view.state in _WAITING
    order = marker if is_waiting and marker is not None and _is_as_ordered(record, marker, now) else None
    is_held = is_waiting and marker is not None and record.begin is not None and now < record.begin == marker.until
    nodes: Iterable[str] = ()
    if order is not None:
        nodes = hosts_of(order.ordered)
    elif view.state is JobState.RUNNING:
        nodes = (share.node for share in view.shares)
    elif view.state.is_over and view.ran_on:
        nodes = hosts_of(view.ran_on)
    return JobFacts(
        state=view.state,
        revision=revision,
        restarts=view.restarts,
        is_steered=is_waiting and (record.begin == GATE or order is not None or is_held),
        until=record.begin if is_held else None,
        is_marked=is_waiting and (_is_of_orders(marker) or record.begin == GATE or bool(record.site_factor)),
        noted=None if view.state.is_over else noted_forecast(marker),
        may_note=is_waiting and not prefix_of(record.admin_comment),
        priority=record.priority if is_waiting and record.site_factor is not None else 0,
        own_priority=_own_priority(record) if is_waiting else 0,
        is_foreign=record.is_foreign,
        is_leaving=record.is_completing,
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


def _is_of_orders(marker: Marker | None) -> bool:
    """Tell whether there is a note that has more than a forecast."""
    return marker is not None and (not marker.forecast or marker != Marker(forecast=marker.forecast))


def _own_priority(record: JobRecord) -> int:
    """Return the priority that a job has without what was added to it."""
    return max(0, record.priority - (record.site_factor or 0))


def why_left(record: JobRecord, marker: Marker | None, leaving: Leaving, now: int) -> str | None:
    """Return why a waiting job is left to Slurm though it could be planned; None: it is not."""
    if (reason := leaving.why_never(record)) is not None:
        return reason
    if record.segment and leaving.is_exact:
        return "Slurm starts no job of segments on nodes that are named (--segment)"
    if _own_priority(record) > leaving.most_priority:
        return "its Priority was raised by hand"
    if marker is not None and _is_freed(record, marker, now):
        return "its StartTime was set by hand"
    return None


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
