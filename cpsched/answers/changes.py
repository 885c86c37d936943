"""What would let a job start earlier: each change is tried on the plan before it is named."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cpsched.answers.explanation import Change, ChangeKind
from cpsched.answers.inquiry import Inquiry
from cpsched.answers.world import PlanView
from cpsched.domain import Amounts, Arrangement, Chunk, FrozenMap, Job, Place, Request
from cpsched.formats import format_request
from cpsched.report import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dial:
    """A number of a job that could be smaller."""

    kind: ChangeKind
    #: The number as it is; the least one that is tried.
    asked: int
    least: int
    #: The job with another number, and that change in words.
    with_number: Callable[[int], Job]
    words: Callable[[int], str]


def changes_for(world: PlanView, job: Job, before: int | None) -> tuple[Change, ...]:
    """Return the changes, one at a time, with which a job would start before a second; None: with which it has a start.

    A smaller number (chunks, cores, seconds, licences) is the largest one with which it starts as early as with the
    smallest one, by its own request. `world`: the plan, in which the job holds nothing. `job`, `before`: the job as the
    instance states it, and its start in the plan.
    """
    own, *others = job.choices
    found = [_turned(world, dial, before) for dial in _dials(own)]
    for number, one in enumerate(others, start=1):
        words = f"by alternative {number}, {format_request(one.request)} for {duration(one.walltime)}"
        found.append(_tried(world, ChangeKind.ALTERNATIVE, words, one, before))
    found += [_tried(world, kind, words, changed, before) for kind, words, changed in _others(job, own)]
    if world.all_up is not None:
        mine = world.all_up.occupation.place_of.get(job.id)
        with world.all_up.occupation.without([] if mine is None else [mine]):
            words = "if the nodes that are drained or down were up"
            found.append(_tried(world.all_up, ChangeKind.NODES, words, job, before))
    return tuple(change for change in found if change is not None)


def _start(world: PlanView, job: Job, before: int | None) -> int | None:
    """Return the first start of a job beside all others, before a second; None: there is none."""
    return Inquiry(world.hosting(job), job).free_start(None if before is None else before - 1)


def _tried(world: PlanView, kind: ChangeKind, words: str, changed: Job, before: int | None) -> Change | None:
    """Return a change if the changed job starts early enough."""
    start = _start(world, changed, before)
    if start is None:
        return None
    return Change(kind=kind, detail=words, start=start)


def _turned(world: PlanView, dial: _Dial, before: int | None) -> Change | None:
    """Return the largest number with which a job starts as early as with the least one, if that is early enough."""
    if dial.asked <= dial.least:
        return None
    first = _start(world, dial.with_number(dial.least), before)
    if first is None:
        return None
    bound = None if before is None else first + 1  # without a start in the plan any start is enough
    low, high, early = dial.least, dial.asked, first
    while high - low > 1:
        middle = (low + high) // 2
        start = _start(world, dial.with_number(middle), bound)
        if start is None:
            high = middle
        else:
            low, early = middle, start
    return Change(kind=dial.kind, detail=dial.words(low), start=early, amount=low)


def _dials(job: Job) -> Iterator[_Dial]:
    """Yield the numbers of a job that could be smaller."""
    if not job.is_evolving:
        for kind in range(len(job.request.chunks)):
            yield from _dials_of_chunks(job, kind)
        yield _Dial(
            kind=ChangeKind.WALLTIME,
            asked=job.walltime,
            least=1,
            with_number=lambda seconds: replace(job, steps=(replace(job.steps[0], walltime=seconds),)),
            words=lambda seconds: f"with a walltime of at most {seconds} s ({duration(seconds)})",
        )
    for name, amount in job.licenses.items():
        yield _license_dial(job, name, amount)


def _dials_of_chunks(job: Job, kind: int) -> Iterator[_Dial]:
    """Yield the number of chunks of a kind, and that of the cores in each."""
    chunk = job.request.chunks[kind]
    cores, of_kind = chunk.resources.get("cores", 0), f" of kind {kind}" if len(job.request.chunks) > 1 else ""

    def with_chunk(other: Chunk) -> Job:
        chunks = (*job.request.chunks[:kind], other, *job.request.chunks[kind + 1 :])
        return _with_requests(job, lambda request: replace(request, chunks=chunks))

    yield _Dial(
        kind=ChangeKind.CHUNKS,
        asked=chunk.count,
        least=1,
        with_number=lambda count: with_chunk(replace(chunk, count=count)),
        words=lambda count: f"with {count} of its {chunk.count} chunks{of_kind}",
    )
    yield _Dial(
        kind=ChangeKind.CORES,
        asked=cores,
        least=1,
        with_number=lambda count: with_chunk(replace(chunk, resources=_changed(chunk.resources, "cores", count))),
        words=lambda count: f"with {count} of its {cores} cores in each chunk{of_kind}",
    )


def _license_dial(job: Job, name: str, amount: int) -> _Dial:
    return _Dial(
        kind=ChangeKind.LICENSE,
        asked=amount,
        least=0,
        with_number=lambda count: replace(job, licenses=_changed(job.licenses, name, count)),
        words=lambda count: f"with {count} of its {amount} licences {name}",
    )


def _changed(amounts: Amounts, name: str, amount: int) -> Amounts:
    """Return amounts with another one of a name; nothing of it is left out."""
    return Amounts({key: value for key, value in {**amounts, name: amount}.items() if value})


def _others(job: Job, own: Job) -> Iterator[tuple[ChangeKind, str, Job]]:
    """Yield what else of a job could be changed, in words, and the changed job; `own`: by its own request."""
    if job.after:
        names = ", ".join(dict.fromkeys(dependency.job for dependency in job.after))
        yield ChangeKind.DEPENDENCY, f"without its dependency on {names}", replace(job, after=())
    for name, changed in (
        ("start_at", replace(job, start_at=None)),
        ("not_before", replace(job, not_before=None)),
        ("deadline", replace(job, deadline=None)),
    ):
        if changed != job:
            yield ChangeKind.TIME, f"without its {name}", changed
    place = own.steps[0].request.place
    if place.exclusive:
        shared = replace(place, exclusive=False)
        yield ChangeKind.PLACE, "if it shared its nodes with other jobs", _with_place(own, shared)
    if place.arrangement is not Arrangement.FREE:
        free = replace(place, arrangement=Arrangement.FREE)
        yield ChangeKind.PLACE, f"with place=free in place of {place.arrangement}", _with_place(own, free)
    if place.within is not None:
        far = replace(place, within=None, segment=None, spread=None)
        yield ChangeKind.PLACE, f"with its chunks anywhere, not within {place.within}", _with_place(own, far)
    wanted = dict.fromkeys(
        f"{name}={value}" for step in own.steps for chunk in step.request.chunks for name, value in chunk.where.items()
    )
    if wanted:

        def on_any_node(request: Request) -> Request:
            return replace(request, chunks=tuple(replace(chunk, where=FrozenMap()) for chunk in request.chunks))

        yield ChangeKind.PROPERTY, f"on nodes without {', '.join(wanted)}", _with_requests(own, on_any_node)


def _with_place(job: Job, place: Place) -> Job:
    return _with_requests(job, lambda request: replace(request, place=place))


def _with_requests(job: Job, change: Callable[[Request], Request]) -> Job:
    return replace(job, steps=tuple(replace(step, request=change(step.request)) for step in job.steps))
