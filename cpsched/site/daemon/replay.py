"""What cpsched would have won: the time that a dry run has watched, played again with cpsched giving the orders.

The machine and its jobs are those that the store has seen, and each job takes as long as it really took. So the figures
are of whole histories, in which each start has its consequences, and not of plans that nobody followed. They are an
estimate: jobs that came and went between two snapshots, jobs that have not started yet, which took nobody's place, and
nodes that failed are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cpsched.domain import Instance
from cpsched.formats import parse_instance
from cpsched.site.bridge import JobState, MemoryManager, World
from cpsched.site.daemon.logs import make_log
from cpsched.site.daemon.planning import Planner
from cpsched.site.daemon.service import Daemon, Settings
from cpsched.site.daemon.state import Policy
from cpsched.site.daemon.store import Store, StoredRecord

#: Seconds of the replay's own clock between two cycles in which nothing happens.
_PERIOD = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The waits of the same jobs, as they were and as they would have been."""

    #: The jobs that waited and are over.
    jobs: int
    #: Seconds, in the mean.
    wait: float
    wait_planned: float
    #: The sums of wait / expected wait (WQT of BRIDI-19).
    wqt: float
    wqt_planned: float


def replay(store: Store, planner: Planner, *, seconds: float = 600.0) -> Replay | None:
    """Play again what the store has seen; None if no job that waited is over yet.

    `store`: that of the dry run. `planner`: as the site has it. `seconds`: the time that plans may take in all, about.
    """
    seen = watched(store)
    if seen is None:
        return None
    instance, starts = seen
    waited = [job for job in instance.jobs if job.running is None and job.id in starts and job.runtime is not None]
    if not waited:
        return None
    budget = min(planner.engine.budget, seconds / (3 * len(instance.jobs)))
    world = World(instance, gate_is_closed=True, remember=10**9)
    settings = Settings(
        policy=Policy(is_dry_run=False, horizon=0, patience=10**6),
        budget=0.0 if planner.engine.budget == 0 else max(0.2, budget),
        rate=0.0,
        period=_PERIOD,
        snapshot_every=0,
    )
    memory = Store("sqlite://")
    daemon = Daemon(MemoryManager(world), memory, planner, settings, log=make_log(level="error"))
    while any(world.jobs.get(job.id) is None or not world.jobs[job.id].state.is_over for job in waited):
        daemon.cycle()
        if not daemon.manager.watch(_PERIOD) and world.next_event is None and not _is_waiting(world):
            break
    memory.close()
    pairs = [
        (starts[job.id] - job.submit, (world.jobs[job.id].start or 0) - job.submit, instance.expected_wait(job))
        for job in waited
        if job.id in world.jobs and world.jobs[job.id].start is not None
    ]
    count = max(1, len(pairs))
    return Replay(
        jobs=len(pairs),
        wait=sum(real for real, _, _ in pairs) / count,
        wait_planned=sum(planned for _, planned, _ in pairs) / count,
        wqt=sum(real / expected for real, _, expected in pairs),
        wqt_planned=sum(planned / expected for _, planned, expected in pairs),
    )


def _is_waiting(world: World) -> bool:
    return any(entry.state is JobState.WAITING for entry in world.jobs.values())


def watched(store: Store) -> tuple[Instance, dict[str, int]] | None:
    """Return the history in a store: its first window with all jobs that came after it, with their runtimes; and the
    real starts of jobs. None: it has seen nothing yet.
    """
    first = store.first_snapshot()
    return None if first is None else _joined(first, store.history())


def _joined(first: Mapping[str, Any], history: Iterable[StoredRecord]) -> tuple[Instance, dict[str, int]]:
    """Return the first window with all jobs that came after it and started, with their runtimes; and their starts."""
    entries: dict[str, dict[str, Any]] = {entry["id"]: dict(entry) for entry in first["jobs"]}
    here = set(entries)
    starts = {name: entry["running"]["start"] for name, entry in entries.items() if "running" in entry}
    for record in history:
        content = record.content
        if record.kind == "JobSeen" and record.job not in here:
            entry = dict(content)
            if "running" in entry:
                starts[record.job] = entry.pop("running")["start"]
            entries[record.job] = entry
        elif record.kind == "JobStarted":
            starts[record.job] = content["at"]
        elif record.kind == "JobOver" and record.job in entries and None not in (content["start"], content["end"]):
            starts[record.job] = content["start"]
            entries[record.job]["runtime"] = max(1, content["end"] - content["start"])
    kept = {name: entry for name, entry in entries.items() if name in starts}
    for entry in kept.values():
        entry.pop("told", None)
        if "after" in entry:
            entry["after"] = [one for one in entry["after"] if one["job"] in kept]
    document = {**first, "jobs": list(kept.values())}
    instance = parse_instance(document, source="what the store has seen")
    return replace(instance, outages=()), starts
