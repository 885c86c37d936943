"""Figures and names in words, for a page and for a terminal."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from cpsched.charts import duration
from cpsched.domain import Amounts, Incumbent, Instance, Job, Plan, PlannedJob, Request, Score, Segment
from cpsched.formats import format_request
from cpsched.metrics import Delays, Summary, honest_gap


def moment(instance: Instance, time: int) -> str:
    """Return a time of the instance's clock: of the calendar where there is an epoch, else as ``now + 2 h``."""
    try:
        if (local := instance.local_time(time)) is not None:
            return f"{local:%Y-%m-%d %H:%M:%S}"
    except OverflowError:  # beyond the calendar's last year: as without a calendar
        pass
    return f"now {'-' if time < instance.now else '+'} {duration(abs(time - instance.now))}"


def utc_offset(instance: Instance) -> int | None:
    """Return the seconds by which the site's clocks are ahead of UTC now; None: times have no date."""
    try:
        local = instance.local_time(instance.now)
    except OverflowError:  # beyond the calendar's last year
        local = instance.epoch
    offset = None if local is None else local.utcoffset()
    return None if offset is None else round(offset.total_seconds())


def request_text(job: Job) -> str:
    """Return the request of a job, step by step."""
    return " → ".join(_chunks_text(step.request) for step in job.steps)


def _chunks_text(request: Request) -> str:
    """Return a request in the chunk syntax or, with names that it cannot hold, in the same order without its rules."""
    try:
        return format_request(request)
    except ValueError:
        asked = ({**one.resources, **one.where} for one in request.chunks)
        texts = (", ".join(f"{name}={value}" for name, value in one.items()) for one in asked)
        return " + ".join(f"{one.count} x ({text})" for one, text in zip(request.chunks, texts, strict=True))


def change_description(instance: Instance, job: Job, planned: PlannedJob, cut: Sequence[PlannedJob] = ()) -> str:
    """Return how a job changes while it runs, or what was chosen for it: ``3 steps``, ``runs at 50 % until …, then at
    100 %``, ``alternative 2 of 3``, ``cut short at …``; else nothing. `cut`: its runs that were cut short.
    """
    ends = ", ".join(moment(instance, run.end) for run in cut)
    return "; ".join(filter(None, (f"cut short at {ends}" if cut else "", _change(instance, job, planned))))


def _change(instance: Instance, job: Job, planned: PlannedJob) -> str:
    if job.resizable is not None and len(planned.segments) > 1:
        return "changes its size: " + ", then ".join(
            size_text(segment) + (f" until {moment(instance, segment.end)}" if segment.end < planned.end else "")
            for segment in planned.segments
        )
    if planned.alternative:
        own = f"{request_text(job.choices[0])} for {duration(job.walltime)}"
        cost = job.step_of(planned.alternative).cost
        words = f"alternative {planned.alternative} of {len(job.alternatives)}" + f", which costs {cost} s" * (cost > 0)
        return f"{words}; by itself it asks for {own}"
    if job.is_evolving:
        held = planned.end - planned.start - job.walltime
        return f"{len(job.steps)} steps" + (f", held {duration(held)} longer than asked for" if held > 0 else "")
    shares = [share_text(job, segment) for segment in planned.segments]
    if job.malleability is None or not any(shares):
        return ""
    parts = [
        f"at {share or '100 %'}" + (f" until {moment(instance, segment.end)}" if segment.end < planned.end else "")
        for share, segment in zip(shares, planned.segments, strict=True)
    ]
    return "runs " + ", then ".join(parts)


def size_text(segment: Segment) -> str:
    """Return how many chunks a job has in a segment, as ``4 chunks``."""
    count = sum(held.count or 0 for held in segment.allocation)
    return f"{count} chunk{'s' * (count != 1)}"


def share_text(job: Job, segment: Segment) -> str:
    """Return the share of its cores on which a malleable job runs, as ``50 %``; nothing where it has all of them."""
    if job.malleability is None:
        return ""
    asked = job.request.totals.get("cores", 0)
    held = sum(placement.resources.get("cores", 0) for placement in segment.allocation)
    return f"{100 * held / asked:.3g} %" if held < asked else ""


def value_text(value: float) -> str:
    """Return an objective's value with as many digits as are useful to read."""
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,.2f}"


def _delays(delays: Delays) -> str:
    late = f"{delays.late:,} of {delays.count:,}"
    return f"{late}, {duration(delays.total)} in all, at most {duration(delays.max)}" if delays.late else late


def _improvement(score: Score) -> list[tuple[str, str]]:
    """Return the rows about the planner's plan, if the answer is a better one."""
    if score.value >= score.planner:
        return []
    rows = [("planner's plan", value_text(score.planner))]
    can_be = score.planner - score.suffered
    # running jobs that end earlier, and held steps that lower a slowdown, can make a value less than what was suffered
    if can_be <= 0 or score.value < score.suffered:
        return rows
    return [*rows, ("avoidable cost saved", f"{(score.planner - score.value) / can_be:.1%}")]


def finder_of(incumbent: Incumbent) -> str:
    """Return the solver that found a plan; the name of a lane ends at its colon."""
    return incumbent.by.partition(":")[0]


def finder_gains(incumbents: Iterable[Incumbent]) -> dict[str, tuple[int, float]]:
    """Return how many plans each solver found that were better than the one before, and what they gained."""
    gains: dict[str, tuple[int, float]] = {}
    for before, found in pairwise(incumbents):
        count, gain = gains.get(finder_of(found), (0, 0.0))
        is_comparable = before.planned == found.planned
        gains[finder_of(found)] = count + 1, gain + (max(0.0, before.value - found.value) if is_comparable else 0.0)
    return gains


def _finders(plan: Plan) -> list[tuple[str, str]]:
    """Return the rows about the finders of better plans, with their shares of the gain, and about other work."""
    gains = finder_gains(plan.incumbents)
    whole = sum(gain for _, gain in gains.values())
    shares = [
        f"{name} {count:,}" + (f" ({gain / whole:.1%} of the gain)" if whole > 0 else "")
        for name, (count, gain) in gains.items()
    ]
    work = [f"{one.by} {one.seconds:.1f} s" + ("" if one.what is None else f" ({one.what})") for one in plan.work]
    return [
        *([("better plans by", ", ".join(shares))] if shares else []),
        *([("work", ", ".join(work))] if work else []),
    ]


def figures(plan: Plan, summary: Summary) -> list[tuple[str, str]]:
    """Return the figures of a plan as (label, value), all but the use of its resources."""
    score, engine = plan.objective, plan.engine
    rows = [
        ("jobs planned", f"{summary.planned:,}"),
        ("running", f"{summary.running:,}"),
        ("waiting room", f"{summary.waiting_room:,}"),
        (score.name if not score.then else score.name.partition(" > ")[0], value_text(score.value)),
        ("already suffered", value_text(score.suffered)),
        *_improvement(score),
    ]
    if score.bound is not None:
        rows.append(("bound", value_text(score.bound)))
    elif not plan.record:
        rows.append(("bound", "no useful bound was proven in this time"))
    # one figure: without the waiting before now, if that is less than the value
    open_part = score.gap if (honest := honest_gap(score)) is None else honest
    if open_part is not None:
        rows.append(("gap", f"{open_part:.2%}"))
    if score.proof is not None:
        rows.append(("proof", score.proof))
    for aim in score.then:  # no gap: of its value, the part that was suffered is not known
        least = "" if aim.bound is None else f", at least {value_text(aim.bound)}"
        rows.append((f"then {aim.name}", value_text(aim.value) + least))
    rows.append(("late jobs", f"{summary.late:,}"))
    if summary.overdue is not None:
        rows.append(("beyond max_wait", _delays(summary.overdue)))
    if summary.postponed is not None:
        price = f", price {value_text(summary.postponed_price)}" if summary.postponed.late else ""
        rows.append(("promised starts missed", _delays(summary.postponed) + price))
    return [
        *rows,
        ("makespan", duration(summary.makespan)),
        *_finders(plan),
        ("engine", f"{engine.name} {engine.version}, {engine.stopped}"),
        ("time", f"{engine.elapsed:.2f} s of {engine.budget:g} s"),
    ]


def basis_of(resources: Amounts) -> str | None:
    """Return the resource by whose share jobs are stacked on a node: ``cores`` or, without any, the first it has."""
    present = [name for name, amount in resources.items() if amount]
    return "cores" if "cores" in present else next(iter(present), None)
