"""What a job of Slurm waits for, as dependencies of cpsched."""

import re
from collections.abc import Mapping, Sequence

from cpsched.domain import Dependency, DependencyType
from cpsched.site.bridge.leaving import Inexpressible
from cpsched.site.bridge.slurm.records import JobRecord

#: ``afterok:17_3+5(unfulfilled)``: a type, a job with a task or all (``_*``), minutes, and whether it is met.
_ONE = re.compile(r"([a-z]+):(\d+)(?:_(\*|\d+|\[[^\]]*\]))?(?:\+(\d+))?(?:\(([a-z]+)\))?")
_SINGLETON = re.compile(r"singleton(?:\(([a-z]+)\))?")
_TYPES = frozenset(map(str, DependencyType))
_MINUTE = 60


def dependencies_of(
    job: JobRecord, key: str, pending: Mapping[int, Sequence[str]], same_name: Sequence[str]
) -> tuple[Dependency, ...]:
    """Return the dependencies of a job.

    Raises `Inexpressible` if it waits for one of several, for something that is no job, or can never start.

    `key`: the id of the job, or of the task of an array.
    `pending`: by a job's number, or its array's: the ids of all of it that waits or runs.
    `same_name`: the ids of the jobs of its user and its name that were submitted before it and wait or run.
    """
    text = job.dependency
    if not text:
        return ()
    if "?" in text:
        raise Inexpressible(f"it waits for one of several jobs ({text})")
    found: dict[Dependency, None] = {}
    for part in text.split(","):
        if (single := _SINGLETON.fullmatch(part)) is not None:
            if single[1] != "fulfilled":
                found |= dict.fromkeys(Dependency(job=other, type=DependencyType.AFTERANY) for other in same_name)
            continue
        match = _ONE.fullmatch(part)
        if match is None:
            raise Inexpressible(f"its dependency cannot be read ({part})")
        kind, number, task, minutes, met = match.groups()
        if met == "fulfilled":
            continue
        if met == "failed":
            raise Inexpressible(f"it waits for what never comes ({part})", is_for_manager=False)
        awaited = pending.get(int(number), ())
        if kind == "aftercorr":  # each task for its counterpart; one that is over has ended well
            kind, counterpart = "afterok", key.rpartition("_")
            mine = [other for other in awaited if counterpart[1] and other == f"{number}_{counterpart[2]}"]
            if awaited and counterpart[1] and not mine:
                continue
            awaited = mine or awaited
        if kind not in _TYPES:
            raise Inexpressible(f"it waits in a way that cannot be said ({part})")
        if task is not None and task != "*":
            awaited = [other for other in awaited if other == f"{number}_{task}"]
        if not awaited:
            raise Inexpressible(f"it waits for job {number}, which neither waits nor runs ({part})")
        delay = int(minutes or 0) * _MINUTE
        found |= dict.fromkeys(Dependency(job=other, type=DependencyType(kind), delay=delay) for other in awaited)
    return tuple(found)
