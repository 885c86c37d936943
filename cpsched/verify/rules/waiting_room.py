"""What the plan says of the jobs that it does not plan must be true.

A claim is refused only where it is certainly false: mapping many kinds of chunks is hard, so the answer to "does it
fit" may also be "cannot tell". A mapping that is found proves that it fits; a kind that does not fit alone proves that
it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cpsched.verify.case import Case
from cpsched.verify.model import Chunk, Job, NodeClass, Request, Waiting
from cpsched.verify.rules.limits import is_ruled_out
from cpsched.verify.violation import Violation

__all__ = ["check_waiting_room"]


def check_waiting_room(case: Case) -> Iterator[Violation]:
    """Check that what the waiting room says of a job is true, as far as that can be checked."""
    claims = {
        "walltime": deny_walltime,
        "unsatisfiable": deny_unsatisfiable,
        "unavailable": deny_unavailable,
        "too_late": deny_too_late,
        "not_mapped": deny_not_mapped,
        "dependency": deny_dependency,
        "not_started": deny_not_started,
    }
    room = Room(case)
    for entry in case.plan.waiting:
        if not entry.job.running:
            denial = claims[entry.reason](room, entry)
            if denial is not None:
                yield Violation("waiting_room", entry.id, f"it is said to be {entry.reason}, but {denial}")


class Room:
    """Answers about an empty cluster, remembered for like jobs; mutable only in that."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._answers: dict[tuple[int, bool], bool | None] = {}
        groups: dict[int, tuple[NodeClass, int]] = {}
        for node_class in case.instance.nodes.values():
            _, size = groups.get(id(node_class), (node_class, 0))
            groups[id(node_class)] = (node_class, size + 1)
        self._groups = tuple(groups.values())

    def fits(self, job: Job, *, only_up: bool) -> bool | None:
        """Tell whether an empty cluster could run the job: True and False are proofs, None is no answer."""
        key = (id(job), only_up)
        if key not in self._answers:
            self._answers[key] = self._decide(job, only_up)
        return self._answers[key]

    def _decide(self, job: Job, only_up: bool) -> bool | None:
        licenses = self.case.instance.licenses
        if any(amount > licenses.get(name, 0) for name, amount in job.licenses.items()):
            return False
        groups = [group for group in self._groups if not only_up or group[0].state == "up"]
        requests = [step.request for step in job.steps]
        for request in requests:
            for chunk in request.chunks:
                if not _has_mapping(replace(request, chunks=(chunk,)), job.walltime, groups):
                    return False
        if len(requests) == 1 and _has_mapping(requests[0], job.walltime, groups):
            return True
        return None

    def last_resort(self, job: Job) -> int | None:
        """Return a start at which the job could certainly run, after everything else has ended, or None."""
        case = self.case
        alone = job.reservation is None and not case.instance.is_beyond_queue(job)
        if not alone or is_ruled_out(case.instance, job) or self.fits(job, only_up=True) is not True:
            return None
        start = max(case.horizon, job.submit, *([] if job.not_before is None else [job.not_before]))
        for dependency in job.after:
            for name in case.instance.members[dependency.job]:
                if name not in case.by_id:
                    return None
                start = max(start, case.by_id[name].end + dependency.delay)
        if job.start_at is not None:
            if job.start_at < start:
                return None
            start = job.start_at
        latest = case.instance.must_start_by(job)
        in_time = (latest is None or start <= latest) and (job.deadline is None or start + job.walltime <= job.deadline)
        return start if in_time else None


def _has_mapping(request: Request, walltime: int, groups: Sequence[tuple[NodeClass, int]]) -> bool:
    """Try to lay all chunks on the empty nodes of `groups`, one node after the other; exact for one kind of chunk."""
    hosts = {
        id(chunk): sum(
            size for node, size in groups if node.has_properties(chunk) and node.admits_chunk(chunk, walltime)
        )
        for chunk in request.chunks
    }
    rarest_first = sorted(request.chunks, key=lambda chunk: hosts[id(chunk)])
    left = [chunk.count for chunk in rarest_first]
    for node, size in groups:
        for _ in range(size):
            if request.arrangement == "pack":
                left = [chunk.count for chunk in rarest_first]
            laid = _fill(node, request, rarest_first, left, walltime)
            left = [count - here for count, here in zip(left, laid, strict=True)]
            if not any(left):
                return True
            if request.arrangement == "pack" or not any(laid):
                break
    return False


def _fill(
    node: NodeClass, request: Request, chunks: Sequence[Chunk], wanted: Sequence[int], walltime: int
) -> list[int]:
    """Return how many chunks of each kind an empty node takes, kind after kind."""
    free = dict(node.resources)
    open_to_others = [max(0, node.resources.get(entry.resource, 0) - entry.items) for entry in node.keep_free]
    laid: list[int] = []
    for chunk, count in zip(chunks, wanted, strict=True):
        foreign = [index for index, entry in enumerate(node.keep_free) if entry.beneficiary not in chunk.resources]
        barred = not node.has_properties(chunk) or not node.admits_chunk(chunk, walltime)
        if barred or (foreign and request.exclusive):
            laid.append(0)
            continue
        here = min([count, *(free.get(name, 0) // amount for name, amount in chunk.resources.items())])
        for index in foreign:
            amount = chunk.resources.get(node.keep_free[index].resource, 0)
            here = min(here, open_to_others[index] // amount) if amount else here
        if request.arrangement == "scatter":
            here = min(here, 1 - min(1, sum(laid)))
        for name, amount in chunk.resources.items():
            free[name] = free.get(name, 0) - here * amount
        for index in foreign:
            open_to_others[index] -= here * chunk.resources.get(node.keep_free[index].resource, 0)
        laid.append(here)
    return laid


def deny_walltime(room: Room, entry: Waiting) -> str | None:
    """``walltime``: it is beyond its queue's ``max_walltime``."""
    if room.case.instance.is_beyond_queue(entry.job):
        return None
    return f"its walltime of {entry.job.walltime} s is within what its queue accepts"


def deny_unsatisfiable(room: Room, entry: Waiting) -> str | None:
    """``unsatisfiable``: even an empty, healthy cluster could not run it."""
    if entry.job.reservation is not None or is_ruled_out(room.case.instance, entry.job):
        return None
    return "an empty, healthy cluster could run it" if room.fits(entry.job, only_up=False) else None


def deny_unavailable(room: Room, entry: Waiting) -> str | None:
    """``unavailable``: it would fit if all nodes were up, but not on those that are."""
    if entry.job.reservation is not None or is_ruled_out(room.case.instance, entry.job):
        return None
    if room.fits(entry.job, only_up=True):
        return "the nodes that are up could run it"
    if room.fits(entry.job, only_up=False) is False:
        return "it would not fit if all nodes were up either"
    return None


def deny_too_late(room: Room, entry: Waiting) -> str | None:
    """``too_late``: its ``start_at``, ``deadline``, hard ``max_wait`` or the end of its reservation leaves no start."""
    job = entry.job
    is_bounded = job.start_at is not None or job.deadline is not None or job.reservation is not None
    if not is_bounded and room.case.instance.must_start_by(job) is None:
        return "it has neither start_at nor deadline nor a hard max_wait to keep"
    return _deny_by_last_resort(room, entry)


def deny_not_mapped(room: Room, entry: Waiting) -> str | None:
    """``not_mapped``: no mapping was found, so there must be none even after everything else has ended."""
    return _deny_by_last_resort(room, entry)


def deny_dependency(room: Room, entry: Waiting) -> str | None:
    """``dependency``: one of those that it waits for has no start in this plan."""
    case = room.case
    if not entry.job.after:
        return "it waits for no other job"
    awaited = (name for dependency in entry.job.after for name in case.instance.members[dependency.job])
    return "all that it waits for have a start" if all(name in case.by_id for name in awaited) else None


def deny_not_started(room: Room, entry: Waiting) -> str | None:
    """``not_started``: nobody had started it when a record ends."""
    return None if room.case.plan.is_record else "this plan is no record"


def _deny_by_last_resort(room: Room, entry: Waiting) -> str | None:
    """Point at a start when nothing else runs any more."""
    start = room.last_resort(entry.job)
    return None if start is None else f"it could start at {start}, when everything else has ended"
