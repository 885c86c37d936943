"""`FilesManager`: a resource manager behind a directory, for sites whose software cpsched does not know.

The site writes ``instance.json`` and reads ``orders.json``, each by another name first and then renamed, so that both
are whole or not there. ``docs/bridges.md`` says what is in them.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cpsched.domain import Instance, Job
from cpsched.errors import BridgeError, CpschedError, DocumentError, Fault
from cpsched.formats import load_document, read_instance, write_document
from cpsched.site.bridge.protocol import (
    Announce,
    Gate,
    HandBack,
    Hold,
    JobFacts,
    JobState,
    Note,
    Order,
    Rank,
    Receipt,
    Refusal,
    Requeue,
    Result,
    Snapshot,
    Start,
    digest_of,
)

_INSTANCE, _ORDERS = "instance.json", "orders.json"
_FORMAT = "cpsched-orders/1"
#: Seconds between two looks at the instance while it is watched.
_LOOK = 0.2

_NO_STOPS = Fault("preemption", "no order in a directory stops a job: plans stop none")

_Object = dict[str, Any]


class FilesManager:
    """A manager behind a directory. `directory`: where the two files are; it must exist."""

    name = "files"

    def __init__(self, directory: Path) -> None:
        self._instance, self._orders = directory / _INSTANCE, directory / _ORDERS

    def snapshot(self) -> Snapshot:
        """Take a snapshot: every waiting job is steered, since the site starts none without an order."""
        instance = self._read()
        orders = {entry["job"]: entry for entry in self._load()["orders"]}
        jobs = replace(instance, jobs=instance.elements(), preemption=None)
        return Snapshot(
            instance=jobs,
            left=(),
            taken_at=instance.now,
            jobs={job.id: _facts(job, orders.get(job.id)) for job in jobs.jobs},
            gate_is_closed=self._load()["gate"] == "closed",
            notes=(_NO_STOPS,) if instance.preemption is not None else (),
        )

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders: they hold once ``orders.json`` has them."""
        snapshot, document = self.snapshot(), self._load()
        written = {entry["job"]: entry for entry in document["orders"] if entry["job"] in snapshot.jobs}
        before, gate = dict(written), document["gate"]
        receipts = []
        for order in orders:
            refusal, is_so = None, False
            if isinstance(order, Gate):
                wanted = "closed" if order.is_closed else "open"
                is_so, gate = gate == wanted, wanted
            elif isinstance(order, Rank | Note | Requeue):
                refusal = Refusal.UNSUPPORTED
            elif (refusal := _refusal(order, snapshot.jobs.get(order.job))) is None:
                entry = _entry(order, written.get(order.job, {}))
                is_so, written[order.job] = entry == written.get(order.job), entry
            result = Result.ALREADY if is_so else Result.DONE
            receipts.append(Receipt(order=order, result=Result.REFUSED if refusal else result, refusal=refusal))
        if written != before or gate != document["gate"] or not self._orders.exists():
            self._write({"format": _FORMAT, "now": snapshot.taken_at, "gate": gate, "orders": [*written.values()]})
        return tuple(receipts)

    def watch(self, seconds: float) -> bool:
        """Wait until there is another instance, for at most some seconds, and tell whether there is."""
        before, end = self._stamp(), time.monotonic() + seconds
        while self._stamp() == before and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK))
        return self._stamp() != before

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._instance.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> Instance:
        try:
            return read_instance(self._instance)
        except DocumentError as error:
            raise BridgeError((str(self._instance),), f"Expected an instance, got: {error}") from error

    def _load(self) -> _Object:
        if not self._orders.exists():
            return {"gate": "open", "orders": []}
        try:
            document = load_document(self._orders)
        except DocumentError as error:
            raise BridgeError((str(self._orders),), f"Expected our own orders, got: {error}") from error
        if document.get("format") != _FORMAT:
            raise BridgeError((str(self._orders),), f"Expected {_FORMAT}, got {document.get('format')!r}")
        return document

    def _write(self, document: _Object) -> None:
        try:
            write_document(document, self._orders)
        except (CpschedError, OSError) as error:
            raise BridgeError((str(self._orders),), f"Expected to write it, got: {error}") from error


def _facts(job: Job, entry: _Object | None) -> JobFacts:
    running = job.running
    due = entry.get("at") if entry is not None and running is None else None
    nodes = {place["node"] for place in (entry or {}).get("allocation", ())} if due is not None else set()
    if running is not None:
        nodes = {place.node for segment in running.segments for place in segment.allocation}
    asked = replace(job, running=None, told=None, submit=0)
    return JobFacts(
        state=JobState.WAITING if running is None else JobState.RUNNING,
        revision=digest_of(asked),
        is_steered=running is None and (entry is None or entry["order"] != "hand_back"),
        due=due,
        nodes=tuple(sorted(nodes)),
        start=None if running is None else running.start,
    )


def _refusal(order: Start | Hold | Announce | HandBack, facts: JobFacts | None) -> Refusal | None:
    if facts is None:
        return Refusal.GONE
    if facts.state is JobState.RUNNING:
        return Refusal.RUNNING
    if isinstance(order, Start) and facts.revision != order.revision:
        return Refusal.CHANGED
    return None


def _entry(order: Start | Hold | Announce | HandBack, before: _Object) -> _Object:
    """Return the entry of the file for a job after an order."""
    told = {key: before[key] for key in ("announced", "nodes", "why") if key in before}
    if isinstance(order, Announce):
        rest = before or {"job": order.job, "order": "hold"}
        return rest | {"announced": order.start, "nodes": list(order.nodes), "why": order.why}
    if isinstance(order, Start):
        allocation = [{"node": place.node, "resources": dict(place.resources)} for place in order.allocation]
        chosen = {"alternative": order.alternative} if order.alternative else {}
        return {"job": order.job, "order": "start", "at": order.at, "allocation": allocation} | chosen | told
    if isinstance(order, HandBack):
        return {"job": order.job, "order": "hand_back"}
    return {"job": order.job, "order": "hold"} | told
