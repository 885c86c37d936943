"""The second document: from raw JSON to the judge's `Plan`; what cannot be read becomes violations in words."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from cpsched.errors import DocumentError
from cpsched.verify.case import Violation
from cpsched.verify.documents import MAX_AMOUNT, MAX_SIZE, Cursor, refuse_format, shown
from cpsched.verify.model import Booking, Instance, Job, Placement, Plan, Segment, Slice, SliceKey, Waiting

FORMAT = "cpsched-plan/1"
REQUIRED = ("format", "instance", "now", "objective", "engine", "jobs")
OPTIONAL = ("waiting_room", "reservations", "incumbents", "events", "work", "record", "attempts")
REASONS = (
    "unsatisfiable",
    "unavailable",
    "walltime",
    "too_late",
    "not_mapped",
    "dependency",
    "limit",
    "free_pool",
    "reservation",
    "not_started",
)
PLACEMENT_KEYS = {"node", "chunk", "count", "resources"}
#: What only has to be in order, by the keys that must and that may be there: how a plan was found.
CHECKED: Mapping[str, tuple[dict[str, Callable[[Cursor], object]], dict[str, Callable[[Cursor], object]]]] = {
    "incumbents": (
        {"at": Cursor.seconds, "value": Cursor.number, "by": Cursor.name},
        {"planned": lambda planned: planned.integer(0, MAX_AMOUNT)},
    ),
    "events": ({"at": Cursor.seconds, "by": Cursor.name, "what": Cursor.words}, {}),
    "work": ({"by": Cursor.name, "seconds": Cursor.seconds}, {"what": Cursor.words}),
}
#: Those of a running job, and of nodes that a reservation names.
WHOLE_KEYS = {"node", "resources"}


class PlanReader:
    """Reads a plan against its instance; `violations` grows while it does.

    Raises `DocumentError` if this is no plan at all: not an object, another format, or without a list of jobs.
    """

    def __init__(self, document: object, source: str, instance: Instance) -> None:
        self._instance = instance
        self._top = Cursor(document, "", source)
        self._written = self._top.mapping()
        if self._written.get("format") != FORMAT:
            refuse_format(self._member("format"), FORMAT)
        self._member("jobs").items()
        self.violations: list[Violation] = []
        self._mentions: Counter[str] = Counter()
        #: The running jobs that an outage cut short: if they are in the plan again, they were started again.
        self._cut: set[str] = set()

    def read(self) -> Plan:
        """Read everything that can be read."""
        self._check_top()
        attempts = self._read_attempts()
        entries = [entry for item in self._items("jobs") if (entry := self._read_job(item)) is not None]
        waiting = [one for item in self._items("waiting_room") if (one := self._read_waiting(item)) is not None]
        slices: dict[SliceKey, Slice] = {}
        for item in self._items("reservations"):
            slice_ = self._read_slice(item)
            if slice_ is None:
                continue
            if slice_.key in slices:
                again = f"got {slice_.reservation.id!r} at {slice_.start} again"
                self._say(item.path, f"expected each reservation once at a time, {again}")
            slices[slice_.key] = slice_
        in_order = sorted(slices.values(), key=lambda slice_: slice_.start)
        for key, (required, optional) in CHECKED.items():
            for item in self._items(key):
                with self._forgiving():
                    members = item.members(required, optional)
                    for name, check in (required | optional).items():
                        if name in members:
                            check(members[name])
        self._check_engine()
        score, *later_scores = self._read_scores()
        return Plan(
            entries=tuple(entries),
            waiting=tuple(waiting),
            slices=tuple(slice_ for slice_ in in_order if slice_.allocation),
            refused=tuple(slice_ for slice_ in in_order if not slice_.allocation),
            mentions=self._mentions,
            score=score,
            later_scores=tuple(later_scores),
            is_record=self._read_flag("record"),
            attempts=attempts,
        )

    def _member(self, key: str) -> Cursor:
        return Cursor(self._written.get(key), key, self._top.source)

    def _say(self, path: str, message: str) -> None:
        self.violations.append(Violation("structure", path, message))

    @contextmanager
    def _forgiving(self, rule: str = "structure") -> Iterator[None]:
        """Turn the faults of a part into violations; what follows them in the block is left out."""
        try:
            yield
        except DocumentError as error:
            self.violations.extend(Violation(rule, fault.path, fault.message) for fault in error.faults)

    def _check_top(self) -> None:
        """Check that the plan has the keys of its format, and names the instance it was made for and its time."""
        for key in self._written:
            if key not in REQUIRED and key not in OPTIONAL:
                with self._forgiving():
                    self._top.members((), [*REQUIRED, *OPTIONAL])
                break
        for key in REQUIRED:
            if key not in self._written:
                self._say(key, "expected a value, got nothing")
        for key, expected in (("instance", self._instance.name), ("now", self._instance.now)):
            got = self._written.get(key)
            if key in self._written and (got != expected or isinstance(got, bool | float)):
                message = f"expected the instance's own, {expected!r}, got {shown(got)}"
                self.violations.append(Violation("identity", key, message))

    def _items(self, key: str) -> list[Cursor]:
        """Return the elements of an array that may be left out."""
        with self._forgiving():
            return self._member(key).items() if key in self._written else []
        return []

    def _mention(self, item: Cursor) -> None:
        """Count an entry of a job, even if the rest of the entry cannot be read."""
        name = item.value.get("id") if isinstance(item.value, dict) else None
        if isinstance(name, str):
            self._mentions[name] += 1

    def _read_job(self, item: Cursor) -> Booking | None:
        """Read a planned or running job; None if it cannot be read or is unknown."""
        self._mention(item)
        return self._read_run(item)

    def _read_attempts(self) -> tuple[Booking, ...]:
        """Read what was cut short, in order of the starts; of a running job the first is no choice, what follows is."""
        items = self._items("attempts")
        read = [one for item in items if (one := self._read_run(item)) is not None]
        for item in items if len(read) < len(items) else ():
            name = item.value.get("id") if isinstance(item.value, dict) else None
            if isinstance(name, str) and name not in self._instance.jobs:
                self.violations.append(Violation("presence", name, "the instance has no such job"))
        attempts: list[Booking] = []
        for one in sorted(read, key=lambda one: one.start):
            job = replace(one.job, running=()) if one.id in self._cut else one.job
            attempts.append(replace(one, job=job, is_cut=True))
            if one.is_running:
                self._cut.add(one.id)
        return tuple(attempts)

    def _job(self, name: str) -> Job | None:
        """Return a job of the instance; one that was cut short runs no more."""
        job = self._instance.jobs.get(name)
        return replace(job, running=()) if job is not None and name in self._cut else job

    def _read_run(self, item: Cursor) -> Booking | None:
        """Read a run of a job: its times and segments; None if it cannot be read or is unknown."""
        with self._forgiving():
            members = item.members(["id", "start", "end", "segments"], ["alternative"])
            start, end = _times(members)
            segments = tuple(self._read_segment(segment) for segment in members["segments"].items())
            if not segments:
                members["segments"].refuse("expected at least one segment")
            name = members["id"].name()
            job = self._job(name)
            if "alternative" in members:
                number = members["alternative"].integer(0, MAX_AMOUNT)
                if job is not None and number > len(job.alternatives):
                    members["alternative"].refuse(f"expected at most {len(job.alternatives)}, the job's last one")
                return None if job is None else Booking(name, job.chosen(number), start, end, segments)
            return None if job is None else Booking(name, job.chosen(0), start, end, segments)
        return None

    def _read_segment(self, cursor: Cursor) -> Segment:
        members = cursor.members(["start", "end", "allocation"])
        return Segment(*_times(members), self._read_allocation(members["allocation"]))

    def _read_allocation(self, cursor: Cursor) -> tuple[Placement, ...]:
        """Read the entries of an allocation, all on nodes that exist."""
        if not isinstance(cursor.value, list | tuple) or not cursor.value:
            cursor.refuse("expected an array of at least one placement")
        allocation = []
        for index, raw in enumerate(cursor.value):
            placement = _quick_placement(raw)
            if placement is None or placement.node not in self._instance.nodes:
                item = Cursor(raw, f"{cursor.path}[{index}]", cursor.source)
                placement = _read_placement(item)
                if placement.node not in self._instance.nodes:
                    item.refuse(f"expected a node of the cluster, got {placement.node!r}")
            allocation.append(placement)
        return tuple(allocation)

    def _read_waiting(self, item: Cursor) -> Waiting | None:
        """Read an entry of the waiting room; None if it cannot be read or is unknown."""
        self._mention(item)
        with self._forgiving():
            members = item.members(["id", "reason", "detail"])
            name, reason = members["id"].name(), members["reason"].choice(REASONS)
            members["detail"].words()
            job = self._job(name)
            return None if job is None else Waiting(name, job, reason)
        return None

    def _read_flag(self, key: str) -> bool:
        """Read a flag that may be left out; what is none is said, and counts as false."""
        with self._forgiving():
            return key in self._written and self._member(key).flag()
        return False

    def _read_slice(self, item: Cursor) -> Slice | None:
        """Read what a reservation got at one of its times, or that it got nothing."""
        with self._forgiving():
            members = item.members(["id", "start", "end"], ["allocation", "reason"])
            if ("allocation" in members) == ("reason" in members):
                item.refuse("expected either allocation or reason")
            reservation = self._instance.reservations.get(members["id"].name())
            if reservation is None:
                members["id"].refuse(f"expected a reservation of the instance, got {members['id'].value!r}")
            start, end = _times(members)
            if "reason" in members:
                members["reason"].words()
                return Slice(reservation, start, end, ())
            allocation = self._read_allocation(members["allocation"])
            is_first = (start, end) in self._instance.reserved_times[reservation.id][:1]
            is_fact = bool(reservation.allocation) and is_first and _is_same(allocation, reservation.allocation)
            return Slice(reservation, start, end, allocation, is_fact)
        return None

    def _check_engine(self) -> None:
        """Check the engine's name, version, budget and elapsed seconds, and its reason for stopping."""
        if "engine" not in self._written:
            return
        with self._forgiving("engine"):
            members = self._member("engine").members(["name", "version", "budget", "elapsed", "stopped"], ["params"])
            for key in ("name", "version", "stopped"):
                members[key].name()
            for key in ("budget", "elapsed"):
                members[key].seconds()

    def _read_scores(self) -> Iterator[dict[str, Fraction | str | None]]:
        """Yield the objective, and the later aims in it; what is no number there is said and left out."""
        members: dict[str, Cursor] = {}
        later: list[Cursor] = []
        with self._forgiving():
            required = ["name", "value", "bound", "gap", "planner", "suffered"]
            if "objective" in self._written:
                members = self._member("objective").members(required, ["proof", "then"])
            later = members.pop("then").items() if "then" in members else []
        yield self._score_of(members)
        for cursor in later:
            with self._forgiving():
                yield self._score_of(cursor.members(["name", "value", "bound", "gap"]))

    def _score_of(self, members: Mapping[str, Cursor]) -> dict[str, Fraction | str | None]:
        score: dict[str, Fraction | str | None] = {}
        for key, cursor in members.items():
            with self._forgiving():
                if key == "name":
                    score[key] = cursor.name()
                elif key == "proof":
                    score[key] = cursor.words()
                else:
                    score[key] = None if key in ("bound", "gap") and cursor.value is None else cursor.number()
        return score


def _times(members: Mapping[str, Cursor]) -> tuple[int, int]:
    """Return a start, and an end after it."""
    start, end = members["start"].plan_time(), members["end"].plan_time()
    if end <= start:
        members["end"].refuse(f"expected an end after {start}, got {end}")
    return start, end


def _is_same(one: Sequence[Placement], other: Sequence[Placement]) -> bool:
    """Return whether two allocations are the same but for their order."""
    by_node = [
        {(held.node, held.chunk): (held.count, held.resources) for held in allocation} for allocation in (one, other)
    ]
    return len(one) == len(other) and by_node[0] == by_node[1]


def _read_placement(cursor: Cursor) -> Placement:
    """Read one entry of an allocation."""
    members = cursor.members(["node", "resources"], ["chunk", "count"])
    return Placement(
        members["node"].name(),
        members["chunk"].integer(0, MAX_AMOUNT) if "chunk" in members else None,
        members["count"].integer(1, MAX_SIZE) if "count" in members else None,
        members["resources"].amounts(),
    )


def _quick_placement(raw: object) -> Placement | None:
    """Read a placement that is plainly in order; None sends it to the reader that explains."""
    if type(raw) is not dict or (raw.keys() != PLACEMENT_KEYS and raw.keys() != WHOLE_KEYS):
        return None
    node, chunk, count, resources = raw["node"], raw.get("chunk", 0), raw.get("count", 1), raw["resources"]
    if type(node) is not str or type(chunk) is not int or type(count) is not int or type(resources) is not dict:
        return None
    for name, amount in resources.items():
        if type(name) is not str or type(amount) is not int or not 0 < amount <= MAX_AMOUNT:
            return None
    if raw.keys() == WHOLE_KEYS:
        return Placement(node, None, None, resources)
    return Placement(node, chunk, count, resources) if chunk >= 0 < count else None
