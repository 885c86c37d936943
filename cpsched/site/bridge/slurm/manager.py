"""`SlurmManager`: a real Slurm as a `ResourceManager`.

Jobs are held by their begin time, which is some minutes ahead: what is not held again Slurm starts by itself. An order
to start gives a job nodes and a begin, in one line of ``scontrol``; all lines go to one process by its standard input.
Before the lines are written the jobs are looked at again, and after them too: what a receipt says was seen. A look is a
line for each job (`lines.py`); the JSON of all is read where a line is not as it was then.

A valid answer that is absurd is none: no jobs where there were some a moment ago, no nodes, a clock that went back.
"""

import math
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cpsched.errors import BridgeError, CpschedError, Fault
from cpsched.site.bridge.protocol import (
    Gate,
    HandBack,
    Hold,
    JobState,
    Order,
    Receipt,
    Refusal,
    Requeue,
    Result,
    Snapshot,
    Start,
)
from cpsched.site.bridge.slurm.client import SlurmClient
from cpsched.site.bridge.slurm.factors import Factors
from cpsched.site.bridge.slurm.lines import as_ordered, is_alive, lines_by_job
from cpsched.site.bridge.slurm.marker import read_marker
from cpsched.site.bridge.slurm.orders import Change, Refused, change_of, refusal_of
from cpsched.site.bridge.slurm.records import JobRecord, SlurmRecords, hosts_of
from cpsched.site.bridge.slurm.site import SlurmModel
from cpsched.site.bridge.slurm.snapshot import SnapshotMaker
from cpsched.site.bridge.slurm.steering import why_not_ranked
from cpsched.text import printable
from cpsched.writing import write_bytes

_CLOSED = re.compile(r"closed until (\d{1,15})\s*")
#: Lines given to one ``scontrol``; each takes some milliseconds.
_LINES = 500
#: Seconds between two looks at the queue while it is watched: where no start waits for them, else at least, and so
#: many times what a look takes. A look is two messages for slurmctld.
_IDLE_PAUSE, _SHORTEST_PAUSE, _PAUSE = 1.5, 0.2, 20.0
_LONGEST_SAID = 300
#: Who holds a job: host, process, and since when.
_BY = re.compile(r"[^:]+:\d{1,10}:\d{1,15}")
#: Seconds after which jobs are read again though their lines have not changed: not everything is in them.
_TRUSTED = 15.0
#: Seconds for which fewer than half of the nodes, and seconds by which an earlier clock, are not believed.
_DOUBT, _JUMP = 120.0, 2


class SlurmManager:
    """A Slurm (BRIDI-24).

    `client`: its commands.
    `choices`: what the site says besides: how jobs are steered, and the file at which ``job_submit.lua`` looks.
    `clock`: returns Unix seconds; replaced in tests.
    """

    name = "slurm"

    def __init__(self, client: SlurmClient, choices: SlurmModel, *, clock: Callable[[], float] = time.time) -> None:
        self._client, self._clock = client, clock
        #: None: the gate is not ours.
        self._gate = None if choices.gate is None else Path(choices.gate)
        #: Whether priorities are what is ordered, and whether Slurm is known to add to them what it is told.
        self._only_ranks, self._can_rank = choices.steering == "order", False
        self._factors = Factors()
        self._maker = SnapshotMaker(choices, only_ranks=self._only_ranks)
        #: The queue when it was last looked at: what changes while nobody watches is seen by the next watch.
        self._seen: str | None = None
        #: When that was, and how long it took.
        self._glanced, self._took = -math.inf, 0.0
        #: The jobs as they were read last, by id too, the lines that they had just before, and when that was.
        self._jobs: tuple[JobRecord, ...] = ()
        self._by_id: dict[str, JobRecord] = {}
        self._lines: dict[str, str] = {}
        #: The lines when they were looked at last, as a text and by the job.
        self._looked: tuple[str, dict[str, str]] = "", {}
        self._read_at = -math.inf
        #: For notes: who steers.
        self._me = f"{socket.gethostname()}:{os.getpid()}:{int(clock())}"
        #: The second of the last snapshot, the most nodes that were believed, and since when there are far fewer.
        self._last, self._num_nodes, self._doubted = 0, 0, math.inf

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""
        if self._only_ranks and not self._can_rank:
            if reason := why_not_ranked(self._client.config()):
                raise BridgeError(("scontrol", "show", "config"), reason)
            self._can_rank = True
        self._seen = self._glance()
        lines = self._look()
        if not self._lines or lines != self._lines or self._is_old:
            self._read(lines)
        records = self._client.records(self._jobs)
        now = int(self._clock())
        self._doubt(records, now)
        snapshot = self._maker.make(records, now)
        said = self._factors.others()
        return replace(
            snapshot,
            gate_is_closed=self._gate_is_closed(),
            notes=(*snapshot.notes, Fault("priorities", said)) if said else snapshot.notes,
            rival=self._rival(now) or self._factors.rival(now),
        )

    def _doubt(self, records: SlurmRecords, now: int) -> None:
        """Raise `BridgeError` if an answer is not to be believed, or not yet."""
        last, self._last = self._last, now
        if now < last - _JUMP:
            raise BridgeError(("clock",), f"Expected a second after {last}, got {now}: the clock went back")
        count = len(records.nodes)
        if not count or count * 2 < self._num_nodes:
            self._doubted = min(self._doubted, time.monotonic())
            if not count or time.monotonic() - self._doubted < _DOUBT:
                raise BridgeError(("sinfo",), f"Expected the nodes of this Slurm, got {count} of {self._num_nodes}")
        self._num_nodes, self._doubted = count, math.inf

    def _rival(self, now: int) -> str:
        """Return who else holds jobs: it began before, and lives, as far as can be seen; empty: nobody does."""
        host, number, began = self._me.split(":")
        mine = int(began), host, number
        for record in self._jobs:
            comment = record.admin_comment
            if ";by=" not in comment or self._me in comment or record.state.is_over:
                continue
            marker = read_marker(comment)
            if marker is None or _BY.fullmatch(marker.by) is None or marker.until <= now:
                continue
            parts = marker.by.split(":")
            is_gone = parts[0] == host and not _lives(int(parts[1]))
            if (int(parts[2]), parts[0], parts[1]) < mine and not is_gone:
                return f"host {parts[0]}, process {parts[1]}, which holds job {record.number} until {marker.until}"
        return ""

    def apply(self, orders: Sequence[Order]) -> tuple[Receipt, ...]:
        """Carry out orders, and return a receipt for each, in their order."""
        receipts: dict[int, Receipt] = {}
        changes: dict[int, Change] = {}
        times = Counter(order.job for order in orders if not isinstance(order, Gate))
        if times:
            lines = self._look()
            is_as_before = all(name in lines and lines[name] == self._lines.get(name) for name in times)
            if not is_as_before or self._is_old:
                self._read(lines)
        before, now = self._by_id, int(self._clock())
        # a note that a later order of the same job writes too is written once
        noted, notes, instead = dict[str, JobRecord](), dict[str, int](), dict[int, int]()
        for index, order in enumerate(orders):
            if isinstance(order, Gate):
                receipts[index] = self._move_gate(order)
                continue
            record = noted.get(order.job, before.get(order.job))
            try:
                change = change_of(order, record, now, self._me)
            except Refused as refused:
                receipts[index] = Receipt(
                    order=order, result=Result.REFUSED, refusal=refused.refusal, detail=str(refused)
                )
                continue
            if change is None:
                receipts[index] = Receipt(order=order, result=Result.ALREADY)
                continue
            changes[index] = change
            if change.site_factor is not None and record is not None:
                self._factors.order(record, change.site_factor, now)
            if change.comment is not None and record is not None and times[order.job] > 1:
                noted[order.job] = record.but(admin_comment=change.comment)
                if (earlier := notes.pop(order.job, None)) is not None:
                    instead[earlier] = index
                    del changes[earlier]
                if change == Change(job=change.job, comment=change.comment):
                    notes[order.job] = index
        # nothing is stopped for a job that would still have to wait for another one
        lost = {one.order.urgent for one in receipts.values() if isinstance(one.order, Requeue)}
        for index in list(changes):
            if isinstance(order := orders[index], Requeue) and order.urgent in lost:
                detail = f"another job is not stopped for job {order.urgent}"
                receipts[index] = Receipt(order=order, result=Result.REFUSED, refusal=Refusal.CHANGED, detail=detail)
                del changes[index]
        if changes:
            said = self._write([line for change in _whole_arrays(orders, changes, before) for line in change.lines()])
            after, now = self._after(changes.values()), int(self._clock())
            for index, change in changes.items():
                receipts[index] = _receipt(orders[index], change, after.get(change.job), said, now)
        for earlier, index in sorted(instead.items(), reverse=True):
            receipts[earlier] = replace(receipts[index], order=orders[earlier])
        return tuple(receipts[index] for index in range(len(orders)))

    def watch(self, seconds: float) -> bool:
        """Wait until jobs have come, started or ended, for at most some seconds, and tell whether they have."""
        end = time.monotonic() + seconds
        while (due := self._glanced + self._pause()) <= end:
            time.sleep(max(0.0, due - time.monotonic()))
            before, self._seen = self._seen, self._glance()
            if before not in (None, self._seen):
                return True
        time.sleep(max(0.0, end - time.monotonic()))
        return False

    def _pause(self) -> float:
        """Return the seconds between two looks."""
        if self._only_ranks or not any(job.state is JobState.WAITING for job in self._jobs):
            return _IDLE_PAUSE
        return min(_IDLE_PAUSE, max(_SHORTEST_PAUSE, _PAUSE * self._took))

    def _glance(self) -> str:
        self._glanced = time.monotonic()
        try:
            return self._client.command("squeue", "--all", "--noheader", "--format=%i %t %r %D").out
        finally:
            self._took = time.monotonic() - self._glanced

    def _look(self) -> dict[str, str]:
        """Return the line of each job."""
        text = self._client.lines()
        if text != self._looked[0]:
            self._looked = text, lines_by_job(text)
        return self._looked[1]

    @property
    def _is_old(self) -> bool:
        """Whether the jobs have not been read for long."""
        return time.monotonic() - self._read_at > _TRUSTED

    def _read(self, lines: dict[str, str]) -> None:
        """Read all jobs, as Slurm has them now, a moment after they had these lines."""
        self._read_at = time.monotonic()
        jobs = self._client.jobs()
        numbers = [str(record.number) for record in jobs]
        known = set(numbers)
        if lost := next((job for job, line in lines.items() if job not in known and is_alive(line)), None):
            raise BridgeError(
                ("squeue", "--json"), f"Expected job {lost}, which squeue named a moment before, got none"
            )
        if self._only_ranks:
            jobs = self._factors.given(jobs, self._client.factors(), int(self._clock()))
        self._jobs = jobs
        by_id: dict[str, JobRecord] = {}
        are_whole = lines.keys() >= known
        for number, record in zip(numbers, jobs, strict=True):
            if record.array is None:
                by_id[number] = record
            else:
                by_id.update(dict.fromkeys(_ids(record), record))
        # lines that leave jobs out are not trusted
        self._lines, self._by_id = lines if are_whole else {}, by_id

    def _after(self, changes: Collection[Change]) -> Mapping[str, JobRecord]:
        """Return all jobs after some were changed: by their lines if these say that all is done, and read otherwise."""
        lines, now, found = self._look(), int(self._clock()), dict[str, JobRecord]()
        for change in changes:
            name, record = change.job, self._by_id.get(change.job)
            if record is not None and name in self._lines and name in lines:
                record = as_ordered(record, self._lines[name], lines[name])
            if record is None or not change.is_done(record, now):
                self._read(lines)
                return self._by_id
            found[name] = record
        new = {id(self._by_id[name]): record for name, record in found.items()}
        self._jobs = tuple(new.get(id(record), record) for record in self._jobs)
        self._by_id = {**self._by_id, **found}
        self._lines = {**self._lines, **{name: lines[name] for name in found}}
        return self._by_id

    def _write(self, lines: Sequence[str]) -> str:
        """Give lines to ``scontrol``, and return what it says of those that it refuses."""
        said = []
        for first in range(0, len(lines), _LINES):
            given = "\n".join(lines[first : first + _LINES]) + "\n"
            said.append(self._client.command("scontrol", given=given, codes=(0, 1)).err)
        return "\n".join(said)

    def _gate_is_closed(self) -> bool | None:
        """Tell whether the gate is closed; None: it is not ours."""
        if self._gate is None:
            return None
        try:
            match = _CLOSED.fullmatch(self._gate.read_text(encoding="ascii"))
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            raise BridgeError((str(self._gate),), f"Expected the gate's file, got: {error}") from error
        return match is not None and int(match[1]) > self._clock()

    def _move_gate(self, order: Gate) -> Receipt:
        """Close the gate for a while, or open it."""
        if self._gate is None:
            detail = "the site's file names no file of the gate"
            return Receipt(order=order, result=Result.REFUSED, refusal=Refusal.UNSUPPORTED, detail=detail)
        text = f"closed until {order.until}\n".encode()
        try:
            if self._gate.exists() is order.is_closed and not (order.is_closed and self._gate.read_bytes() != text):
                return Receipt(order=order, result=Result.ALREADY)
            if order.is_closed:
                write_bytes(self._gate, text)
                self._gate.chmod(0o644)  # slurmctld reads it
            else:
                self._gate.unlink(missing_ok=True)
        except (CpschedError, OSError) as error:
            return Receipt(order=order, result=Result.REFUSED, refusal=Refusal.OTHER, detail=str(error))
        return Receipt(order=order, result=Result.DONE)


def _whole_arrays(
    orders: Sequence[Order], changes: Mapping[int, Change], jobs: Mapping[str, JobRecord]
) -> list[Change]:
    """Return changes, with one for all tasks of an array that are changed alike: Slurm need not tell them apart."""
    alike: dict[tuple[int, Change], list[int]] = {}
    for index, change in changes.items():
        record = jobs[change.job]
        if isinstance(orders[index], Hold | HandBack) and record.array is not None and record.task is None:
            alike.setdefault((id(record), change._replace(job="")), []).append(index)
    whole: dict[int, Change | None] = {}
    for (_, change), places in alike.items():
        record = jobs[changes[places[0]].job]
        if len(places) == len(record.ids):
            whole |= dict.fromkeys(places)
            name = changes[places[0]].job
            whole[places[0]] = change._replace(job=name, whole=record.whole_id)
    return [found for index, change in changes.items() if (found := whole.get(index, change)) is not None]


def _lives(process: int) -> bool:
    with suppress(ProcessLookupError):
        try:
            os.kill(process, 0)
        except (PermissionError, OverflowError):
            return True
        return True
    return False


def _ids(record: JobRecord) -> Iterable[str]:
    try:
        return record.ids
    except ValueError:
        return ()


def _receipt(order: Order, change: Change, after: JobRecord | None, said: str, now: int) -> Receipt:
    """Return the receipt of an order, by the job as it is now and by what Slurm said; it waited before."""
    if after is not None and not after.state.is_over:
        runs = after.state is JobState.RUNNING
        if change.is_done(after, now) or (runs and isinstance(order, HandBack)):
            return Receipt(order=order, result=Result.DONE)
    if after is not None and isinstance(order, Start) and (after.state is JobState.RUNNING or after.state.is_over):
        ran_on = {share.node for share in after.shares} or set(hosts_of(after.ran_on))
        if ran_on == {place.node for place in order.allocation}:
            return Receipt(order=order, result=Result.DONE)
    words = [line for line in said.splitlines() if re.search(rf"(?<![\d_]){change.job}(?![\d_])", line)]
    told = printable("; ".join(words))[:_LONGEST_SAID]
    if words:
        return Receipt(order=order, result=Result.REFUSED, refusal=refusal_of(told), detail=told)
    if after is None or after.state.is_over:
        return Receipt(order=order, result=Result.REFUSED, refusal=Refusal.GONE, detail="the job is over")
    detail = "the job is not as ordered, and Slurm said nothing of it"
    return Receipt(order=order, result=Result.UNKNOWN, detail=detail)
