"""``oarstat -J -f`` and ``oarnodes -J`` as a `Snapshot`. Fields and states are those of OAR 2.5.9's own answers."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
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
    Placement,
    Preemptible,
    Preemption,
    Queue,
    Request,
    Running,
    Segment,
    Step,
    StopKind,
)
from cpsched.errors import DocumentError, Fault
from cpsched.site.bridge.answers import Answer, read_answers
from cpsched.site.bridge.leaving import Inexpressible, without_awaited
from cpsched.site.bridge.oar.machine import NODE, Machine, is_usable
from cpsched.site.bridge.oar.requests import choices_of
from cpsched.site.bridge.protocol import JobState, Snapshot, by_word
from cpsched.site.bridge.sound import Checker
from cpsched.text import printable

JOB_STATES = by_word(
    {
        JobState.WAITING: "Waiting toAckReservation",
        JobState.HELD: "Hold Suspended",
        JobState.RUNNING: "toLaunch Launching Running Resuming Finishing toError",
        JobState.COMPLETED: "Terminated",
        JobState.FAILED: "Error",
    }
)
#: The type and queue of jobs that OAR stops for others; types of jobs that share cores, inside of others or in turn.
_BEST_EFFORT, _SHARES = "besteffort", ("container", "cosystem", "inner", "noop", "placeholder", "timesharing")


def read_directory(path: Path) -> tuple[Answer, Answer]:
    """Return the answers of ``oarstat`` and ``oarnodes``: what each file is, its contents tell.

    Raises `DocumentError` if there is none of ``oarnodes``, or they are no JSON objects.
    """

    def kinds(answer: Answer) -> list[str]:
        first = next(iter(answer.values()), None)
        return [key for key in ("Job_Id", NODE) if isinstance(first, Mapping) and key in first]

    found = read_answers(path, kinds, {NODE: "oarnodes -J"})
    return found.get("Job_Id", {}), found[NODE]


def make_snapshot(oarstat: Answer, oarnodes: Answer, *, now: int | None = None, name: str = "oar") -> Snapshot:
    """Make a snapshot of what OAR said.

    A record with a fault costs that record: the job is left out, the resource counts as dead. A resource of a job that
    is not listed counts as absent. Raises `DocumentError` with all faults if nothing can be read.

    `now`: unix seconds; None: the last submission or start in the answers.
    """
    faults: list[Fault] = []
    left = dict[str, Inexpressible]()
    states = dict(_states(oarstat, left))
    last = [
        oarstat[key]["startTime" if state is JobState.RUNNING else "submissionTime"] for key, state in states.items()
    ]
    moment = max(last, default=0) if now is None else now
    owners = {
        number: key
        for key, state in states.items()
        for number in oarstat[key].get("assigned_resources", ())
        if state is JobState.RUNNING
    }
    machine = _machine(oarnodes, owners, moment, faults)
    jobs = dict[str, Job]()
    for key, state in states.items():
        attributes = oarstat[key]
        if state.is_over:
            continue
        try:
            if state is JobState.HELD:
                raise Inexpressible(f"it is held ({attributes['state']})")
            if state is JobState.RUNNING:
                numbers = dict.fromkeys(attributes.get("assigned_resources", ()))
                mine = [number for number in numbers if owners[number] == key and number in machine.rows]
                jobs[key] = _running(key, attributes, mine, machine, moment)
            else:
                jobs[key], reasons = _job(key, attributes, states, machine, moment)
                faults += [Fault(f"job {key}", printable(f"an alternative is left out: {one}")) for one in reasons]
        except Inexpressible as error:
            left[key] = error
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            left[key] = Inexpressible(f"its record cannot be read: {error}")
    if (oarstat and not states) or not machine.rows:
        faults += [Fault(f"jobs.{printable(key)}", printable(str(reason))) for key, reason in left.items()]
        raise DocumentError("oarstat and oarnodes", faults or [Fault("", "Expected resources, got none")])
    left |= without_awaited(jobs, jobs)
    queues = dict.fromkeys(job.queue for job in jobs.values() if job.queue is not None)
    others = {queue: (_BEST_EFFORT,) for queue in queues if queue != _BEST_EFFORT and _BEST_EFFORT in queues}
    instance = Instance(
        name=name,
        epoch=datetime.fromtimestamp(0, UTC),
        now=moment,
        cluster=machine.cluster(),
        queues=FrozenMap({queue: Queue(expected_wait=DEFAULT_EXPECTED_WAIT) for queue in queues}),
        preemption=Preemption(queues=FrozenMap(others)) if others else None,
        jobs=tuple(jobs.values()),
    )
    return Checker().snapshot(instance, left, faults)


def _states(oarstat: Answer, left: dict[str, Inexpressible]) -> Iterator[tuple[str, JobState]]:
    """Yield the state of each job whose record has one, dates and resources; say of the others why they are left."""
    for key, attributes in oarstat.items():
        try:
            numbers = [attributes[name] for name in ("submissionTime", "startTime")]
            numbers += attributes.get("assigned_resources", ())
            if any(type(one) is not int for one in numbers):
                raise ValueError(f"Expected dates and resources as numbers, got {numbers}")
            yield key, JOB_STATES[attributes["state"]]
        except (AttributeError, TypeError, KeyError, ValueError) as error:
            left[key] = Inexpressible(f"its record cannot be read: {type(error).__name__} {error}")


def _machine(oarnodes: Answer, owners: Mapping[int, str], now: int, faults: list[Fault]) -> Machine:
    rows, usable = dict[int, Answer](), set[int]()
    for key, row in oarnodes.items():
        try:
            if row["type"] != "default":
                continue
            number, _ = int(row["resource_id"]), row[NODE]
            rows[number] = row
            if row.get("jobs") and number not in owners:
                raise ValueError(
                    f"Expected the jobs {row['jobs']} in the answer of oarstat, got none: it counts as absent"
                )
            if is_usable(row, now):
                usable.add(number)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            faults.append(Fault(f"resources.{printable(key)}", printable(str(error))))
    return Machine(rows, usable, owners.keys())


def _job(
    key: str, attributes: Answer, states: Mapping[str, JobState], machine: Machine, now: int
) -> tuple[Job, list[str]]:
    """Return a waiting job, and why some of its choices are left out."""
    shares = [one for one in attributes.get("types", ()) if str(one).partition("=")[0] in _SHARES]
    if shares:
        raise Inexpressible(f"it shares its cores ({shares[0]})")
    choices, reasons = choices_of(attributes, machine)
    links = [str(awaited) for awaited in attributes.get("dependencies", ())]
    booked = attributes.get("reservation", "None") != "None"
    job = Job(
        id=key,
        **_whose(attributes, now),
        steps=(choices[0],),
        alternatives=tuple(choices[1:]),
        start_at=int(attributes["startTime"]) if booked else None,
        after=tuple(
            Dependency(job=awaited, type=DependencyType.AFTERANY)
            for awaited in links
            if awaited in states and not states[awaited].is_over
        ),
    )
    return job, reasons


def _running(key: str, attributes: Answer, mine: list[int], machine: Machine, now: int) -> Job:
    """Return a running job on the resources that it has."""
    if not mine:
        raise Inexpressible("it has no cores that are not those of another job")
    cores = Counter(str(machine.rows[number][NODE]) for number in mine)
    start, walltime = min(now, int(attributes["startTime"])), max(1, int(attributes["walltime"]))
    allocation = tuple(
        Placement(node=node, resources=Amounts({"cores": count}), chunk=index, count=1)
        for index, (node, count) in enumerate(cores.items())
    )
    request = Request(chunks=tuple(Chunk(count=1, resources=one.resources) for one in allocation))
    is_best_effort = _BEST_EFFORT in attributes.get("types", ())
    return Job(
        id=key,
        **_whose(attributes, now),
        steps=(Step(walltime=walltime, request=request),),
        running=Running(
            start=start,
            segments=(Segment(start=start, end=max(start + walltime, now + 1), allocation=allocation),),
        ),
        preemptible=Preemptible(by=StopKind.REQUEUE) if is_best_effort else None,
    )


def _whose(attributes: Answer, now: int) -> dict[str, Any]:
    return {
        "user": printable(str(attributes.get("owner", ""))) or None,
        "project": printable(str(attributes.get("project", ""))) or None,
        "queue": attributes.get("queue"),
        "submit": min(now, int(attributes["submissionTime"])),
    }
