"""``qstat -f -F json``, ``pbsnodes -a -F json``, ``pbs_rstat -F json`` and ``qstat -Bf -F json`` as a `Snapshot`.

Attributes and states are those of the
PBS Professional reference guide (2022.1, chapters 6 and 8). Times are local dates in the C locale.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from cpsched.domain import (
    DEFAULT_EXPECTED_WAIT,
    Amounts,
    Chunk,
    Dependency,
    DependencyType,
    FrozenMap,
    Instance,
    Job,
    Place,
    Placement,
    Queue,
    Request,
    Running,
    Segment,
    Step,
)
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import parse_indices
from cpsched.site.bridge.answers import Answer, read_answers
from cpsched.site.bridge.leaving import Inexpressible, without_awaited
from cpsched.site.bridge.pbs.machine import Machine, amount, is_amount, read_machine
from cpsched.site.bridge.pbs.requests import request_of, takes
from cpsched.site.bridge.protocol import JobState, Snapshot, by_word
from cpsched.site.bridge.reserving import Reserved, for_members_only
from cpsched.site.bridge.sound import Checker
from cpsched.text import printable

#: Each letter of ``job_state``; E is exiting, M moved to another server, B an array of which some tasks have begun.
JOB_STATES = by_word(
    {
        JobState.WAITING: "B Q T W",
        JobState.HELD: "H",
        JobState.RUNNING: "E R S U",
        JobState.COMPLETED: "F X",
        JobState.CANCELLED: "M",
    }
)

#: Amounts of a job that PBS has itself.
_OWN = re.compile(
    "ncpus|ngpus|nmics|naccelerators|nodect|nodes|mpiprocs|ompthreads|p?v?mem|p?cput|nice|file|(min_|max_|soft_)?walltime"
)
#: The walltime (s) of a running job without a limit: a year.
_NO_LIMIT = 365 * 86400
_VNODE = re.compile(r"\(([^()]*)\)")
_DEPENDENCY = re.compile(r"([a-z]+):(.+)")
_ARRAY = re.compile(r"(.*)\[(\d*)\](.*)")
_WALLTIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.\d*)?")


def read_directory(path: Path) -> tuple[Answer, Answer, Answer, Answer]:
    """Return the answers of ``qstat``, ``pbsnodes``, ``pbs_rstat`` and ``qstat -B``: what each is, its contents tell.

    Raises `DocumentError` if there is none of ``pbsnodes``, or they are no JSON objects.
    """

    def kinds(answer: Answer) -> list[str]:
        return [key for key in ("Jobs", "nodes", "resvs", "Server") if isinstance(answer.get(key), Mapping)]

    found = read_answers(path, kinds, {"nodes": "pbsnodes -a -F json"})
    return found.get("Jobs", {}), found["nodes"], found.get("resvs", {}), found.get("Server", {})


def make_snapshot(
    qstat: Answer,
    pbsnodes: Answer,
    rstat: Answer | None = None,
    servers: Answer | None = None,
    *,
    now: int | None = None,
    zone: tzinfo | None = None,
    name: str = "pbs",
) -> Snapshot:
    """Make a snapshot of what PBS said.

    A record with a fault costs that record: the job is left out, the vnode counts as down. What the vnodes say is
    assigned, and no listed job has, is held. Raises `DocumentError` with all faults if nothing can be read.

    `qstat`, `pbsnodes`, `rstat`, `servers`: the answers; without the last two the times of reservations and the
    resources of the server are not known.
    `now`: unix seconds; None: the ``timestamp`` of the answers.
    `zone`: the zone of the dates; None: that of this machine.
    """
    faults: list[Fault] = []
    moment = now if now is not None else int(qstat.get("timestamp") or pbsnodes.get("timestamp") or 0)
    machine = read_machine(pbsnodes, faults)
    listed = qstat.get("Jobs", {})
    arrays = _arrays(listed)
    jobs, left, unread = dict[str, Job](), dict[str, Inexpressible](), dict[str, Inexpressible]()
    for key, attributes in listed.items():
        try:
            for one, found in _read(key, attributes, machine, arrays, moment, zone):
                if isinstance(found, Job):
                    jobs[one] = found
                else:
                    left[one] = found
        except (ValueError, AttributeError, TypeError, KeyError, SyntaxFault) as error:
            message = error.message if isinstance(error, SyntaxFault) else str(error)
            reason = message or "Expected the attributes of a job"
            faults.append(Fault(f"Jobs.{printable(key)}", reason))
            unread[key] = Inexpressible(f"its record cannot be read: {reason}")
    notes = [fault for fault in faults if fault.path.startswith("nodes.")]
    if (unread and len(unread) == len(listed)) or (notes and len(notes) == len(machine.vnodes)):
        raise DocumentError("qstat and pbsnodes", faults)
    left |= unread
    for key, job, note in _unseen(machine, jobs, listed, moment):
        jobs[key] = job
        notes.append(note)
    licenses = _throttle(jobs, listed, machine) | _of_server(jobs, listed, (servers or {}).get("Server", {}), notes)
    reserved = _reserved(machine, (rstat or {}).get("resvs", {}), moment, zone, notes)
    of_queue = {one.name.partition(".")[0]: one for one in reserved}
    names = dict.fromkeys(job.queue for job in jobs.values() if job.queue is not None)
    queues = {name: None if name in of_queue else machine.nodes_of(name) for name in names}
    for key in [key for key, job in jobs.items() if job.running is None and queues.get(job.queue or "") == ()]:
        left[key] = Inexpressible(f"all nodes are for the jobs of other queues than {jobs.pop(key).queue}")
    left |= without_awaited(jobs, jobs)
    instance = Instance(
        name=name,
        epoch=datetime.fromtimestamp(0, UTC),
        now=moment,
        cluster=replace(machine.cluster(), licenses=Amounts(licenses)),
        queues=FrozenMap(
            {name: Queue(expected_wait=DEFAULT_EXPECTED_WAIT, nodes=nodes or None) for name, nodes in queues.items()}
        ),
        jobs=tuple(jobs.values()),
    )
    inside = {job.id: of_queue[job.queue] for job in instance.jobs if job.queue in of_queue}
    return Checker().snapshot(for_members_only(instance, reserved, inside, {}), left, notes)


def _read(
    key: str, attributes: Answer, machine: Machine, arrays: Mapping[str, Sequence[str]], now: int, zone: tzinfo | None
) -> Iterator[tuple[str, Job | Inexpressible]]:
    """Yield a job, or the tasks of an array, or why each of them cannot be planned; nothing of one that is over."""
    letter = attributes.get("job_state")
    if letter not in JOB_STATES:
        raise ValueError(f"Expected the state of a job that PBS has, got {letter!r}")
    state = JOB_STATES[letter]
    for one in () if state.is_over else _tasks(key, attributes):
        try:
            if state is JobState.HELD and not _waits(attributes):
                raise Inexpressible("it is held")
            if state is JobState.RUNNING:
                yield one, _running(one, attributes, machine, now, zone)
            else:
                yield one, _job(one, attributes, machine, arrays, now, zone)
        except Inexpressible as error:
            yield one, error


def _waits(attributes: Answer) -> bool:
    """Tell whether PBS holds a job for nothing but a dependency that is not met."""
    links = [part for part in str(attributes.get("depend") or "").split(",") if not part.startswith("before")]
    return attributes.get("Hold_Types") == "s" and any(links)


def _arrays(listed: Answer) -> dict[str, list[str]]:
    """Return the tasks of each array that are not over, as far as they are listed."""
    found: dict[str, list[str]] = {}
    for key, attributes in listed.items():
        if (whole := _array_of(key)) and isinstance(attributes, Mapping):
            with suppress(SyntaxFault):
                found.setdefault(whole, []).extend(_tasks(key, attributes))
    return found


def _array_of(key: str) -> str:
    """Return the id of the array that a job is, or is a task of; empty: of none."""
    match = _ARRAY.fullmatch(key)
    return f"{match[1]}[]{match[3]}" if match else ""


def _unseen(machine: Machine, jobs: Mapping[str, Job], listed: Answer, now: int) -> Iterator[tuple[str, Job, Fault]]:
    """Yield a job for what is assigned of each vnode and no listed job has, and what is said of it."""
    held, pieces = defaultdict[str, Counter[str]](Counter), Counter[str]()
    for job in jobs.values():
        for place in job.running.segments[0].allocation if job.running is not None else ():
            pieces[place.node] += 1
            held[place.node].update(place.resources)
    for vnode in machine.vnodes.values():
        rest = {name: amount - held[vnode.name][name] for name, amount in vnode.assigned.items()}
        # sizes are rounded, each by less than one
        slack = {name: 0 if name in ("cores", "gpus", "mics") else pieces[vnode.name] for name in rest}
        missing = Amounts({name: amount for name, amount in rest.items() if amount > slack[name]})
        if not missing:
            continue
        others = [key for key in vnode.jobs if key not in jobs]
        walltime = max((_walltime_of(key, listed) for key in others), default=_NO_LIMIT)
        key = f"unseen.{vnode.name}"
        segment = Segment(start=now, end=now + walltime, allocation=(Placement(node=vnode.name, resources=missing),))
        request = Request(chunks=(Chunk(count=1, resources=missing),))
        job = Job(
            id=key,
            submit=now,
            steps=(Step(walltime=walltime, request=request),),
            running=Running(start=now, segments=(segment,)),
        )
        words = ", ".join(f"{amount} {name}" for name, amount in missing.items())
        who = f" ({', '.join(others[:8])})" if others else ""
        message = (
            f"{words} are assigned to jobs that are not listed{who}: held for {walltime} s (qstat -t lists subjobs)"
        )
        yield key, job, Fault(f"node {printable(vnode.name)}", printable(message))


def _throttle(jobs: dict[str, Job], listed: Answer, machine: Machine) -> dict[str, int]:
    """Give the tasks of arrays with ``max_run_subjobs`` a licence each, and return how many of these there are."""
    found: dict[str, int] = {}
    unseen = [(f"unseen.{one.name}", key) for one in machine.vnodes.values() for key in one.jobs if key not in jobs]
    for holder, key in [*((key, key) for key in jobs), *unseen]:
        whole = _array_of(key)
        array = listed.get(whole)
        most = None
        if isinstance(array, Mapping):  # qsub -J 0-99%10
            most = array.get("max_run_subjobs", str(array.get("array_indices_submitted", "")).partition("%")[2])
        if holder in jobs and is_amount(most):
            name = f"tasks of array {whole} at a time"
            found[name] = amount(name, most)
            jobs[holder] = _with_licenses(jobs[holder], {name: 1})
    return found


def _of_server(jobs: dict[str, Job], listed: Answer, servers: Answer, notes: list[Fault]) -> dict[str, int]:
    """Give jobs what they ask for of no vnode as licences, and return how many of these the servers have.

    What jobs that are not listed hold is not there. Where no server says how many there are, that is noted.
    """
    has, used = Counter[str](), Counter[str]()
    for server in servers.values():
        for counts, key in ((has, "resources_available"), (used, "resources_assigned")):
            told = server.get(key) if isinstance(server, Mapping) else None
            amounts = told.items() if isinstance(told, Mapping) else ()
            counts.update({name: amount(name, value) for name, value in amounts if is_amount(value)})
    asked = {key: _job_wide(_attributes_of(key, listed) or {}) for key in jobs}
    names = dict.fromkeys(name for wanted in asked.values() for name in wanted)
    for key, wanted in asked.items():
        known = {name: most for name, most in wanted.items() if name in has}
        jobs[key] = _with_licenses(jobs[key], known)
        if jobs[key].running is not None:
            used.subtract(known)
    for name in sorted(names.keys() - has.keys()):
        notes.append(Fault(f"resource {printable(name)}", "not counted: qstat -Bf -F json tells how many there are"))
    return {name: max(0, has[name] - max(0, used[name])) for name in names if name in has}


def _job_wide(attributes: Answer) -> dict[str, int]:
    """Return the amounts of the site's own resources that a job asks for beside its chunks."""
    listed = attributes.get("Resource_List", {})
    in_chunks = {part.partition("=")[0] for part in re.split("[+:]", str(listed.get("select", "")))}
    return {
        name: amount(name, value, up=True)
        for name, value in listed.items()
        if name not in in_chunks and _OWN.fullmatch(name) is None and is_amount(value)
    }


def _with_licenses(job: Job, more: Mapping[str, int]) -> Job:
    return replace(job, licenses=Amounts(Counter(job.licenses) + Counter(more))) if more else job


def _attributes_of(key: str, listed: Answer) -> Any:
    """Return the attributes of a job, or of the array that it is a task of; None where neither is listed."""
    return listed.get(key) or listed.get(_array_of(key))


def _walltime_of(key: str, listed: Answer) -> int:
    """Return the walltime of a job, or of the array that it is a task of; a year where it is not known."""
    attributes = _attributes_of(key, listed)
    if attributes is not None:
        with suppress(Inexpressible, ValueError, AttributeError):
            return _walltime(attributes.get("Resource_List", {}))
    return _NO_LIMIT


def _reserved(
    machine: Machine, told: Answer, now: int, zone: tzinfo | None, notes: list[Fault]
) -> tuple[Reserved, ...]:
    """Return the reservations that vnodes or ``pbs_rstat`` tell of; one without known times holds its nodes."""
    nodes: dict[str, list[str]] = {}
    for vnode in machine.vnodes.values():
        for name in vnode.reservations:
            nodes.setdefault(name, []).append(vnode.name)
    found = []
    for name in dict.fromkeys((*nodes, *told)):
        start = end = None
        cores = dict[str, int]()
        try:
            cores, start, end = _extent(told.get(name, {}), machine, zone)
            reason = "its times are not known (pbs_rstat -F json tells them)"
        except (ValueError, AttributeError, TypeError) as error:
            reason = f"its record cannot be read ({printable(str(error))})"
        if start is None or end is None:
            notes.append(Fault(f"reservation {printable(name)}", f"{reason}: its nodes are for its jobs only"))
        elif end <= now:
            continue
        mine = tuple(cores or nodes.get(name, ()))
        if mine:
            found.append(Reserved(name=name, start=start, end=end, nodes=mine, cores=Amounts(cores) if cores else None))
    return tuple(found)


def _extent(attributes: Answer, machine: Machine, zone: tzinfo | None) -> tuple[dict[str, int], int | None, int | None]:
    """Return the cores of a reservation on each node, and its times as far as they are known."""
    cores: dict[str, int] = {}
    for piece in _pieces(attributes.get("resv_nodes")):
        node, *rest = piece.split(":")
        if node in machine.vnodes:
            cores[node] = cores.get(node, 0) + takes(dict(one.partition("=")[::2] for one in rest)).get("cores", 0)
    return cores, _time(attributes, "reserve_start", zone), _time(attributes, "reserve_end", zone)


def _tasks(key: str, attributes: Answer) -> tuple[str, ...]:
    """Return the id of a job, or those of the tasks of an array that have not begun."""
    match = _ARRAY.fullmatch(key)
    if match is None or match[2]:
        return (key,)
    indices = attributes.get("array_indices_remaining", attributes.get("array_indices_submitted", ""))
    remaining = str(indices).partition("%")[0].strip()
    found = parse_indices(remaining) if remaining not in ("", "-") else ()
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
        raise Inexpressible("it has no walltime")
    match = _WALLTIME.fullmatch(str(value))
    if match is None:
        raise ValueError(f"Expected a walltime such as 01:00:00, got {value!r}")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return max(1, (hours * 60 + minutes) * 60 + seconds)


def _job(
    key: str, attributes: Answer, machine: Machine, arrays: Mapping[str, Sequence[str]], now: int, zone: tzinfo | None
) -> Job:
    listed = attributes.get("Resource_List", {})
    request = request_of(listed, machine)
    begin = _time(attributes, "Execution_Time", zone)
    return Job(
        id=key,
        **_whose(attributes, now, zone),
        steps=(Step(walltime=_walltime(listed), request=request),),
        not_before=begin if begin is not None and begin > now else None,
        after=tuple(_after(attributes, arrays)),
    )


def _after(attributes: Answer, arrays: Mapping[str, Sequence[str]]) -> Iterator[Dependency]:
    for part in str(attributes.get("depend") or "").split(","):
        if not part:
            continue
        match = _DEPENDENCY.fullmatch(part)
        if match is None or match[1] not in ("after", "afterok", "afterany", "afternotok"):
            if part.startswith("before"):
                continue  # what others wait for: they say it themselves
            raise Inexpressible(f"it waits in a way that cannot be said ({part})")
        for awaited in match[2].split(":"):
            key = awaited.partition("@")[0]
            for one in arrays.get(key, ()) or (key,):
                yield Dependency(job=one, type=DependencyType(match[1]))


def _pieces(text: object) -> Iterator[str]:
    """Yield the pieces of ``(n1:ncpus=4:mem=1gb+n2:ncpus=2)+(n1:ncpus=1)``."""
    for group in _VNODE.findall(str(text or "")):
        yield from group.split("+")


def _running(key: str, attributes: Answer, machine: Machine, now: int, zone: tzinfo | None) -> Job:
    """Return a running job: what ``exec_vnode`` says is a fact."""
    held = defaultdict[str, Counter[str]](Counter)
    for piece in _pieces(attributes.get("exec_vnode")):
        node, *amounts = piece.split(":")
        if node not in machine.vnodes:
            raise Inexpressible(f"it runs on a node that is not known ({node})")
        held[node].update(takes(dict(one.partition("=")[::2] for one in amounts)))
    if not held:
        raise Inexpressible("it runs, and PBS does not say where")
    listed = attributes.get("Resource_List", {})
    sharing = next(
        (word for word in str(listed.get("place", "")).split(":") if word in ("excl", "exclhost", "shared")), ""
    )
    start = min(now, _time(attributes, "stime", zone) or now)
    walltime = _NO_LIMIT if listed.get("walltime") is None else _walltime(listed)
    allocation = tuple(
        Placement(node=node, resources=Amounts(amounts or {"cores": 1}), chunk=index, count=1)
        for index, (node, amounts) in enumerate(held.items())
    )
    chunks = tuple(Chunk(count=1, resources=one.resources) for one in allocation)
    place = Place(exclusive=any(machine.vnodes[node].is_alone(sharing) for node in held))
    segment = Segment(start=start, end=max(start + walltime, now + 1), allocation=allocation)
    return Job(
        id=key,
        **_whose(attributes, now, zone),
        steps=(Step(walltime=walltime, request=Request(chunks=chunks, place=place)),),
        running=Running(start=start, segments=(segment,)),
    )


def _whose(attributes: Answer, now: int, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "user": printable(str(attributes.get("Job_Owner", "")).partition("@")[0]) or None,
        "group": printable(str(attributes.get("egroup", ""))) or None,
        "queue": attributes.get("queue"),
        "submit": min(now, _time(attributes, "qtime", zone) or _time(attributes, "ctime", zone) or now),
    }
