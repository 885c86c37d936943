"""Accounting logs of Torque and PBS: ``date;type;id;key=value key=value …``, a record each time something happens.

Source of the format: Torque Administrator Guide, "Accounting records"; PBS Professional writes the same with more keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from cpsched.domain import MAX_NAME, Request
from cpsched.errors import Fault
from cpsched.formats.faults import shown
from cpsched.formats.files import read_lines
from cpsched.formats.logs.jobs import (
    JobLog,
    LogAnomaly,
    LogJob,
    LogKind,
    Note,
    UnusableLine,
    log_of,
    read_dependencies,
    read_each,
)
from cpsched.formats.logs.quantities import torque_seconds
from cpsched.formats.logs.torque_request import read_exec_host, read_request, with_vnodes

#: A record: its time, type, job, and further fields.
RECORD = re.compile(r"[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};([A-Za-z]);([^;]*);(.*)")
_TIME = re.compile(r"[0-9]{1,15}")
_STATUS = re.compile(r"-?[0-9]{1,9}")
_LIST = "Resource_List."
#: Beyond it (256 + the number of a signal) a job was killed.
_SIGNALS = 256
_FAILED, _COMPLETED, _CANCELLED = 0, 1, 5


def read_torque(path: str | Path) -> JobLog:
    """Read an accounting log, plain or gzip; a file may have several days.

    A job is read from its last ``E`` (ended) record, or from its ``S`` (started) record if it did not end in the
    log: its run time is unknown then. The log does not have the request of a job with only ``Q`` (queued) and ``D``
    (deleted) records, which is reported as left out. Of other records (aborted, rerun, checkpointed, reservations)
    nothing is needed.

    Raises `DocumentError` if the file cannot be read or holds not one job.
    """
    reader = _Reader()
    lines = enumerate(read_lines(Path(path)), start=1)
    faults = read_each(((number, text) for number, text in lines if text), reader.read)
    faults += reader.close()
    expected = "an accounting log with started or ended jobs (records S and E)"
    others = {"left_out": tuple(reader.left_out), "has_unix_times": True}
    return log_of(path, LogKind.TORQUE, reader.jobs.values(), faults, expected=expected, **others)


class _Reader:
    """Mutable: the records so far."""

    def __init__(self) -> None:
        self.jobs: dict[str, LogJob] = {}
        self.left_out: list[tuple[LogAnomaly, Fault]] = []
        #: Lines of the first record of each job, and of started jobs with their fields.
        self._first: dict[str, int] = {}
        self._started: dict[str, tuple[int, str]] = {}
        #: Jobs with a record S or E, understood or not.
        self._told: set[str] = set()
        self._deleted: set[str] = set()
        #: Equal requests, each once.
        self._requests: dict[tuple[object, ...], tuple[Request, tuple[Note, ...]]] = {}

    def read(self, text: str, line: int) -> None:
        """Take one record."""
        match = RECORD.fullmatch(text)
        if match is None or not text.replace("\t", " ").isprintable():
            raise UnusableLine(f"Expected date;type;id;key=value, got {shown(text)}")
        kind, written, pairs = match.groups()
        job = written.partition(".")[0]
        if kind in "QSED" and not 0 < len(job) <= MAX_NAME:
            raise UnusableLine(f"Expected a job id, got {shown(written)}")
        if kind in "QSED":
            self._first.setdefault(job, line)
        if kind == "D":
            self._deleted.add(job)
        elif kind in "SE":
            self._told.add(job)
            if kind == "S":
                self._started[job] = line, pairs
            else:
                self._end(job, line, pairs)

    def _end(self, job: str, line: int, pairs: str) -> None:
        self._started.pop(job, None)
        before = self.jobs.get(job)
        notes: tuple[Note, ...] = ()
        if before is not None:
            notes = ((LogAnomaly.RAN_AGAIN, f"ended in line {before.line} before: this run is taken"),)
        ended = self._job(job, line, pairs, notes, has_ended=True)
        self.jobs.pop(job, None)
        self.jobs[job] = ended

    def close(self) -> list[Fault]:
        """Look at the jobs that did not end; return the lines of them that are not understood."""

        def read(started: tuple[str, str], line: int) -> None:
            job, pairs = started
            self.jobs[job] = self._job(job, line, pairs, (), has_ended=False)

        left = [(line, (job, pairs)) for job, (line, pairs) in self._started.items() if job not in self.jobs]
        faults = read_each(left, read)
        for job, line in self._first.items():
            if job not in self._told:
                anomaly = LogAnomaly.DELETED if job in self._deleted else LogAnomaly.NOT_STARTED
                self.left_out.append((anomaly, Fault(f"line {line}", f"job {shown(job)[1:-1]}: has no record S or E")))
        return faults

    def _job(self, job: str, line: int, pairs: str, notes: tuple[Note, ...], *, has_ended: bool) -> LogJob:
        fields = _fields(pairs)
        submit = _time(fields, "ctime" if "ctime" in fields else "qtime")
        start = _time(fields, "start")
        end = _time(fields, "end") if has_ended else None
        if end is not None and end < start:
            raise UnusableLine(f"Expected an end >= start={start}, got {end}")
        eligible = _time(fields, "etime") if "etime" in fields else submit
        walltime = fields.get(f"{_LIST}walltime")
        ignored: list[Note] = []
        after = read_dependencies(fields.get("depend"), ignored, lambda job: job.partition(".")[0])
        request, said = self._request(fields)
        return LogJob(
            id=job,
            line=line,
            submit=submit,
            request=request,
            walltime=None if walltime is None else torque_seconds(walltime),
            runtime=None if end is None else end - start,
            eligible=eligible if eligible > submit else None,
            start=start,
            user=_name(fields, "user"),
            group=_name(fields, "group"),
            project=_name(fields, "account") or _name(fields, "project"),
            queue=_name(fields, "queue"),
            status=_status(fields.get("Exit_status")),
            after=after,
            allocation=with_vnodes(read_exec_host(fields["exec_host"]), fields) if "exec_host" in fields else (),
            notes=(*notes, *said, *ignored),
        )

    def _request(self, fields: Mapping[str, str]) -> tuple[Request, tuple[Note, ...]]:
        """Return the request, the same object for equal requests."""
        asked = {key.removeprefix(_LIST): value for key, value in fields.items() if key.startswith(_LIST)}
        asked.pop("walltime", None)
        has_size = not asked.keys().isdisjoint({"select", "nodes", "procs", "ncpus"})
        got = () if has_size or "exec_host" not in fields else read_exec_host(fields["exec_host"])
        key = (*asked.items(), *got)
        if key not in self._requests:
            self._requests[key] = read_request(asked, got)
        return self._requests[key]


def _fields(pairs: str) -> dict[str, str]:
    """Split ``key=value key=value``; what has no ``=`` belongs to the value before."""
    fields: dict[str, list[str]] = {}
    words: list[str] = []
    for token in pairs.split():
        key, sign, value = token.partition("=")
        if not sign and not fields:
            raise UnusableLine(f"Expected key=value, got {shown(token)}")
        if not sign:
            words.append(token)
            continue
        if key in fields:
            raise UnusableLine(f"Expected {shown(key)[1:-1]} once, got it twice")
        fields[key] = words = [value]
    return {key: " ".join(values) for key, values in fields.items()}


def _time(fields: Mapping[str, str], key: str) -> int:
    text = fields.get(key, "")
    if not _TIME.fullmatch(text):
        raise UnusableLine(f"Expected {key} in seconds since 1970, got {shown(text) if text else 'nothing'}")
    return int(text)


def _name(fields: Mapping[str, str], key: str) -> str | None:
    name = fields.get(key, "").strip('"')
    if len(name) > MAX_NAME:
        raise UnusableLine(f"Expected a {key} of at most {MAX_NAME} characters, got {len(name)}")
    return name or None


def _status(text: str | None) -> int | None:
    """Return the status of the Standard Workload Format that an exit status is.

    0 is completed; 256 and more is killed by a signal (271: deleted with SIGTERM), cancelled; -11, -10 and -12 (over
    the limit of walltime, memory, CPU time), other negative ones (the node could not start it) and those of the job's
    own script are failed.
    """
    if text is None:
        return None
    if not _STATUS.fullmatch(text):
        raise UnusableLine(f"Expected a number as Exit_status, got {shown(text)}")
    code = int(text)
    if code == 0:
        return _COMPLETED
    return _CANCELLED if code >= _SIGNALS else _FAILED
