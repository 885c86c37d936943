"""The jobs of the first document: from raw JSON to the judge's `Job`."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from math import ceil
from typing import TypeVar

from cpsched.errors import Fault, SyntaxFault
from cpsched.verify.anomalies import oddities_of
from cpsched.verify.documents import MAX_AMOUNT, MAX_DURATION, MAX_NAME, MAX_SIZE, Cursor
from cpsched.verify.model import (
    Chunk,
    Dependency,
    Job,
    Malleable,
    NodeClass,
    Placement,
    Preemptible,
    PromisedStart,
    Request,
    Reservation,
    Resizable,
    Segment,
    Step,
)
from cpsched.verify.shares import rate_of
from cpsched.verify.speedups import read_sizes
from cpsched.verify.syntax import expand_indices, parse_place, parse_request

T = TypeVar("T")

JOB_KEYS = (
    *("user", "group", "queue", "project", "walltime", "request", "place", "licenses", "priority", "weight"),
    *("not_before", "start_at", "deadline", "after", "array", "steps", "expand_limit", "malleable", "running"),
    *("reservation", "told", "expected", "runtime", "alternatives", "moldable", "prefer", "resizable", "preemptible"),
)
SHARE = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")
#: The elements of all arrays together: an instance that has more is refused before it fills the memory.
MAX_ELEMENTS = 10**6
DEPENDENCY_TYPES = ("after", "afterok", "afterany", "afternotok")


def parsed(cursor: Cursor, parse: Callable[[str], T]) -> T:
    """Parse a short text; its syntax faults become faults of the document."""
    try:
        return parse(cursor.text())
    except SyntaxFault as fault:
        cursor.refuse(fault.message)


def read_request(request: Cursor, place: Cursor | None, countable: Collection[str]) -> tuple[Request, dict[str, int]]:
    """Read a request in either form, and the licences that its text asks for."""
    said: str | None = None
    licenses: dict[str, int] = {}
    if isinstance(request.value, str):
        chunks, said, licenses = parsed(request, lambda text: parse_request(text, countable))
    else:
        chunks = tuple(_read_chunk(item) for item in request.items())
        if not chunks:
            request.refuse("expected at least one chunk")
    if said is not None and place is not None:
        place.refuse("expected the place once, got it here and in the request")
    if said is not None:
        place = Cursor(said, request.path, request.source)
    asked = ("free", False) if place is None else parsed(place, parse_place)
    return Request(chunks, *asked), licenses


def join_licenses(asked: Mapping[str, int], cursor: Cursor | None) -> dict[str, int]:
    """Join the licences of a request's text with those of the key; none may be in both."""
    if cursor is None:
        return dict(asked)
    for name, _ in cursor.entries():
        if name in asked:
            cursor.refuse(f"expected the licence {name!r} once, got it here and in the request")
    return {**asked, **cursor.amounts()}


def _read_chunk(cursor: Cursor) -> Chunk:
    """Read one chunk of the parsed form; a resource that no node has is no fault, but can never be had."""
    members = cursor.members(["count", "resources"], ["where"])
    resources = members["resources"].amounts()
    if not resources:
        members["resources"].refuse("expected at least one unit of a countable resource")
    count = members["count"].integer(1, MAX_SIZE)
    where = {name: value.text() for name, value in members["where"].entries()} if "where" in members else {}
    return Chunk(count, resources, where)


class JobReader:
    """Reads all entries of ``jobs``; mutable only while it collects them.

    `countable`: the names of the countable resources. `nodes`, `queues`: the names that are declared. `reservations`:
    the declared reservations; no job may use a downtime. `now`: the instance's own time (s): running jobs end after it.
    `levels`: those of the topology.
    """

    def __init__(
        self,
        countable: Collection[str],
        nodes: Mapping[str, NodeClass],
        queues: Collection[str],
        reservations: Mapping[str, Reservation],
        now: int,
        levels: Collection[str] = (),
    ) -> None:
        self._countable, self._levels = countable, levels
        self._nodes = nodes
        self._queues = queues
        self._reservations = reservations
        self._now = now
        self._num_elements = 0
        #: What is accepted though it is odd.
        self.warnings: list[Fault] = []
        self.running: list[tuple[str, Mapping[str, object], Job]] = []
        self.jobs: dict[str, Job] = {}
        self.members: dict[str, tuple[str, ...]] = {}

    def read_all(self, entries: Iterable[Cursor]) -> None:
        """Read every entry, then check that dependencies name jobs that exist, and not each other in a circle."""
        awaited: list[tuple[str, str, Cursor]] = []
        for entry in entries:
            members = entry.members(["id", "submit"], JOB_KEYS)
            job = self._read_job(members)
            if job.running:
                keys = members["running"].mapping()
                self.warnings.extend(oddities_of(entry.path, keys, job, self._nodes, self._now))
                self.running.append((entry.path, keys, job))
            awaited.extend((job.entry, dependency.job, members["after"]) for dependency in job.after)
            ids: tuple[str, ...] = (job.entry,)
            if "array" in members:
                indices = parsed(members["array"].members(["indices"])["indices"], expand_indices)
                self._num_elements += len(indices)
                if self._num_elements > MAX_ELEMENTS:
                    members["array"].refuse(f"expected at most {MAX_ELEMENTS} array elements in all")
                ids = tuple(f"{job.entry}[{index}]" for index in indices)
                if len(ids[-1]) > MAX_NAME:
                    members["id"].refuse(f"expected an id whose elements have at most {MAX_NAME} characters")
            for element in {job.entry, *ids}:
                if element in self.members:
                    members["id"].refuse(f"expected an id of its own, got {element!r} again")
                self.members[element] = (element,)
            self.members[job.entry] = ids
            self.jobs.update(dict.fromkeys(ids, job))
        entry_of = {name: self.jobs[ids[0]].entry for name, ids in self.members.items()}
        waits_for: dict[str, set[str]] = {}
        places: dict[str, Cursor] = {}
        for entry_id, name, cursor in awaited:
            if name not in self.members:
                cursor.refuse(f"expected the id of a job, got {name!r}")
            waits_for.setdefault(entry_id, set()).add(entry_of[name])
            places[entry_id] = cursor
        try:
            order = [*TopologicalSorter(waits_for).static_order()]
        except CycleError as error:
            circle = error.args[1]
            places[circle[0]].refuse(f"expected no circle, got one of {len(circle) - 1} jobs with {circle[0]!r}")
        if any(one.max_delay is not None for job in self.jobs.values() for one in job.after):
            self._check_longest_delays(order, places)

    def _check_longest_delays(self, order: Sequence[str], places: Mapping[str, Cursor]) -> None:
        """Check that each ``max_delay`` is one after a single job, and that some starts keep all of them together.

        Starts that only grow as far as one distance demands are found in as many rounds as there are jobs, or never.
        Elements of an array have the same distances: one start stands for all. `order`: those awaited come first.
        """
        entries = {job.entry: job for job in self.jobs.values()}
        distances: list[tuple[str, str, int]] = []
        for name in order:
            for one in entries[name].after:
                before = self.jobs[self.members[one.job][0]]
                if one.max_delay is not None and before.is_array and one.job == before.entry:
                    places[name].refuse(f"expected max_delay after a single job, got {one.job!r}, an array")
                if before.running:
                    continue
                lasts = [before.walltime, *(step.walltime for step in before.alternatives)]
                shortest, longest = (0, 0) if one.type == "after" else (min(lasts), max(lasts))
                distances.append((before.entry, name, one.delay + shortest))
                if one.max_delay is not None and not before.malleable and len(before.steps) == 1:
                    distances.append((name, before.entry, -one.max_delay - longest))
        starts, late = dict.fromkeys(order, 0), True
        for _ in order:
            late = False
            for before_name, after_name, seconds in distances:
                if starts[after_name] < starts[before_name] + seconds:
                    starts[after_name], late = starts[before_name] + seconds, True
            if not late:
                return
        name = next(name for name in order if any(one.max_delay is not None for one in entries[name].after))
        places[name].refuse("expected max_delay that starts can keep together")

    def _read_job(self, members: Mapping[str, Cursor]) -> Job:
        steps, licenses = self._read_steps(members)
        licenses = join_licenses(licenses, members.get("licenses"))
        if "malleable" in members and "steps" in members:
            members["malleable"].refuse("expected a job that is malleable or evolving (steps), got both")
        if "expand_limit" in members and "steps" not in members:
            members["expand_limit"].refuse("expected expand_limit with steps only")
        malleable = _read_malleable(members["malleable"]) if "malleable" in members else None
        alternatives: tuple[Step, ...] = ()
        others: tuple[Mapping[str, int], ...] = ()
        if "alternatives" in members:
            alternatives, others = self._read_alternatives(members["alternatives"], members, steps[0], licenses)
        if "moldable" in members:
            alternatives = _read_moldable(members["moldable"], members, steps[0])
        if "prefer" in members:
            steps, alternatives = _read_prefer(members["prefer"], members, steps[0])
        resizable = None
        if "resizable" in members:
            resizable = _read_resizable(members["resizable"], members, (*steps, *alternatives))
        for level in {step.request.within for step in (*steps, *alternatives)} - {None}:
            if level not in self._levels or {"steps", "malleable"} & members.keys():
                members["id"].refuse(f"expected a declared level, of a job that does not change, got within={level}")
        for step in (*steps, *alternatives):
            _check_groups(members["id"], step.request)
        job = Job(
            entry=members["id"].name(),
            submit=members["submit"].time(),
            steps=steps,
            is_evolving="steps" in members,
            user=members["user"].name() if "user" in members else None,
            group=members["group"].name() if "group" in members else None,
            queue=self._declared(members.get("queue"), self._queues, "queue"),
            licenses=licenses,
            not_before=members["not_before"].time() if "not_before" in members else None,
            start_at=members["start_at"].time() if "start_at" in members else None,
            deadline=members["deadline"].time() if "deadline" in members else None,
            after=tuple(_read_dependency(item) for item in members["after"].items()) if "after" in members else (),
            told=_read_promised_start(members["told"]) if "told" in members else None,
            is_array="array" in members,
            expand_limit=_read_expand_limit(members.get("expand_limit")),
            malleable=malleable,
            alternatives=alternatives,
            alternative_licenses=others,
            resizable=resizable,
            running=self._read_running(members["running"], steps, malleable) if "running" in members else (),
            reservation=self._declared(members.get("reservation"), self._reservations, "reservation"),
            expected=_read_expected(members["expected"], members, steps) if "expected" in members else None,
            runtime=members["runtime"].duration() if "runtime" in members else None,
            weight=read_weight(members["weight"]) if "weight" in members else None,
            project=members["project"].name() if "project" in members else None,
            priority=members["priority"].integer(-MAX_AMOUNT, MAX_AMOUNT) if "priority" in members else None,
            preemptible=_read_preemptible(members["preemptible"], members) if "preemptible" in members else None,
        )
        if job.reservation is not None and self._reservations[job.reservation].is_downtime:
            members["reservation"].refuse(f"expected a reservation for jobs, got {job.reservation!r}, a downtime")
        if (job.resizable or job.preemptible) and any(one.max_delay is not None for one in job.after):
            members["after"].refuse("expected no max_delay of a job that is resizable or preemptible")
        is_suspended = job.preemptible is not None and job.preemptible.is_suspended
        if is_suspended and any(chunk.resources.keys() <= {"cores"} for chunk in job.steps[0].request.chunks):
            members["preemptible"].refuse("expected mem in each chunk of a job that is suspended, got cores only")
        if is_suspended and job.is_exclusive:
            members["preemptible"].refuse("expected a job that is suspended to share its nodes, got place excl")
        if job.told is not None and job.running:
            members["told"].refuse("expected no told in a running job, whose start is a fact")
        if job.is_array and job.running:
            members["running"].refuse("an array cannot run; its running elements are entries of their own")
        return job

    def _read_steps(self, members: Mapping[str, Cursor]) -> tuple[tuple[Step, ...], dict[str, int]]:
        """Read walltime and request, or the steps in their place."""
        place = members.get("place")
        if "steps" not in members:
            for key in ("walltime", "request"):
                if key not in members:
                    members["id"].refuse(f"expected {key} or steps, got neither")
            request, licenses = read_request(members["request"], place, self._countable)
            return (Step(members["walltime"].duration(), request),), licenses
        for key in ("walltime", "request"):
            if key in members:
                members[key].refuse("expected either steps, or walltime and request, got both")
        steps: list[Step] = []
        licenses = {}
        for item in members["steps"].items():
            step = item.members(["walltime", "request"])
            request, asked = read_request(step["request"], place, self._countable)
            if steps and (asked != licenses or not request.lies_like(steps[0].request)):
                step["request"].refuse("expected the same place and licences in every step")
            licenses = asked
            steps.append(Step(step["walltime"].duration(), request))
        if not steps:
            members["steps"].refuse("expected at least one step")
        return tuple(steps), licenses

    def _read_alternatives(
        self, cursor: Cursor, job: Mapping[str, Cursor], own: Step, licenses: Mapping[str, int]
    ) -> tuple[tuple[Step, ...], tuple[Mapping[str, int], ...]]:
        """Read what a waiting rigid job can run with in place of its own step and licences; none is there twice."""
        _refuse_beside(cursor, ("moldable", "steps", "malleable", "running"), job)
        found: list[tuple[Step, Mapping[str, int]]] = [(own, licenses)]
        costs = [0]
        for item in cursor.items():
            members = item.members(["walltime", "request"], ["place", "licenses", "cost"])
            request, asked = read_request(members["request"], members.get("place"), self._countable)
            text = members["request"].value
            if "place" not in members and not (isinstance(text, str) and ",place=" in text):
                request = replace(own.request, chunks=request.chunks)
            step = Step(members["walltime"].duration(), request)
            if "expected" in job and step.walltime != own.walltime:
                members["walltime"].refuse("expected the job's own walltime beside expected")
            choice = step, join_licenses(asked, members.get("licenses", job.get("licenses")))
            if choice in found:
                item.refuse("expected each alternative once, and another one than the job's own request")
            found.append(choice)
            costs.append(members["cost"].integer(0, MAX_DURATION) if "cost" in members else 0)
        if len(found) == 1:
            cursor.refuse("expected at least one alternative")
        priced = zip(found, costs, strict=True)
        steps = tuple(replace(step, cost=cost) for (step, _), cost in priced)
        return steps[1:], tuple(licenses for _, licenses in found[1:])

    @staticmethod
    def _declared(cursor: Cursor | None, names: Collection[str], what: str) -> str | None:
        """Read the name of something that must be declared."""
        if cursor is None:
            return None
        if cursor.name() not in names:
            cursor.refuse(f"expected a declared {what}, got {cursor.value!r}")
        return cursor.name()

    def _read_running(self, cursor: Cursor, steps: Sequence[Step], malleable: Malleable | None) -> tuple[Segment, ...]:
        """Read what a running job holds; it ends after its walltime, or with its work, at ``now + 1`` or later."""
        members = cursor.members(["start"], ["allocation", "segments"])
        start = members["start"].time()
        if ("allocation" in members) == ("segments" in members):
            cursor.refuse("expected either allocation or segments")
        request = steps[0].request
        if "allocation" in members:
            allocation = read_allocation(members["allocation"], self._nodes)
            _check_chunks(members["allocation"], allocation, steps, malleable)
            seconds = sum(step.walltime for step in steps)
            if malleable is not None and allocation[0].chunk is not None:
                rate = rate_of(allocation, request, malleable)
                seconds = seconds if isinstance(rate, str) else ceil(seconds / rate)
            segments = [Segment(start, start + seconds, allocation)]
        else:
            segments = self._read_segments(members["segments"])
            for index, (item, segment) in enumerate(zip(members["segments"].items(), segments, strict=True)):
                allocated = item.members(["start", "end", "allocation"])["allocation"]
                among = steps[index : index + 1] if len(segments) == len(steps) else steps
                _check_chunks(allocated, segment.allocation, among, malleable)
                if malleable is not None and _chunks_by_node(segment) != _chunks_by_node(segments[0]):
                    item.refuse("expected the same chunks on the same nodes in all segments")
            if start != segments[0].start:
                members["start"].refuse(f"expected the start of the first segment, {segments[0].start}")
        if start > self._now:
            members["start"].refuse(f"expected a start that has passed at {self._now}, got {start}")
        if segments[-1].end <= self._now:
            message = f"should have ended at {segments[-1].end}, now is {self._now}: taken to end at {self._now + 1}"
            self.warnings.append(Fault(cursor.path, message))
            segments[-1] = segments[-1]._replace(end=self._now + 1)
        return tuple(segments)

    def _read_segments(self, cursor: Cursor) -> list[Segment]:
        """Read the segments of a running job whose allocation has changed."""
        segments: list[Segment] = []
        for item in cursor.items():
            members = item.members(["start", "end", "allocation"])
            start, end = members["start"].time(), members["end"].time()
            if end <= start or (segments and start != segments[-1].end):
                item.refuse("expected segments in order, without holes")
            segments.append(Segment(start, end, read_allocation(members["allocation"], self._nodes)))
        if not segments:
            cursor.refuse("expected at least one segment")
        return segments


def read_allocation(cursor: Cursor, nodes: Collection[str]) -> tuple[Placement, ...]:
    """Read what a running job or a reservation holds: something on each of its nodes, all of which exist."""
    allocation: dict[tuple[str, int | None], Placement] = {}
    for item in cursor.items():
        members = item.members(["node", "resources"], ["chunk", "count"])
        if ("chunk" in members) != ("count" in members):
            item.refuse("expected both chunk and count, or neither")
        chunk = members["chunk"].integer(0, MAX_AMOUNT) if "chunk" in members else None
        count = members["count"].integer(1, MAX_SIZE) if "count" in members else None
        name, resources = members["node"].name(), members["resources"].amounts()
        if name not in nodes:
            item.refuse(f"expected a node of the cluster, got {name!r}")
        if (name, chunk) in allocation:
            item.refuse(f"expected each node once, or once for each kind of its chunks, got {name!r} again")
        if not resources:
            item.refuse("expected at least one unit of a resource on the node, got none")
        allocation[name, chunk] = Placement(name, chunk, count, resources)
    if not allocation:
        cursor.refuse("expected at least one node")
    return tuple(allocation.values())


def _chunks_by_node(segment: Segment) -> dict[tuple[str, int], int | None]:
    """Return how many chunks of each kind a running job states on each node."""
    return {(one.node, one.chunk): one.count for one in segment.allocation if one.chunk is not None}


def _check_chunks(
    cursor: Cursor, allocation: Sequence[Placement], among: Sequence[Step], malleable: Malleable | None
) -> None:
    """Check what a running job states of its chunks: kinds that one of the steps `among` which it is in has; and of a
    malleable one all chunks of its request, on shares of their cores.
    """
    stated = [one.chunk for one in allocation if one.chunk is not None]
    if not stated:
        return
    if len(stated) < len(allocation):
        cursor.refuse("expected chunk and count on each of its nodes, or on none")
    num_kinds = max(len(step.request.chunks) for step in among)
    if max(stated) >= num_kinds:
        cursor.refuse(f"expected kinds of chunks from 0 to {num_kinds - 1}, got {max(stated)}")
    if malleable is None:
        return
    request = among[0].request
    rate = rate_of(allocation, request, malleable)
    if isinstance(rate, str):
        cursor.refuse(rate)
    for kind, chunk in enumerate(request.chunks):
        placed = sum(one.count or 0 for one in allocation if one.chunk == kind)
        if placed != chunk.count:
            cursor.refuse(f"expected {chunk.count} chunks of kind {kind} in all, got {placed}")


def _read_dependency(cursor: Cursor) -> Dependency:
    """Read one entry of ``after``."""
    members = cursor.members(["job", "type"], ["delay", "max_delay"])
    delay = members["delay"].integer(0, MAX_DURATION) if "delay" in members else 0
    longest = members["max_delay"].integer(delay, MAX_DURATION) if "max_delay" in members else None
    return Dependency(members["job"].name(), members["type"].choice(DEPENDENCY_TYPES), delay, longest)


def read_price(cursor: Cursor | None, default: Fraction) -> Fraction:
    """Read what an expected wait (s) of delay costs."""
    if cursor is None:
        return default
    price = cursor.number()
    if price < 0:
        cursor.refuse(f"expected a number of at least 0, got {cursor.value!r}")
    return price


def read_weight(cursor: Cursor) -> Fraction:
    """Read a factor of the objective."""
    weight = cursor.number()
    if weight <= 0:
        cursor.refuse(f"expected a weight above 0, got {cursor.value!r}")
    return weight


def _read_promised_start(cursor: Cursor) -> PromisedStart:
    """Read the start that a user was told."""
    members = cursor.members(["start"], ["price"])
    return PromisedStart(members["start"].time(), read_price(members.get("price"), Fraction(1)))


def _read_expected(expected: Cursor, members: Mapping[str, Cursor], steps: Sequence[Step]) -> int:
    """Read how long a job is expected to run: only of a job that takes its walltime in a plan, and no longer."""
    for key in ("steps", "malleable"):
        if key in members:
            expected.refuse(f"expected none in a job with {key}")
    seconds = expected.duration()
    if seconds > steps[0].walltime:
        expected.refuse(f"expected at most the walltime, {steps[0].walltime}, got {seconds}")
    return seconds


def _read_resizable(cursor: Cursor, job: Mapping[str, Cursor], steps: Sequence[Step]) -> Resizable:
    """Read that a job may change between its choices, which are numbers of the same chunks, while it runs."""
    _refuse_beside(cursor, ("deadline", "start_at", "reservation"), job)
    members = cursor.members([], ["cost", "interval"])
    first = steps[0].request
    sizes = {sum(chunk.count for chunk in step.request.chunks): step for step in steps}
    for step in steps:
        kinds = [replace(chunk, count=0) for chunk in step.request.chunks]
        is_alike = kinds == [replace(chunk, count=0) for chunk in first.chunks] and step.request.lies_like(first)
        if len(sizes) < max(2, len(steps)) or len(kinds) != 1 or not is_alike:
            cursor.refuse("expected alternatives that are other numbers of the same chunks, each once")
    if first.arrangement == "pack" or first.within is not None:
        cursor.refuse("expected a job whose chunks are not on one node or near each other")
    return Resizable(
        members["cost"].integer(0, MAX_DURATION) if "cost" in members else 0,
        members["interval"].duration() if "interval" in members else 1,
        sizes,
        job["runtime"].duration() if "runtime" in job else None,
    )


def _read_preemptible(cursor: Cursor, job: Mapping[str, Cursor]) -> Preemptible:
    """Read that a job may be stopped, and what it keeps of its work."""
    others = (
        *("steps", "malleable", "alternatives", "moldable", "prefer", "resizable"),
        *("start_at", "deadline", "reservation"),
    )
    _refuse_beside(cursor, others, job)
    members = cursor.members(["by"], ["cost", "interval"])
    kind = members["by"].choice(["requeue", "checkpoint", "suspend"])
    if kind != "checkpoint":
        for key in ("cost", "interval"):
            if key in members:
                members[key].refuse("expected it of a job with checkpoints only")
        return Preemptible(0, None, kind == "suspend")
    if "interval" not in members:
        cursor.refuse("expected the interval from one checkpoint to the next, got none")
    cost, interval = (
        members["cost"].integer(0, MAX_DURATION) if "cost" in members else 0,
        members["interval"].duration(),
    )
    if cost >= interval:
        members["cost"].refuse(f"expected less than the interval of {interval} s, got {cost}")
    return Preemptible(cost, interval)


def _read_expand_limit(cursor: Cursor | None) -> Fraction | None:
    """Read how often its walltime a step may be held; null is without limit."""
    if cursor is None:
        return Fraction(1)
    if cursor.value is None:
        return None
    limit = cursor.number()
    if limit < 1:
        cursor.refuse(f"expected a number of at least 1 or null, got {cursor.value!r}")
    return limit


def _refuse_beside(cursor: Cursor, keys: Sequence[str], job: Mapping[str, Cursor]) -> None:
    for key in keys:
        if key in job:
            cursor.refuse(f"expected none in a job with {key}")


def _read_moldable(cursor: Cursor, job: Mapping[str, Cursor], own: Step) -> tuple[Step, ...]:
    """Read the numbers of chunks on which a job can run in place of its own, ascending, and its walltimes there."""
    _refuse_beside(cursor, ("alternatives", "steps", "malleable", "running", "expected"), job)
    if len(own.request.chunks) != 1:
        cursor.refuse(f"expected one kind of chunks in the request, got {len(own.request.chunks)}")
    (chunk,) = own.request.chunks
    return tuple(
        Step(seconds, replace(own.request, chunks=(replace(chunk, count=count),)))
        for count, seconds in read_sizes(cursor, chunk.count, own.walltime).items()
    )


def _read_prefer(cursor: Cursor, job: Mapping[str, Cursor], own: Step) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Read that a job asks for one group of a level, and else runs as it says at a cost."""
    _refuse_beside(cursor, ("alternatives", "moldable", "steps", "malleable", "running"), job)
    members = cursor.members(["level", "cost"])
    level, cost = members["level"].name(), members["cost"].integer(0, MAX_DURATION)
    if level == own.request.within and own.request.segment is None and own.request.spread is None:
        members["level"].refuse(f"expected another level than that of the place, got {level!r}")
    near = replace(own.request, within=level, segment=None, spread=None)
    return (replace(own, request=near),), (replace(own, cost=cost),)


def _check_groups(cursor: Cursor, request: Request) -> None:
    """Check that chunks which may be in several groups are of one kind, and make whole segments."""
    if request.segment is None and request.spread is None:
        return
    if len(request.chunks) != 1 or request.arrangement == "pack":
        cursor.refuse("expected one kind of chunks, not packed, in segments or spread")
    if request.segment is not None and request.chunks[0].count % request.segment:
        cursor.refuse(f"expected segments of {request.segment} chunks each, got {request.chunks[0].count} chunks")


def _read_malleable(cursor: Cursor) -> Malleable:
    """Read shares, model and stretch; the full share, which is always possible, is not named."""
    members = cursor.members(["shares"], ["model", "stretch"])
    shares: set[Fraction] = set()
    for item in members["shares"].items():
        share = item.number()
        if not 0 < share < 1 or share in shares:
            item.refuse(f"expected shares between 0 and 1, each once, got {item.value!r}")
        shares.add(share)
    if not shares:
        members["shares"].refuse("expected at least one share")
    stretch: dict[Fraction, Fraction] = {}
    for text, factor in members["stretch"].entries() if "stretch" in members else ():
        share = Fraction(repr(float(text))) if SHARE.fullmatch(text) else Fraction(0)
        if share not in shares or share in stretch:
            factor.refuse(f"expected one of the shares, each once, got {text[:40]!r}")
        if factor.number() < 1:
            factor.refuse(f"expected a factor of at least 1, got {factor.value!r}")
        stretch[share] = factor.number()
    model = members["model"].choice(["ideal", "worst"]) if "model" in members else "ideal"
    return Malleable(tuple(sorted(shares, reverse=True)), model, stretch)
