"""Jobs in instance documents: what they say by other keys than fields, and what one alone can have wrong."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from cpsched.domain import (
    MAX_COUNT,
    MAX_DURATION,
    MAX_NAME,
    Amounts,
    Arrangement,
    Asks,
    Bounds,
    Chunk,
    Count,
    Duration,
    Entries,
    FrozenMap,
    Has,
    Job,
    Key,
    Malleability,
    Name,
    Place,
    Placement,
    Preemptible,
    Request,
    Running,
    Seconds,
    Segment,
    Speedup,
    Step,
    StopKind,
    Text,
    Time,
    Written,
    amdahl,
    downey,
    resized,
    share_of,
    time_on,
)
from cpsched.errors import SyntaxFault
from cpsched.formats.faults import Faults, Location, path_of, shown
from cpsched.formats.kinds import FORMS, NOTATIONS, Either, Form, Listed, Number, Object, Spelt, kind_of, object_of
from cpsched.formats.notations import format_indices, format_place
from cpsched.formats.reading import Reading, frozen_amounts, read_allocation
from cpsched.formats.request_text import format_request, parse_request

#: A number of chunks as a key; and the most other sizes of a moldable job.
_SIZE, _MOST_SIZES = re.compile(r"[1-9][0-9]{0,6}"), 64
#: What no job has that may be stopped: it would change as it runs, or could not begin again at another time.
_NEVER_STOPPED = (
    *("resizable", "steps", "malleable", "alternatives", "moldable", "prefer", "start_at", "deadline", "reservation"),
)
#: A share as a key: a number as JSON or Python writes it.
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")
#: What a request is, in words.
_CHUNKS = "Chunks as text, [N:]res=value[:res=value…][+…][,place=…][,licence=N], or in parsed form"

_Entry = Mapping[str, Any]


def _rule_of_jobs(job: _Entry) -> str | None:
    """Check that a job is rigid, evolving, malleable or with alternatives, and an array, running or told its start."""
    lacking = sorted({"walltime", "request"} - job.keys())
    if "steps" not in job and lacking:
        return f"Expected walltime and request, or steps; got no {' and '.join(lacking)}"
    if "steps" in job and len(lacking) < 2:
        return "Expected either steps, or walltime and request, got both"
    if "steps" in job and "malleable" in job:
        return "Expected a malleable or an evolving job, got both malleable and steps"
    if "expected" in job and ("steps" in job or "malleable" in job):
        return "Expected no expected in an evolving or malleable job: a plan chooses how long it takes"
    for choice in ("alternatives", "moldable", "prefer"):
        others = [key for key in ("alternatives", "moldable", "steps", "malleable", "running") if key in job]
        others += ["expected"] if choice == "moldable" and "expected" in job else []
        others = [key for key in others if key != choice]
        if choice in job and others:
            return f"Expected {choice} in a job without {' and '.join(others)}: a plan chooses one at its start"
    if "resizable" in job and not {"alternatives", "moldable"} & job.keys():
        return "Expected resizable in a job with alternatives or moldable: it changes between these"
    once = [key for key in ("deadline", "start_at", "reservation") if key in job]
    if "resizable" in job and once:
        return f"Expected resizable in a job without {' and '.join(once)}"
    if "preemptible" in job:
        others = [key for key in _NEVER_STOPPED if key in job]
        if others:
            return f"Expected preemptible in a job without {' and '.join(others)}"
    if "steps" not in job and "expand_limit" in job:
        return "Expected expand_limit only together with steps"
    if "array" in job and "running" in job:
        return "Expected no running in an array: elements that run are entries of their own"
    if "told" in job and "running" in job:
        return "Expected no told in a running job: its start is a fact"
    return None


def read_job(reading: Reading, location: Location, job: _Entry, said: dict[str, Any]) -> Job | None:
    """Return the job at `location`, or None if its faults leave none."""
    work = _read_steps(reading, location, job)
    if work is None:
        return None
    steps, said["licenses"] = work
    if job.get("expected", 0) > steps[0].walltime:
        message = f"Expected at most the walltime, {steps[0].walltime}, got {job['expected']}"
        reading.faults.add((*location, "expected"), message)
    array = said.get("array")
    if array is not None and len(f"{job['id']}[{array[-1]}]") > MAX_NAME:
        reading.faults.add((*location, "id"), f"Expected an id whose elements have at most {MAX_NAME} characters")
    if "alternatives" in job:
        own, *others = _read_alternatives(reading, location, job, steps[0], said["licenses"])
        said["alternatives"] = tuple(step for step, _ in others)
        if any(licenses != own[1] for _, licenses in others):
            said["licenses_of_choices"] = (own[1], *(licenses for _, licenses in others))
    if "prefer" in job:
        steps, said["alternatives"] = _read_prefer(reading, location, job["prefer"], steps[0])
    if "moldable" in job:
        said["alternatives"] = _read_moldable(reading, location, job["moldable"], steps[0])
    if "resizable" in job and not _are_sizes((*steps, *said["alternatives"])):
        message = "Expected alternatives that are other numbers of the same chunks, each once, and not packed"
        reading.faults.add((*location, "resizable"), message)
    is_suspended = "preemptible" in said and said["preemptible"].by is StopKind.SUSPEND
    if is_suspended and any(chunk.resources.keys() <= {"cores"} for chunk in steps[0].request.chunks):
        message = "Expected mem in each chunk of a job that is suspended, for it keeps that, got cores only"
        reading.faults.add((*location, "preemptible"), message)
    if is_suspended and steps[0].request.place.exclusive:
        reading.faults.add(location, "Expected a job that is suspended to share its nodes, got place excl")
    changing = [key for key in ("resizable", "preemptible") if key in job]
    if changing and any(one.max_delay is not None for one in said.get("after", ())):
        reading.faults.add((*location, "after"), f"Expected no max_delay in a job that is {' and '.join(changing)}")
    if "running" in job:
        said["running"] = _read_running(reading, location, job["running"], steps, said.get("malleability"))
    return Job(steps=steps, **said)


def _read_steps(reading: Reading, location: Location, job: _Entry) -> tuple[tuple[Step, ...], Amounts] | None:
    """Return the steps, one for a rigid job, and the licences, on which all steps agree."""
    works = [((*location, "request"), job)]
    if "steps" in job:
        works = [((*location, "steps", index, "request"), step) for index, step in enumerate(job["steps"])]
    steps: list[Step] = []
    agreed: tuple[Place, Amounts] | None = None
    for where, work in works:
        read = reading.request(where, work["request"], job.get("place"), job.get("licenses"))
        if read is None:
            continue
        request, licenses = read
        if agreed is not None and agreed != (request.place, licenses):
            reading.faults.add(where, "Expected the same place and licences in every step")
        agreed = agreed or (request.place, licenses)
        if request.place.within is not None and ("steps" in job or "malleable" in job):
            reading.faults.add(where, "Expected no within in the place of an evolving or malleable job")
        steps.append(Step(walltime=work["walltime"], request=request))
    return (tuple(steps), agreed[1]) if agreed is not None and len(steps) == len(works) else None


def _read_alternatives(
    reading: Reading, location: Location, job: _Entry, own: Step, licenses: Amounts
) -> list[tuple[Step, Amounts]]:
    """Return the choices of a job with their licences, its own request first; each is different from all others."""
    found, costs = {(own, licenses): (*location, "request")}, dict[tuple[Step, Amounts], int]()
    for index, one in enumerate(job["alternatives"]):
        at = (*location, "alternatives", index)
        read = reading.request(
            (*at, "request"),
            one["request"],
            one.get("place"),
            one.get("licenses", job.get("licenses")),
            otherwise=own.request.place,
        )
        if read is None:
            continue
        step = Step(walltime=one["walltime"], request=read[0], cost=one.get("cost", 0))
        if "expected" in job and step.walltime != own.walltime:
            message = f"Expected the job's own walltime, {own.walltime}, beside expected, got {step.walltime}"
            reading.faults.add((*at, "walltime"), message)
        choice = replace(step, cost=0), read[1]
        if choice in found:
            reading.faults.add(at, f"Expected each alternative once, got the same as {path_of(found[choice])}")
        found.setdefault(choice, at)
        costs[choice] = step.cost
    return [(replace(step, cost=costs.get((step, taken), 0)), taken) for step, taken in found]


def _read_prefer(
    reading: Reading, location: Location, prefer: _Entry, own: Step
) -> tuple[tuple[Step], tuple[Step, ...]]:
    """Return the step of a job within one group of the level that it prefers, and its alternative: as it says."""
    at, level = (*location, "prefer"), prefer["level"]
    reading.check_known((*at, "level"), "level of the topology", level, reading.cluster.topology, "licenses")
    near_place = replace(own.request.place, within=level, segment=None, spread=None)
    near = replace(own, request=replace(own.request, place=near_place))
    if near == own:
        reading.faults.add((*at, "level"), f"Expected another level than that of the place, got {level}")
        return (own,), ()
    return (near,), (replace(own, cost=prefer["cost"]),)


def _are_sizes(steps: Sequence[Step]) -> bool:
    """Tell whether steps ask for different numbers of one kind of chunks, in an arrangement that all can have."""
    counts = {step.request.chunks[0].count for step in steps}
    kinds = {tuple(replace(chunk, count=1) for chunk in step.request.chunks) for step in steps}
    places = {step.request.place for step in steps}
    is_one = len(kinds) == len(places) == 1 and len(*kinds) == 1 and len(counts) == len(steps)
    return is_one and all(place.arrangement is not Arrangement.PACK and place.within is None for place in places)


def _read_moldable(reading: Reading, location: Location, moldable: _Entry, own: Step) -> tuple[Step, ...]:
    """Return the alternatives of a moldable job: its request with each other number of chunks, ascending."""
    at = (*location, "moldable")
    if len(own.request.chunks) != 1:
        reading.faults.add(at, f"Expected one kind of chunks in the request, got {len(own.request.chunks)}")
        return ()
    count = own.request.chunks[0].count
    sizes, speedup = moldable.get("sizes"), _speedup_of(reading, at, moldable, count)
    if sizes is None:
        if not moldable["min"] <= count <= moldable["max"]:
            message = f"Expected sizes around the {count} chunks of the request, got {moldable['min']} to"
            reading.faults.add(at, f"{message} {moldable['max']}")
            return ()
        sizes = range(moldable["min"], moldable["max"] + 1)
    found, segment = sorted({*sizes} - {count}), own.request.place.segment or 1
    if any(size % segment for size in found):
        reading.faults.add(
            at, f"Expected sizes of whole segments of {segment} chunks, got {', '.join(map(str, found))}"
        )
    if not found:
        reading.faults.add(at, f"Expected another size than the {count} chunks of the request")
    if len(found) > _MOST_SIZES:
        reading.faults.add(at, f"Expected at most {_MOST_SIZES} other sizes, got {len(found)}")
    if speedup is None or len(found) > _MOST_SIZES:
        return ()
    steps = []
    for size in found:
        step = resized(own, size, speedup)
        if step.walltime > MAX_DURATION:
            reading.faults.add(at, f"Expected at most {MAX_DURATION} s on {size} chunks, got {step.walltime}")
        steps.append(step)
    return tuple(steps)


def _speedup_of(reading: Reading, at: Location, moldable: _Entry, count: int) -> Speedup | None:
    """Return the speed-up of a moldable job, or None for a table with faults."""
    match moldable["model"]:
        case "none":
            return lambda _: Fraction(1)
        case "amdahl":
            return amdahl(Fraction(str(moldable["serial"])))
        case "downey":
            return downey(Fraction(str(moldable["parallelism"])), Fraction(str(moldable["sigma"])))
    known: dict[int, Fraction] = {}
    for key, factor in moldable["speedups"].items():
        if not _SIZE.fullmatch(key):
            reading.faults.add((*at, "speedups", key), f"Expected a number of chunks as key, got {shown(key)}")
        else:
            known[int(key)] = Fraction(str(factor))
    lacking = sorted(
        {count, *moldable.get("sizes", range(moldable.get("min", 1), moldable.get("max", 0) + 1))} - {*known}
    )
    if lacking:
        listed = ", ".join(map(str, lacking[:10]))
        reading.faults.add((*at, "speedups"), f"Expected the speed-up on {listed} chunks too, got none")
        return None
    return known.__getitem__


def _rule_of_moldable(moldable: _Entry) -> str | None:
    if ("sizes" in moldable) == ("min" in moldable or "max" in moldable):
        return "Expected either sizes, or min and max"
    if "sizes" not in moldable and not {"min", "max"} <= moldable.keys():
        return "Expected both min and max"
    if moldable.get("min", 1) > moldable.get("max", MAX_COUNT):
        return f"Expected min <= max, got {moldable['min']} and {moldable['max']}"
    needed = {"none": set(), "amdahl": {"serial"}, "downey": {"parallelism", "sigma"}, "table": {"speedups"}}
    figures = needed[moldable["model"]]
    got = {"serial", "parallelism", "sigma", "speedups"} & moldable.keys()
    if got != figures:
        expected = " and ".join(sorted(figures)) or "no figures"
        return f"Expected {expected} with the model {moldable['model']}, got {' and '.join(sorted(got)) or 'none'}"
    return None


def _rule_of_preemptible(preemptible: _Entry) -> str | None:
    has_figures = {"cost", "interval"} & preemptible.keys()
    if preemptible["by"] != "checkpoint":
        return f"Expected cost and interval of checkpoints only, got by {preemptible['by']}" if has_figures else None
    if "interval" not in preemptible:
        return "Expected the interval from one checkpoint to the next, got none"
    if preemptible.get("cost", 0) >= preemptible["interval"]:
        return f"Expected a cost below the interval of {preemptible['interval']} s, got {preemptible['cost']}"
    return None


def _read_malleability(reading: Reading, location: Location, malleable: _Entry, said: dict[str, Any]) -> Malleability:
    shares = said["shares"]
    if len({*shares}) < len(shares):
        reading.faults.add((*location, "shares"), "Expected every share once")
    stretch: dict[float, float] = {}
    for key, factor in said.get("stretch", {}).items():
        share = float(key) if _NUMBER.fullmatch(key) else math.nan
        if share not in shares:
            listed = ", ".join(map(str, shares[:10]))
            reading.faults.add((*location, "stretch", key), f"Expected one of the shares {listed}; got {shown(key)}")
        elif share in stretch:
            reading.faults.add((*location, "stretch", key), "Expected every share once")
        else:
            stretch[share] = factor
    said |= {"shares": tuple(sorted(shares, reverse=True)), "stretch": FrozenMap(stretch)}
    return Malleability(**said)


def _read_running(
    reading: Reading, location: Location, running: _Entry, steps: Sequence[Step], malleability: Malleability | None
) -> Running | None:
    """Return the segments of a running job; one that is overdue ends in a second, with a warning (BRIDI-11)."""
    where = (*location, "running")
    if running["start"] > reading.now:
        reading.faults.add((*where, "start"), f"Expected a start not after now = {reading.now}, got {running['start']}")
        return None
    if not _check_chunks(reading, where, running, steps, malleability):
        return None
    segments = _read_segments(reading, where, running, steps, malleability)
    if segments and segments[-1].end <= reading.now:
        ended, last = segments[-1].end, segments[-1]
        segments[-1] = Segment(start=last.start, end=reading.now + 1, allocation=last.allocation)
        message = f"should have ended at {ended}, now is {reading.now}: taken to end at {reading.now + 1}"
        reading.on_warning(reading.faults.fault(where, message))
    return Running(start=running["start"], segments=tuple(segments))


def _check_chunks(
    reading: Reading, where: Location, running: _Entry, steps: Sequence[Step], malleability: Malleability | None
) -> bool:
    """Note what a running job states wrongly of its chunks; return whether all is right.

    Of a malleable job all chunks are stated, each on a share of its cores: that is what a plan changes. What another
    job holds is a fact, which need not be what it asked for; but the kinds of its chunks are those of its request.
    """
    allocations = [((*where, "allocation"), running["allocation"])] if "allocation" in running else []
    for index, segment in enumerate(running.get("segments", ())):
        allocations.append(((*where, "segments", index, "allocation"), segment["allocation"]))
    is_right = True

    def refuse(at: Location, message: str) -> None:
        nonlocal is_right
        reading.faults.add(at, message)
        is_right = False

    stands: dict[tuple[str, int], int | None] | None = None
    for place, (at, models) in enumerate(allocations):
        stated = {(held["node"], held["chunk"]): held["count"] for held in models if "chunk" in held}
        among = steps[place : place + 1] if len(allocations) == len(steps) else steps
        num_kinds = max(len(step.request.chunks) for step in among)
        for index, held in enumerate(models if stated else ()):
            if "chunk" not in held:
                refuse((*at, index), "Expected chunk and count as on its other nodes, or on none of them")
            elif held["chunk"] >= num_kinds:
                refuse(
                    (*at, index, "chunk"), f"Expected a kind of chunks from 0 to {num_kinds - 1}, got {held['chunk']}"
                )
            elif malleability is not None:
                _check_share((*at, index), held, steps[0].request, malleability, refuse)
        if malleability is None:
            continue
        for kind, chunk in enumerate(steps[0].request.chunks if stated and is_right else ()):
            placed = sum(held["count"] for held in models if held.get("chunk") == kind)
            if placed != chunk.count:
                refuse(at, f"Expected {chunk.count} chunks of kind {kind} in all, got {placed}")
        if stands is not None and stated != stands and is_right:
            refuse(at, "Expected the same chunks on the same nodes in all segments: only the share may change")
        stands = stated if stands is None else stands
    return is_right


def _check_share(
    at: Location, held: _Entry, request: Request, malleability: Malleability, refuse: Callable[[Location, str], None]
) -> None:
    """Refuse chunks of a malleable job that run on none of its shares."""
    chunk, count = held["chunk"], held["count"]
    asked, cores = request.chunks[chunk].resources.get("cores", 0), held["resources"].get("cores", 0)
    if share_of(malleability, cores, asked, count) is None:
        shares = ", ".join(map(str, malleability.shares[:10]))
        expected = f"Expected all {asked * count} cores or a share of them ({shares}), at least one per chunk"
        refuse((*at, "resources"), f"{expected}; got {cores}")


def _read_segments(
    reading: Reading, where: Location, running: _Entry, steps: Sequence[Step], malleability: Malleability | None
) -> list[Segment]:
    start = running["start"]
    if "allocation" in running:
        allocation = read_allocation(reading, (*where, "allocation"), running["allocation"])
        seconds = sum(step.walltime for step in steps)
        if malleability is not None:
            seconds = time_on(seconds, steps[0].request, malleability, allocation)
        return [Segment(start=start, end=start + seconds, allocation=allocation)]
    reading.segmented.add(where[:-1])
    segments: list[Segment] = []
    before = start
    for index, segment in enumerate(running["segments"]):
        at = (*where, "segments", index)
        start, end = segment["start"], segment["end"]
        if start != before:
            reading.faults.add((*at, "start"), f"Expected {before}, where the one before ends, got {start}")
        if end <= start:
            reading.faults.add((*at, "end"), f"Expected an end > {start}, got {end}")
        allocation = read_allocation(reading, (*at, "allocation"), segment["allocation"])
        segments.append(Segment(start=start, end=end, allocation=allocation))
        before = end
    return segments


class Requests:
    """How requests are written: as text where the text means the same again, else in parsed form. Mutable: a cache."""

    def __init__(self, countable: Collection[str]) -> None:
        self._countable = countable
        self._written: dict[tuple[Chunk, ...], Any] = {}

    def __getitem__(self, chunks: tuple[Chunk, ...]) -> Any:
        if chunks not in self._written:
            self._written[chunks] = self._write(chunks)
        return self._written[chunks]

    def _write(self, chunks: tuple[Chunk, ...]) -> Any:
        request = Request(chunks=chunks)
        try:
            text = format_request(request)
            if parse_request(text, countable=self._countable).request == request:
                return text
        except (ValueError, SyntaxFault):
            pass
        return [kind_of(Chunk).write(chunk, self) for chunk in chunks]


def _write_job(job: Job, requests: Requests) -> dict[str, Any]:
    is_rigid = not job.is_evolving and job.expand_limit == 1
    steps = [{"walltime": step.walltime, "request": requests[step.request.chunks]} for step in job.steps]
    return {
        "walltime": job.walltime if is_rigid else None,
        "request": steps[0]["request"] if is_rigid else None,
        "steps": None if is_rigid else steps,
        "place": written_place(job.steps[0].request),
        "alternatives": [_write_alternative(job, number, requests) for number in range(1, len(job.choices))] or None,
        "running": None if job.running is None else _write_running(job, job.running),
    }


def _write_alternative(job: Job, number: int, requests: Requests) -> dict[str, Any]:
    """Write an alternative; its place and licences where they are others than those of the job's own request."""
    one, own = job.alternatives[number - 1], job.steps[0]
    written: dict[str, Any] = {"walltime": one.walltime, "request": requests[one.request.chunks]}
    if one.cost:
        written["cost"] = one.cost
    if one.request.place != own.request.place:
        written["place"] = format_place(one.request.place)
    if job.licenses_of(number) != job.licenses:
        written["licenses"] = dict(job.licenses_of(number))
    return written


def _write_running(job: Job, running: Running) -> dict[str, Any]:
    """Write one allocation where it is held for as long as the job takes on it, else the segments."""
    last = running.segments[-1]
    seconds = job.walltime
    if job.malleability is not None:
        seconds = time_on(job.walltime, job.request, job.malleability, last.allocation)
    if len(running.segments) == 1 and last.end == running.start + seconds:
        return {"start": running.start, "allocation": kind_of(tuple[Placement, ...]).write(last.allocation, None)}
    return {"start": running.start, "segments": [kind_of(Segment).write(one, None) for one in running.segments]}


def written_place(request: Request) -> str | None:
    """Return the key ``place`` of a request, or None for the default."""
    return None if request.place == Place() else format_place(request.place)


class _Share(Number):
    """A share of the cores: more than 0, less than 1."""

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            expected = "Expected a share of the cores between 0 and 1 (the full share, 1, is not named)"
            return faults.add(at, f"{expected}, got {value:g}")
        return super().explain(value, at, faults)


def _running_segments() -> Listed:
    """Return the kind of the segments of a running job: of a plan's they are those in the bounds of a document."""
    keys = {"start": Time, "end": Time, "allocation": Annotated[tuple[Placement, ...], Entries(1)]}
    return Listed(object_of("RunningSegment", "A time during which the allocation does not change.", keys), 1)


def _alternatives() -> Listed:
    keys = {
        "walltime": Annotated[Duration, Key("Seconds")],
        "request": Request,
        "place": Annotated[Text | None, Key("Default: the place of the job")],
        "licenses": Annotated[Asks | None, Key("Default: the key of the job")],
        "cost": Annotated[Seconds | None, Key("Seconds of waiting that it costs to run so")],
    }
    return Listed(object_of("Alternative", "A walltime and a request with which a job can run.", keys), 1)


def _prefer() -> Object:
    keys = {
        "level": Annotated[Name, Key("The level of the topology")],
        "cost": Annotated[Seconds, Key("Seconds of waiting that it costs to run anywhere")],
    }
    return object_of("Prefer", "In one group of which level a job would rather be.", keys)


def _moldable() -> Object:
    count = Annotated[Count | None, Key()]
    figure = Annotated[float | None, Bounds(1, 1e9)]
    keys = {
        "sizes": Annotated[tuple[Count, ...] | None, Entries(1), Key("Numbers of chunks on which it can run")],
        "min": Annotated[count, Key("In place of sizes: the fewest chunks")],
        "max": Annotated[count, Key("The most chunks")],
        "model": Annotated[Literal["none", "amdahl", "downey", "table"], Key("The speed-up; none: the same walltime")],
        "serial": Annotated[float | None, Bounds(0, 1), Key("Of amdahl: the part that is serial")],
        "parallelism": Annotated[figure, Key("Of downey: A, the average parallelism")],
        "sigma": Annotated[float | None, Bounds(0, 1e9), Key("Of downey: the variance of the parallelism")],
        "speedups": Annotated[
            FrozenMap[Name, Annotated[float, Bounds(1, 1e9)]] | None,
            Key("Of table: by number of chunks, how many times as fast as on one"),
        ],
    }
    return object_of(
        "Moldable", "Other numbers of its chunks with which a job can run.", keys, Form(rule=_rule_of_moldable)
    )


FORMS[Job] = Form(
    instead={
        "steps": {
            "walltime": Annotated[Duration | None, Key("The requested duration (s)")],
            "request": Annotated[Request | None, Key(_CHUNKS, examples=("8:ncpus=2:mem=10g:ngpus=1",))],
            "steps": Annotated[
                tuple[Step, ...] | None, Entries(1), Key("An evolving job, in place of walltime and request")
            ],
            "place": Annotated[
                Text | None, Key("free, pack or scatter, then :excl or :shared", examples=("scatter:excl",))
            ],
        },
        "alternatives": {
            "alternatives": Annotated[
                Any | None, Written("alternatives"), Key("What it can run with instead of its own walltime and request")
            ],
            "moldable": Annotated[
                Any | None, Written("moldable"), Key("Alternatives in short: other numbers of its chunks")
            ],
            "prefer": Annotated[Any | None, Written("prefer"), Key("Alternatives in short: near each other, or not")],
        },
        "licenses_of_choices": {},
        "running": {"running": Running | None},
    },
    rule=_rule_of_jobs,
    read=read_job,
    write=_write_job,
)
FORMS[Running] = Form(
    instead={
        "segments": {
            "allocation": Annotated[
                tuple[Placement, ...] | None, Entries(1), Key("What it holds until start + walltime")
            ],
            "segments": Annotated[
                Any | None, Written("running segments"), Key("In place of allocation, where that has changed")
            ],
        }
    },
    rule=lambda running: (
        "Expected either allocation or segments" if ("allocation" in running) == ("segments" in running) else None
    ),
)
FORMS[Placement] = Form(
    rule=lambda held: (
        None if ("chunk" in held) == ("count" in held) else "Expected chunk and count together, or neither"
    )
)
FORMS[Malleability] = Form(read=_read_malleability)
FORMS[Preemptible] = Form(rule=_rule_of_preemptible)
FORMS[Chunk] = Form(
    rule=lambda chunk: (
        None if any(chunk["resources"].values()) else "Expected at least one unit of a countable resource, got none"
    )
)
NOTATIONS["running segments"] = _running_segments
NOTATIONS["alternatives"] = _alternatives
NOTATIONS["moldable"] = _moldable
NOTATIONS["prefer"] = _prefer
FORMS[Step] = Form(without=("cost",))
NOTATIONS["share"] = lambda: _Share(Bounds(above=0, below=1), is_whole=False)
NOTATIONS["share as a key"] = lambda: Spelt(kind_of(Name), None, lambda share, writing: repr(share))
NOTATIONS["indices"] = lambda: Spelt(
    kind_of(Text), lambda text, at, reading: reading.indices(at, text), lambda value, writing: format_indices(value)
)
NOTATIONS["asked amounts"] = lambda: Spelt(
    kind_of(Has), lambda value, at, reading: frozen_amounts(value), lambda value, writing: dict(value)
)
NOTATIONS[Request] = lambda: Either(kind_of(Text), Listed(kind_of(Chunk), 1))
