"""What a store has seen, as a history that can be played again (`cpsched replay`).

Jobs that came and went between two snapshots, jobs that have not started yet and nodes that failed are not in it.
"""

from dataclasses import replace
from typing import Any

from cpsched.domain import Instance
from cpsched.formats import parse_instance
from cpsched.site.daemon.state import JobOver, JobStarted
from cpsched.site.daemon.store import SEEN, Store


def watched(store: Store) -> tuple[Instance, dict[str, int]] | None:
    """Return the history in a store: its first window with all jobs that came after it, with their runtimes; and the
    real starts of jobs. None: it has seen nothing yet.
    """
    first = store.first_snapshot()
    if first is None:
        return None
    entries: dict[str, dict[str, Any]] = {entry["id"]: dict(entry) for entry in first.get("jobs", ())}
    here = set(entries)
    starts = {name: entry["running"]["start"] for name, entry in entries.items() if "running" in entry}
    started, over = JobStarted.__name__, JobOver.__name__
    for record in store.history():
        content = record.content
        if record.kind == SEEN and record.job not in here:
            entry = dict(content)
            if "running" in entry:
                starts[record.job] = entry.pop("running")["start"]
            entries[record.job] = entry
        elif record.kind == started:
            starts[record.job] = content["at"]
        elif record.kind == over and record.job in entries and None not in (content["start"], content["end"]):
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
