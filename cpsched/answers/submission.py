"""When would a job start that is submitted now? Beside a plan, without moving anybody."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from cpsched.answers.inquiry import Inquiry
from cpsched.answers.world import PlanView
from cpsched.domain import Instance, Job, PlannedJob
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import instance_to_document, parse_part
from cpsched.problem import in_segments

#: The id of a submission that names none.
SUBMITTED = "submitted"

#: What a submission in the chunk syntax may say besides its chunks, place and licences.
_TEXTS = ("user", "group", "queue", "project")
_WALLTIME = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m(?:in)?)?(?:([0-9]{1,11})s?)?")
_CLOCK = re.compile(r"(?:([0-9]{1,9})[-:])?([0-9]{1,9}):([0-9]{1,2}):([0-9]{1,2})")
_SECONDS = (86400, 3600, 60, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """When and where a job would start that is submitted now."""

    job: Job
    #: None: it would go to the waiting room, for the reason in `detail`.
    planned: PlannedJob | None
    detail: str = ""

    @classmethod
    def of(cls, world: PlanView, job: Job) -> "Submission":
        """Look for the first start of a job beside all that is planned."""
        world = world.hosting(job)
        inquiry = Inquiry(world, job)
        now, first = world.instance.now, inquiry.first_allowed
        if inquiry.question is None or first is None:
            return cls(job=job, planned=None, detail=world.refusal(job) or "nothing leaves it a start")
        found = inquiry.place(inquiry.question, first)
        if found is None:
            rule = inquiry.question.refusing
            words = "no start leaves it enough time before its latest end"
            return cls(job=job, planned=None, detail=words if rule is None else f"{rule} ({rule.path})")
        segments = found.segments(world.occupation.columns, now)
        planned = in_segments(job.id, segments, found.mode if job.alternatives else 0)
        return cls(job=job, planned=world.stated(job, planned))


def parse_walltime(text: str) -> int | None:
    """Return a duration in seconds, ``7200``, ``2h``, ``1d12h``, ``90m``, ``1:30:00``, ``1-12:00:00``, or None."""
    match = _CLOCK.fullmatch(text) or _WALLTIME.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    return sum(int(part or 0) * seconds for part, seconds in zip(match.groups(), _SECONDS, strict=True))


def parse_submission(text: str, instance: Instance, *, source: str = "--submit") -> Job:
    """Return the job that a text asks for, as submitted now.

    Raises `DocumentError` with everything that is wrong with it. Raises `SyntaxFault` if the text has no walltime, or
    one that is none.

    Parameters
    ----------
    text
        A request in the chunk syntax with a walltime, ``8:ncpus=2,walltime=2h``, and where wanted ``user``, ``group``,
        ``queue``, ``project``, ``place`` and licences; or a JSON object as in the ``jobs`` of an instance, whose `id`
        and `submit` may be left out.
    instance
        Gives the cluster and the queues; the dependencies of the job are on its jobs.
    """
    entry = _json_entry(text, source) if text.lstrip().startswith("{") else _text_entry(text)
    document = instance_to_document(replace(instance, jobs=()))
    document["jobs"] = [{"id": SUBMITTED, "submit": instance.now, **entry}, *_awaited(entry, instance)]
    return parse_part(document, "jobs[0]", source=source).jobs[0]


def under_free_id(job: Job, taken: Collection[str]) -> Job:
    """Return a new job under an id that no other job has: its own, or that with a number behind it."""
    name, number = job.id, 2
    while name in taken:
        name, number = f"{job.id}-{number}", number + 1
    return job if name == job.id else replace(job, id=name)


def _json_entry(text: str, source: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [Fault("", f"Expected a JSON object, got: {error}")]) from None
    if not isinstance(entry, dict):
        raise DocumentError(source, [Fault("", f"Expected a JSON object, got {type(entry).__name__}")])
    return entry


def _text_entry(text: str) -> dict[str, Any]:
    """Return the entry of a job that a text in the chunk syntax describes; the rest of it is its request."""
    entry: dict[str, Any] = {}
    request: list[str] = []
    at = 0
    for part in text.split(","):
        name, _, value = part.partition("=")
        span = (at, at + len(part))
        at += len(part) + 1
        if not request or name not in ("walltime", *_TEXTS):
            request.append(part)
            continue
        if name in entry:
            raise SyntaxFault(text, span, f"Expected {name} once, got it twice")
        entry[name] = parse_walltime(value) if name == "walltime" else value
        if entry[name] is None:
            raise SyntaxFault(text, span, "Expected a walltime such as 7200, 2h, 1d12h or 1:30:00")
    if "walltime" not in entry:
        raise SyntaxFault(text, (len(text), len(text)), "Expected a walltime, as in 8:ncpus=2,walltime=2h; got none")
    return entry | {"request": ",".join(request)}


def _awaited(entry: dict[str, Any], instance: Instance) -> list[dict[str, Any]]:
    """Return stand-ins for the jobs of the instance that a new job waits for, so that its entry can be read alone."""
    after = entry.get("after")
    if not isinstance(after, list):
        return []
    wanted = dict.fromkeys(one.get("job") for one in after if isinstance(one, dict) and isinstance(one.get("job"), str))
    resource = next((name for one in instance.cluster.classes for name in one.resources), None)
    known = instance.members() if wanted and resource is not None else {}
    return [
        {"id": name, "submit": instance.now, "walltime": 1, "request": [{"count": 1, "resources": {resource: 1}}]}
        for name in wanted
        if name in known
    ]
