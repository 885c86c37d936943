"""Slurm's accounting: the text of ``sacct -P`` (``--parsable2``), with any columns, and ``sacct --json``; and tables of
GPU clusters of Alibaba (github.com/alibaba/clusterdata: pods of 2023, tasks of 2020 with their header), whose columns
become those of sacct.

Dates without offset are taken to be of UTC, which only shifts the log. Steps of jobs (``17.batch``) are not read.
Columns and keys are those of sacct(1), 21.08 to 25.05.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from cpsched.domain import Amounts, Arrangement, Chunk, Place, Request
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats.faults import UnusableLine, read_each, shown
from cpsched.formats.files import load_json, read_lines
from cpsched.formats.hostlist import expand_hostlist
from cpsched.formats.logs.jobs import Held, JobLog, LogAnomaly, LogJob, LogKind, Note, log_of
from cpsched.formats.logs.quantities import count, slurm_seconds

#: The first line of a text.
_HEADER = re.compile(r"(?:\w+\|)*JobID(?:Raw)?\|.*", re.IGNORECASE)
#: The same of any table of sacct.
_ANY_HEADER = re.compile(r"\s*(?:\w+\W+)*JobID(?:Raw)?\W.*", re.IGNORECASE)
#: The key of what is wrong with a line.
_ODD = "|"
_NOTHING = frozenset({"", "unknown", "none", "n/a", "(null)", "invalid"})
_NO_LIMIT = frozenset({"partition_limit", "unlimited", "infinite", "not_set"})
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)([nc]?)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]+)?")
_UNITS = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_STATUS = {"COMPLETED": 1, "CANCELLED": 5}

_Fields = Mapping[str, str]

#: Tables with commas, by the first columns of their headers: the columns that are ours, and what a row asks for: the
#: column with the number of equal parts, and of each part (name, column, how many are one of ours, unit).
_TABLES: Mapping[str, tuple[dict[str, str], str, tuple[tuple[str, str, float, str], ...]]] = {
    "name,cpu_milli,memory_mib": (
        {"jobid": "name", "submit": "creation_time", "start": "scheduled_time", "end": "deletion_time", "qos": "qos"},
        "",
        (("cpu", "cpu_milli", 1000, ""), ("mem", "memory_mib", 1, "M"), ("gres/gpu", "num_gpu", 1, "")),
    ),
    "job_name,task_name,inst_num,status": (
        {"jobid": "job_name", "step": "task_name", "submit": "start_time", "start": "start_time", "end": "end_time"},
        "inst_num",
        (("cpu", "plan_cpu", 100, ""), ("mem", "plan_mem", 1 / 1024, "M"), ("gres/gpu", "plan_gpu", 100, "")),
    ),
}


def is_header(line: str) -> bool:
    """Tell whether a line is the first one of a table that is read here, or of sacct without ``-P``."""
    return _ANY_HEADER.fullmatch(line) is not None or table_of(line) is not None


def table_of(header: str) -> str | None:
    """Return how the header of a table begins that is read here; None: it is none."""
    return next((begin for begin in _TABLES if header.startswith(f"{begin},")), None)


def _row(begin: str, row: _Fields) -> _Fields:
    """Return the columns of sacct of a row of a table. Second 0 of the table is 1: Slurm's 0 is no time."""

    def number(column: str) -> float:
        text = row.get(column) or "0"
        if not _NUMBER.fullmatch(text):
            raise UnusableLine(f"Expected a number in the column {column}, got {shown(text)}")
        return float(text)

    columns, parts, asked = _TABLES[begin]
    fields = {ours: row.get(column, "") for ours, column in columns.items()}
    times = {key: str(1 + int(number(columns[key]))) for key in ("submit", "start", "end") if fields[key]}
    count = max(1, int(number(parts))) if parts else 1
    tres = [f"{name}={count * ceil(number(column) / each)}{unit}" for name, column, each, unit in asked]
    name = ".".join(filter(None, (fields["jobid"], fields.get("step"))))
    done = {"state": "COMPLETED" if "end" in times else "RUNNING", "reqtres": ",".join([*tres, f"node={count}"])}
    return {**fields, **times, **done, "jobid": name}


def read_sacct(path: str | Path) -> JobLog:
    """Read the accounting of jobs, text or JSON.

    A job is one that has begun; one that was cancelled before is left out, and one that waits has no run time.

    Raises `DocumentError` if the file cannot be read or holds not one job.
    """
    jobs: dict[str, LogJob] = {}
    left_out: list[tuple[LogAnomaly, Fault]] = []

    def read(fields: _Fields, number: int) -> None:
        begin = table_of(",".join(fields))
        job = _job(fields if begin is None else _row(begin, fields), number)
        if job.start is None and job.status is not None:
            fault = Fault(f"line {number}", f"job {shown(job.id)[1:-1]}: never started")
            left_out.append((LogAnomaly.CANCELLED, fault))
        else:
            jobs[job.id] = job

    faults = read_each(_entries(Path(path)), read)
    others = {"left_out": tuple(left_out), "has_unix_times": table_of(next(read_lines(Path(path)))) is None}
    return log_of(path, LogKind.SACCT, jobs.values(), faults, expected="jobs of sacct -P or sacct --json", **others)


def is_json(document: object) -> bool:
    """Tell whether a document is that of ``sacct --json``."""
    jobs = document.get("jobs") if isinstance(document, dict) else None
    return isinstance(jobs, list) and any(isinstance(job, dict) and isinstance(job.get("time"), dict) for job in jobs)


def _entries(path: Path) -> Iterator[tuple[int, _Fields]]:
    """Yield the columns of each job in small letters; of JSON what the columns would be."""
    lines = ((number, text) for number, text in enumerate(read_lines(path), start=1) if text)
    first = next(lines, (0, ""))
    if table_of(first[1]) is not None:
        names = first[1].split(",")
        yield from ((number, dict(zip(names, text.split(","), strict=False))) for number, text in lines)
        return
    if not _HEADER.fullmatch(first[1]):
        if is_header(first[1]):
            columns = f"Expected columns with | between them, as sacct -P has them, got {shown(first[1])}"
            raise DocumentError(str(path), [Fault(f"line {first[0]}", columns)])
        document = load_json(path)
        found: Iterable[Any] = document.get("jobs", ()) if isinstance(document, dict) else ()
        for number, entry in enumerate(found, start=1):
            if isinstance(entry, dict):
                yield number, _of_json(entry)
        return
    names = first[1].lower().split("|")
    for number, text in lines:
        values = text.split("|")
        fields = dict(zip(names, values, strict=False))
        if len(values) != len(names):  # a name of a user has the sign too
            fields[_ODD] = f"Expected {len(names)} columns, got {len(values)}"
        if "." not in (fields.get("jobid") or fields.get("jobidraw", "")):
            yield number, fields


def _of_json(entry: Mapping[str, Any]) -> dict[str, str]:
    def at(*keys: str) -> str:
        value: Any = entry
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):  # a number that says whether it is set
            value = value.get("number") if value.get("set") and not value.get("infinite") else None
        if isinstance(value, list):
            value = ",".join(map(str, value))
        return "" if value is None or isinstance(value, bool) else str(value)

    array, task = at("array", "job_id"), at("array", "task_id")
    tres = entry.get("tres")
    asked = tres.get("requested") if isinstance(tres, Mapping) else None
    parts = [part for part in asked if isinstance(part, Mapping)] if isinstance(asked, list) else []
    names = [
        (f"{one.get('type')}{'/' if one.get('name') else ''}{one.get('name') or ''}", one.get("count")) for one in parts
    ]
    return {
        "jobid": f"{array}_{task}" if array not in ("", "0") and task else at("job_id"),
        **{key: at(key) for key in ("account", "user", "group", "partition", "qos")},
        "user": at("user") or at("association", "user"),
        "nodelist": at("nodes"),
        "nnodes": at("allocation_nodes"),
        "reqcpus": at("required", "CPUs"),
        "reqtres": ",".join(f"{name}={number}{'M' if name == 'mem' else ''}" for name, number in names),
        "submit": at("time", "submission"),
        "eligible": at("time", "eligible"),
        "start": at("time", "start"),
        "end": at("time", "end"),
        "elapsedraw": at("time", "elapsed"),
        "timelimitraw": at("time", "limit"),
        "state": at("state", "current") or at("state"),
    }


def _job(fields: _Fields, line: int) -> LogJob:
    if _ODD in fields:
        raise UnusableLine(fields[_ODD])
    name = fields.get("jobid") or fields.get("jobidraw") or ""
    if not name:
        raise UnusableLine("Expected a JobID, got none")
    submit = _time(fields, "submit")
    if submit is None:
        raise UnusableLine("Expected a time of submission (the column Submit), got none")
    start, end, eligible = _time(fields, "start"), _time(fields, "end"), _time(fields, "eligible")
    state = fields.get("state", "").partition(" ")[0].partition(",")[0].rstrip("+").upper()
    is_over = state not in ("", "PENDING", "RUNNING", "SUSPENDED", "REQUEUED")
    is_begun = start is not None and state != "PENDING"
    runtime = None
    if is_begun and is_over and start is not None:
        elapsed = fields.get("elapsedraw", "")
        runtime = int(elapsed) if elapsed.isdecimal() else None if end is None else end - start
        if runtime is not None and runtime < 0:
            raise UnusableLine(f"Expected an end >= start={start}, got {end}")
    notes: list[Note] = []
    partition, _, others = fields.get("partition", "").partition(",")
    if others:
        notes.append((LogAnomaly.NOT_SIMULATED, "asks for one of several partitions: the first one"))
    request = _request(fields)
    return LogJob(
        id=name,
        line=line,
        submit=submit,
        request=request,
        walltime=_walltime(fields),
        runtime=runtime,
        eligible=eligible if eligible is not None and eligible > submit else None,
        start=start if is_begun else None,
        user=fields.get("user") or None,
        group=fields.get("group") or None,
        project=fields.get("account") or None,
        queue=partition or None,
        partition=partition or None,
        status=_STATUS.get(state, 0) if is_over else None,
        allocation=_allocation(fields, request) if is_begun else (),
        notes=tuple(notes),
    )


def _time(fields: _Fields, key: str) -> int | None:
    text = fields.get(key, "")
    if text.lower() in _NOTHING or text == "0":
        return None
    try:
        if text.isdecimal():
            return int(text)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnusableLine(f"Expected a date in {key}, got {shown(text)}") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _walltime(fields: _Fields) -> int | None:
    raw, text = fields.get("timelimitraw", ""), fields.get("timelimit", "")
    if raw.isdecimal():
        return int(raw) * 60
    return None if text.lower() in _NOTHING | _NO_LIMIT else slurm_seconds(text)


def _request(fields: _Fields) -> Request:
    """Return equal chunks, one for each node, of what the job asked for in all, or else got."""
    tres = fields.get("reqtres") or fields.get("alloctres") or ""
    asked = dict(part.partition("=")[::2] for part in tres.split(",") if part)
    cpus = _first(asked.get("cpu"), fields.get("reqcpus"), fields.get("ncpus"), fields.get("alloccpus"))
    nodes = _first(asked.get("node"), fields.get("reqnodes"), fields.get("nnodes"), fields.get("allocnodes"))
    nodes = min(nodes, max(1, cpus))
    amounts = {"cores": -(-cpus // nodes)}
    if memory := _memory(asked.get("mem") or "", 1, 1) or _memory(fields.get("reqmem", ""), cpus, nodes):
        amounts["mem"] = -(-memory // nodes)
    for name, number in asked.items():
        if name.startswith("gres/") and number.isdecimal() and int(number):
            kind = name.removeprefix("gres/").replace(":", ".")
            ours = f"gpus{kind[3:]}" if kind == "gpu" or kind.startswith("gpu.") else kind
            for key in {ours, ours.partition(".")[0]}:
                amounts[key] = max(amounts.get(key, 0), -(-int(number) // nodes))
    place = Place(arrangement=Arrangement.SCATTER if nodes > 1 else Arrangement.FREE)
    return Request(chunks=(Chunk(count=nodes, resources=Amounts(amounts)),), place=place)


def _first(*texts: str | None) -> int:
    for text in texts:
        if text and text.isdecimal() and int(text):
            return count(text, "a number of CPUs or nodes")
    return 1


def _memory(text: str, cpus: int, nodes: int) -> int:
    """Return an amount of memory in all (MiB): ``4G``; up to 20.11 ``4Gn`` for each node, ``2Gc`` for each CPU."""
    match = _MEMORY.fullmatch(text)
    if match is None:
        return 0
    times = {"n": nodes, "c": cpus}.get(match[3].lower(), 1)
    return -int(-float(match[1]) * _UNITS[match[2].upper()] * times // 1)


def _allocation(fields: _Fields, request: Request) -> tuple[Held, ...]:
    text = fields.get("nodelist", "")
    if text.lower() in _NOTHING or text == "None assigned":
        return ()
    try:
        names = expand_hostlist(text)
    except SyntaxFault:
        raise UnusableLine(f"Expected a list of nodes, got {shown(text)}") from None
    cores = _first(fields.get("ncpus"), fields.get("alloccpus"), str(request.totals["cores"]))
    return tuple(Held(node=name, cores=max(1, cores // len(names))) for name in names)
