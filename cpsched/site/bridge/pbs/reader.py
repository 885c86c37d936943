"""``qstat -f -F json`` and ``pbsnodes -a -F json`` as a `Snapshot`.

PBS writes requests as cpsched does: chunks, ``2:ncpus=4:mem=1gb``, and a place. Attributes and states are those of the
PBS Professional reference guide (2022.1, chapters 6 and 8). Times are local dates in the C locale.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from cpsched.domain import (
    DEFAULT_EXPECTED_WAIT,
    Amounts,
    Chunk,
    Cluster,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    NodeClass,
    NodeState,
    Place,
    Placement,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import parse_request, trusted
from cpsched.site.bridge.protocol import JobFacts, JobState, LeftJob, Snapshot
from cpsched.text import printable

Answer = Mapping[str, Any]

#: Each letter of ``job_state``; E is exiting, M moved to another server, B an array of which some tasks have begun.
JOB_STATES = {
    "B": JobState.WAITING,
    "E": JobState.RUNNING,
    "F": JobState.COMPLETED,
    "H": JobState.HELD,
    "M": JobState.CANCELLED,
    "Q": JobState.WAITING,
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "T": JobState.WAITING,
    "U": JobState.RUNNING,
    "W": JobState.WAITING,
    "X": JobState.COMPLETED,
}

_UP, _DRAIN, _DOWN = NodeState.UP, NodeState.DRAIN, NodeState.DOWN
#: Each word of a node's ``state``; the worst one counts.
NODE_STATES = {
    "free": _UP,
    "job-busy": _UP,
    "job-exclusive": _UP,
    "resv-exclusive": _UP,
    "busy": _DRAIN,
    "maintenance": _DRAIN,
    "offline": _DRAIN,
    "provisioning": _DRAIN,
    "sleep": _DRAIN,
    "wait-provisioning": _DRAIN,
    "initializing": _DOWN,
    "down": _DOWN,
    "stale": _DOWN,
    "state-unknown": _DOWN,
    "unresolvable": _DOWN,
}
_ORDER = (_UP, _DRAIN, _DOWN)

#: Resources that say where a chunk is, not how much of something it takes.
_NO_AMOUNTS = frozenset({"arch", "host", "vnode", "vntype"})
_NAMES = {"ncpus": "cores", "ngpus": "gpus", "nmics": "mics"}
_SIZE = re.compile(r"(\d+)(b|kb|mb|gb|tb|w|kw|mw|gw|tw)?", re.IGNORECASE)
_BYTES = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_WORD = 8
_VNODE = re.compile(r"\(([^()]*)\)")
_DEPENDENCY = re.compile(r"([a-z]+):(.+)")
_ARRAY = re.compile(r"(.*)\[(\d*)\](.*)")
_MOST_BYTES = 512 * 2**20


class _Inexpressible(Exception):  # noqa: N818 - no error: such a job stays the manager's
    """The job asks for something that an instance cannot say; the message says what, in words."""


def read_directory(path: Path) -> tuple[Answer, Answer]:
    """Return the answers of ``qstat`` and ``pbsnodes`` in a directory: what each file is, its contents tell.

    Raises `DocumentError` if there is not one of each, or they are no JSON objects.
    """
    found: dict[str, Answer] = {}
    try:
        files = sorted(path.glob("*.json"))
        for file in files:
            if file.stat().st_size > _MOST_BYTES:
                raise DocumentError(str(file), [Fault("", f"Expected at most {_MOST_BYTES} bytes, got more")])
            answer = _parse(file.read_text(encoding="utf-8", errors="replace"), str(file))
            for key in ("Jobs", "nodes"):
                if isinstance(answer.get(key), Mapping):
                    found.setdefault(key, answer)
    except OSError as error:
        raise DocumentError(str(path), [Fault("", f"Expected a directory, got: {error.strerror}")]) from None
    missing = [command for key, command in (("nodes", "pbsnodes -a -F json"),) if key not in found]
    if missing:
        raise DocumentError(str(path), [Fault("", f"Expected an answer of {missing[0]}, got none")])
    return found.get("Jobs", {}), found["nodes"]


def _parse(text: str, source: str) -> Answer:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [Fault("", f"Expected JSON, got: {error}")]) from None
    if not isinstance(answer, dict):
        raise DocumentError(source, [Fault("", "Expected a JSON object, got another value")])
    return answer


def make_snapshot(
    qstat: Answer, pbsnodes: Answer, *, now: int | None = None, zone: tzinfo | None = None, name: str = "pbs"
) -> Snapshot:
    """Make a snapshot of what PBS said.

    Raises `DocumentError` with all faults: unknown states, and values that cannot be read.

    `qstat`, `pbsnodes`: the two answers.
    `now`: unix seconds; None: the ``timestamp`` of the answers.
    `zone`: the zone of the dates; None: that of this machine.
    """
    faults: list[Fault] = []
    moment = now if now is not None else int(qstat.get("timestamp") or pbsnodes.get("timestamp") or 0)
    classes = tuple(_nodes(pbsnodes, faults))
    known = frozenset(one.names[0] for one in classes)
    left: dict[str, str] = {}
    jobs: dict[str, Job] = {}
    facts: dict[str, JobFacts] = {}
    for key, attributes in qstat.get("Jobs", {}).items():
        try:
            state = _state(attributes)
            for one in _tasks(key, attributes):
                facts[one] = _facts(attributes, state, moment, zone)
                if not state.is_over:
                    _take(one, attributes, state, known, moment, zone, jobs, left)
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            faults.append(Fault(f"Jobs.{printable(key)}", str(error) or "Expected the attributes of a job"))
    if faults:
        raise DocumentError("qstat and pbsnodes", faults)
    _drop_waiters(jobs, left)
    names = dict.fromkeys(job.queue for job in jobs.values() if job.queue is not None)
    instance = Instance(
        name=name,
        epoch=datetime.fromtimestamp(0, UTC),
        now=moment,
        cluster=Cluster(classes=classes),
        queues=FrozenMap({queue: Queue(expected_wait=DEFAULT_EXPECTED_WAIT) for queue in names}),
        jobs=tuple(jobs.values()),
    )
    return Snapshot(
        instance=trusted(instance),
        left=tuple(LeftJob(id=key, reason=printable(reason)) for key, reason in left.items()),
        taken_at=moment,
        jobs=facts,
    )


def _take(
    key: str,
    attributes: Answer,
    state: JobState,
    known: frozenset[str],
    now: int,
    zone: tzinfo | None,
    jobs: dict[str, Job],
    left: dict[str, str],
) -> None:
    """Put one job, or one task, among the jobs or among those that are left."""
    try:
        if state is JobState.HELD:
            raise _Inexpressible("it is held")
        job = _job(key, attributes, now, zone)
        jobs[key] = _running(job, attributes, known, now, zone) if state is JobState.RUNNING else job
    except _Inexpressible as error:
        left[key] = str(error)


def _drop_waiters(jobs: dict[str, Job], left: dict[str, str]) -> None:
    """Leave the jobs that wait for one that is left."""
    while lost := {key: job for key, job in jobs.items() if any(link.job not in jobs for link in job.after)}:
        for key, job in lost.items():
            awaited = next(link.job for link in job.after if link.job not in jobs)
            left[key] = f"it waits for job {awaited}, which cannot be planned"
        for key in lost:
            del jobs[key]


def _nodes(answer: Answer, faults: list[Fault]) -> Iterator[NodeClass]:
    for name, attributes in answer.get("nodes", {}).items():
        try:
            words = str(attributes.get("state", "")).split(",")
            unknown = [word for word in words if word.strip() not in NODE_STATES]
            if unknown:
                raise ValueError(f"Expected states of nodes that PBS has, got {' '.join(unknown)}")
            has = attributes.get("resources_available", {})
            amounts = {
                _NAMES.get(key, key): _amount(key, value) for key, value in has.items() if _is_amount(key, value)
            }
            properties = {key: str(value) for key, value in has.items() if not _is_amount(key, value)}
            state = max((NODE_STATES[word.strip()] for word in words), key=_ORDER.index)
            yield NodeClass(names=(name,), resources=Amounts(amounts), properties=FrozenMap(properties), state=state)
        except (ValueError, AttributeError, TypeError) as error:
            faults.append(Fault(f"nodes.{printable(name)}", str(error)))


def _is_amount(key: str, value: object) -> bool:
    if key in _NO_AMOUNTS or isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and _SIZE.fullmatch(value) is not None)


def _amount(key: str, value: object) -> int:
    """Return an amount: sizes in MiB, rounded down for what a node has; numbers as they are."""
    if isinstance(value, int):
        return value
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise ValueError(f"Expected an amount of {key}, got {value!r}")
    unit = (match[2] or "").lower()
    if not unit:
        return int(match[1])
    size = int(match[1]) * _BYTES[unit[0]] if unit[0] in _BYTES else int(match[1])
    return size * (_WORD if unit.endswith("w") else 1) // _BYTES["m"]


def _state(attributes: Answer) -> JobState:
    letter = attributes.get("job_state")
    if letter not in JOB_STATES:
        raise ValueError(f"Expected the state of a job that PBS has, got {letter!r}")
    if letter == "F" and attributes.get("Exit_status", 0) != 0:
        return JobState.FAILED
    return JOB_STATES[str(letter)]


def _tasks(key: str, attributes: Answer) -> tuple[str, ...]:
    """Return the id of a job, or those of the tasks of an array that have not begun."""
    match = _ARRAY.fullmatch(key)
    if match is None or match[2]:
        return (key,)
    remaining = attributes.get("array_indices_remaining", attributes.get("array_indices_submitted", ""))
    found: list[int] = []
    for part in str(remaining).split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if first.strip().isdecimal():
            found += range(int(first), int(last or first) + 1, int(step or 1))
    return tuple(f"{match[1]}[{index}]{match[3]}" for index in found)


def _time(attributes: Answer, key: str, zone: tzinfo | None) -> int | None:
    """Return a date such as ``Mon Nov 23 05:42:58 2026`` in Unix seconds."""
    value = attributes.get(key)
    if value is None or isinstance(value, int):
        return value
    moment = datetime.strptime(str(value), "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone)
    return int(moment.timestamp())


def _walltime(listed: Answer) -> int:
    value = listed.get("walltime")
    if value is None:
        raise _Inexpressible("it has no walltime")
    if isinstance(value, int):
        return max(1, value)
    parts = [int(part) for part in str(value).split(":")]
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + part
    return max(1, seconds)


def _job(key: str, attributes: Answer, now: int, zone: tzinfo | None) -> Job:
    listed = attributes.get("Resource_List", {})
    request = _request(listed)
    begin = _time(attributes, "Execution_Time", zone)
    return Job(
        id=key,
        user=printable(str(attributes.get("Job_Owner", "")).partition("@")[0]) or None,
        group=printable(str(attributes.get("egroup", ""))) or None,
        queue=attributes.get("queue"),
        submit=min(now, _time(attributes, "qtime", zone) or _time(attributes, "ctime", zone) or now),
        steps=(Step(walltime=_walltime(listed), request=request),),
        not_before=begin if begin is not None and begin > now else None,
        after=tuple(_after(attributes)),
    )


def _request(listed: Answer) -> Request:
    """Return the chunks of ``select`` and ``place``; old requests (``nodes=``) have a ``select`` too."""
    text = listed.get("select")
    if not text:
        raise _Inexpressible("it has no select statement")
    place = str(listed.get("place", "free"))
    if "group=" in place:
        raise _Inexpressible(f"it asks for nodes that are alike ({place})")
    if place.startswith("v"):
        place = place[1:]
    place = place.replace("exclhost", "excl")
    try:
        parsed = parse_request(f"{text},place={place}", countable={"cores", "mem", "gpus", "mics"})
    except SyntaxFault as error:
        raise _Inexpressible(f"its request cannot be read: {error.message}") from None
    return parsed.request


def _after(attributes: Answer) -> Iterator[Dependency]:
    for part in str(attributes.get("depend") or "").split(","):
        if not part:
            continue
        match = _DEPENDENCY.fullmatch(part)
        if match is None or match[1] not in ("after", "afterok", "afterany", "afternotok"):
            if part.startswith("before"):
                continue  # what others wait for: they say it themselves
            raise _Inexpressible(f"it waits in a way that cannot be said ({part})")
        for awaited in match[2].split(":"):
            yield Dependency(job=awaited.partition("@")[0], type=DependencyType(match[1]))


def _running(job: Job, attributes: Answer, known: frozenset[str], now: int, zone: tzinfo | None) -> Job:
    """Return a running job: what ``exec_vnode`` says is a fact."""
    held: dict[str, dict[str, int]] = {}
    for group in _VNODE.findall(str(attributes.get("exec_vnode", ""))):
        for piece in group.split("+"):
            node, *amounts = piece.split(":")
            if node not in known:
                raise _Inexpressible(f"it runs on a node that is not known ({node})")
            taken = held.setdefault(node, {})
            for amount in amounts:
                key, _, value = amount.partition("=")
                ours = _NAMES.get(key, key)
                taken[ours] = taken.get(ours, 0) + max(1, _amount(key, value))
    if not held:
        raise _Inexpressible("it runs, and PBS does not say where")
    start = min(now, _time(attributes, "stime", zone) or now)
    allocation = tuple(
        Placement(node=node, resources=Amounts(amounts or {"cores": 1}), chunk=index, count=1)
        for index, (node, amounts) in enumerate(held.items())
    )
    chunks = tuple(Chunk(count=1, resources=one.resources) for one in allocation)
    place = Place(arrangement=job.request.place.arrangement, exclusive=job.request.place.exclusive)
    segment = Segment(start=start, end=max(start + job.walltime, now + 1), allocation=allocation)
    return Job(
        id=job.id,
        user=job.user,
        group=job.group,
        queue=job.queue,
        submit=job.submit,
        steps=(Step(walltime=job.walltime, request=Request(chunks=chunks, place=place)),),
        running=Running(start=start, segments=(segment,)),
    )


def _facts(attributes: Answer, state: JobState, now: int, zone: tzinfo | None) -> JobFacts:
    asked = (attributes.get("Resource_List"), attributes.get("queue"), attributes.get("run_count"))
    runs = state is JobState.RUNNING
    groups = _VNODE.findall(str(attributes.get("exec_vnode", ""))) if runs else []
    nodes = {piece.partition(":")[0] for group in groups for piece in group.split("+")}
    return JobFacts(
        state=state,
        revision=hashlib.blake2b(repr(asked).encode(), digest_size=8).hexdigest(),
        restarts=max(0, int(attributes.get("run_count") or 0) - (1 if runs else 0)),
        nodes=tuple(sorted(nodes)),
        start=_time(attributes, "stime", zone) if runs or state.is_over else None,
        end=_time(attributes, "mtime", zone) if state.is_over else None,
    )
