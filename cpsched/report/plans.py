"""A report on a plan: the Gantt chart, the use of the machine, how it was found, the waiting jobs, and what changed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cpsched.charts import Axis, Bars, Chart, Line, Table, Unit, duration, unit_text
from cpsched.domain import Instance, Plan, WaitingReason
from cpsched.metrics import jobs_by_id, summarise, usage_over_time
from cpsched.report.distributions import binning, box_chart, clock_times, ecdf_chart, line_table, step_points, use_chart
from cpsched.report.gantt import gantt_html, plan_sentence
from cpsched.report.report import Frame, Report, Section
from cpsched.report.run_groups import NO_QUEUE, by_queue
from cpsched.report.words import figures, finder_gains, finder_of, moment, value_text

#: Rows of a table of jobs that a page keeps; the documents have all.
_MOST_ROWS = 500
#: The reasons of the waiting room in words (``docs/formats.md``).
_REASONS = {
    WaitingReason.UNSATISFIABLE: "asks for what the machine does not have",
    WaitingReason.UNAVAILABLE: "nodes that it needs are drained, down or not for its queue",
    WaitingReason.WALLTIME: "its walltime is longer than any time that it may have",
    WaitingReason.TOO_LATE: "it cannot end, or start, by its latest second",
    WaitingReason.NOT_MAPPED: "its chunks fit one by one, but not together",
    WaitingReason.DEPENDENCY: "it waits for a job that has no end",
    WaitingReason.LIMIT: "a limit of its user or group",
    WaitingReason.FREE_POOL: "nodes are kept free",
    WaitingReason.RESERVATION: "its reservation could not be had",
    WaitingReason.NOT_STARTED: "it had not started when the record ends",
}
_WAIT = Axis(label="planned wait (logarithmic)", unit=Unit.SECONDS, is_log=True, floor=1.0)
#: Values that differ by more than this factor are on a logarithmic axis.
_MUCH = 4
#: Where the classes of moves end, in seconds.
_MOVES = (60, 600, 3600, 21600, 86400)


def plan_report(instance: Instance, plan: Plan, previous: Plan | None = None) -> Report:
    """Return a report on a plan.

    Raises `ValueError` if a job or a node of the plan is not in the instance.

    `instance`, `plan`: the plan, and the instance that it is of. `previous`: an earlier plan of these jobs, or of some
    of them, which the plan is compared with.
    """
    summary = summarise(instance, plan)
    gantt = gantt_html(instance, plan, is_embedded=True)
    sections = [Section(title="Gantt chart", frame=Frame(title="Gantt chart of the plan", html=gantt))]
    if previous is not None:
        sections.append(_change_section(instance, plan, previous))
    sections += [_use_section(instance, plan), *_wait_sections(instance, plan), *_search_sections(plan)]
    if plan.waiting_room:
        sections.append(_room_section(instance, plan))
    return Report(
        kind="Plan",
        name=instance.name,
        sentences=(plan_sentence(instance, summary), *_value_sentences(plan)),
        figures=tuple(figures(plan, summary)),
        sections=tuple(sections),
    )


def _value_sentences(plan: Plan) -> Iterator[str]:
    """Yield what the value of a plan means, and what is in the waiting room."""
    score = plan.objective
    words = f"Its value ({score.name}) is {value_text(score.value)}; less is better."
    if score.gap is not None and score.bound is not None:
        words += (
            f" No plan of these jobs is below {value_text(score.bound)}: it is proven to be at most {score.gap:.1%} "
            "from the optimum."
        )
    if score.value < score.planner:
        words += f" The first plan had {value_text(score.planner)}."
    yield words
    if plan.waiting_room:
        counts = Counter(str(job.reason) for job in plan.waiting_room)
        listed = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
        yield f"{len(plan.waiting_room):,} jobs have no start: {listed}."


def _time_axis(instance: Instance) -> Axis:
    if _is_dated(instance):
        return Axis(label="date", unit=Unit.DATE)
    return Axis(label="time from now on", unit=Unit.SECONDS)


def _is_dated(instance: Instance) -> bool:
    """Return whether the calendar has all times of a plan; the last century of it is left out."""
    try:
        return instance.local_time(instance.now + 100 * 366 * 86400) is not None
    except OverflowError:
        return False


def _at(instance: Instance, times: tuple[float, ...]) -> tuple[float, ...]:
    """Return times of the instance as coordinates of `_time_axis`."""
    is_dated = _is_dated(instance)
    return clock_times(times, instance.now, lambda time: instance.local_time(int(time)) if is_dated else None)


def _use_section(instance: Instance, plan: Plan) -> Section:
    capacity = instance.cluster.capacity
    axis, width = _time_axis(instance), 0
    lines: list[Line] = []
    rows: list[tuple[str, ...]] = []
    end = max((job.end for job in plan.jobs), default=instance.now + 1)
    for name, total in capacity.items():
        times, amounts = usage_over_time(instance, plan, name)
        x, y, width = step_points(times, amounts, instance.now, max(end, instance.now + 1))
        shares = tuple(value / total for value in y)
        lines.append(Line(name=name, x=_at(instance, x), y=shares, series=len(lines), is_step=True))
        seconds = np.diff(x)
        mean = float((np.array(shares[:-1]) * seconds).sum() / seconds.sum())
        rows.append((name, f"{total:,}", unit_text(Unit.SHARE, mean), unit_text(Unit.SHARE, max(shares))))
    chart = use_chart(
        "Use of the machine over time",
        axis,
        lines,
        f"The share of each resource that jobs hold; the dashed line is all that the machine has. {binning(width)}",
        Table(headings=("resource", "the machine has", "mean use", "most"), rows=tuple(rows)),
        line_table(axis, lines, Unit.SHARE, "Over time"),
    )
    return Section(title="Use of the machine", charts=(chart,) if lines else ())


def _wait_sections(instance: Instance, plan: Plan) -> Iterator[Section]:
    entries = jobs_by_id(instance)
    planned = [one for one in plan.jobs if entries[one.id].running is None]
    waits = np.array([max(0, one.start - entries[one.id].submit) for one in planned], dtype=np.float64)
    found = by_queue([entries[one.id].queue for one in planned], np.arange(len(planned)))
    groups = {name: waits[jobs] for name, jobs in found.items()}
    if not groups:
        return
    yield Section(
        title="Planned waits",
        text="A wait is from submission to the planned start; waits below a second are drawn at one second.",
        charts=(
            ecdf_chart("Planned waits, by queue", _WAIT, groups, by="queue", what="jobs"),
            box_chart("Planned waits by queue", "wait", _WAIT, groups, by="queue"),
        ),
    )


def _search_sections(plan: Plan) -> Iterator[Section]:
    charts = (_value_chart(plan),) if plan.incumbents else ()
    tables = list[Table]()
    if plan.incumbents:
        gains = finder_gains([plan.incumbents[0], *plan.incumbents])
        whole = sum(gain for _, gain in gains.values())
        finders = tuple(
            (name, f"{count:,}", unit_text(Unit.SHARE, gain / whole) if whole > 0 else "-")
            for name, (count, gain) in gains.items()
        )
        headings = ("by", "plans", "share of the gain")
        tables.append(Table(title="Who found better plans", headings=headings, rows=finders))
        rows = tuple((f"{one.at:.2f} s", value_text(one.value), one.by) for one in plan.incumbents)
        note = "" if len(rows) <= _MOST_ROWS else f"The last {_MOST_ROWS:,} of {len(rows):,}."
        headings = ("after", "value", "by")
        tables.append(
            Table(title="Better plans", headings=headings, rows=rows[-_MOST_ROWS:], words=frozenset({2}), note=note)
        )
    if plan.work:
        work = tuple((one.by, f"{one.seconds:.1f} s", one.what or "") for one in plan.work)
        tables.append(
            Table(title="Work", headings=("by", "seconds", "what it did"), rows=work, words=frozenset({0, 2}))
        )
    if plan.events:
        events = tuple((f"{event.at:.2f} s", event.by, event.what) for event in plan.events)
        tables.append(
            Table(title="What else happened", headings=("after", "by", "what"), rows=events, words=frozenset({1, 2}))
        )
    if charts or tables:
        yield Section(title="How the plan was found", charts=charts, tables=tuple(tables))


def _value_chart(plan: Plan) -> Chart:
    """Return the value of the best plan over the seconds of work, a symbol for each finder, and the bound."""
    found = plan.incumbents
    end = max(plan.engine.elapsed, found[-1].at)
    x, y = (*(one.at for one in found), end), (*(one.value for one in found), found[-1].value)
    layers = [Line(name="best plan", x=x, y=y, is_step=True, series=0)]
    for number, name in enumerate(dict.fromkeys(map(finder_of, found)), start=1):
        points = [one for one in found if finder_of(one) == name]
        layers.append(
            Line(
                name=f"found by {name}",
                x=tuple(one.at for one in points),
                y=tuple(one.value for one in points),
                series=number,
                is_joined=False,
                has_marks=True,
                texts=tuple(f"{one.by}: {value_text(one.value)} after {one.at:.2f} s" for one in points),
            )
        )
    bound = plan.objective.bound
    if bound is not None:
        name = f"proven bound {value_text(bound)}"
        layers.append(Line(name=name, x=(0.0, end), y=(bound, bound), series=len(layers)))
    lowest = min(y) if bound is None else min(*y, bound)
    # the first plan may be many times as bad as all others
    is_log = lowest > 0 and max(y) > _MUCH * lowest
    return Chart(
        title=f"Value of the best plan ({plan.objective.name}) while it was searched for",
        x=Axis(label="time since the engine began", unit=Unit.SECONDS, has_zero=True),
        y=Axis(label=plan.objective.name + (" (logarithmic)" if is_log else ""), is_log=is_log),
        layers=tuple(layers),
        about="Each step down is a better plan, its symbol says who found it. No plan is below the proven bound: what "
        "is left between the two is all that could still be gained.",
        is_wide=True,
    )


def _room_section(instance: Instance, plan: Plan) -> Section:
    counts = Counter(job.reason for job in plan.waiting_room)
    words = tuple((str(reason), f"{count:,}", _REASONS[reason]) for reason, count in counts.most_common())
    chart = _count_chart(
        "Jobs without a start, by reason",
        {str(reason): count for reason, count in counts.most_common()},
        "Why these jobs cannot be planned.",
        Table(headings=("reason", "jobs", "meaning"), rows=words, words=frozenset({0, 2})),
    )
    entries = jobs_by_id(instance)
    rows = tuple(
        (job.id, entries[job.id].user or "", entries[job.id].queue or NO_QUEUE, str(job.reason), job.detail)
        for job in plan.waiting_room[:_MOST_ROWS]
    )
    more = len(plan.waiting_room) - len(rows)
    table = Table(
        title="Waiting room",
        headings=("job", "user", "queue", "reason", "in words"),
        rows=rows,
        words=frozenset(range(5)),
        note=f"{more:,} more are in the plan's document." if more else "",
    )
    return Section(title="Waiting room", charts=(chart,), tables=(table,))


def _count_chart(title: str, counts: Mapping[str, int], about: str, table: Table) -> Chart:
    places = tuple(map(float, range(len(counts))))
    return Chart(
        title=title,
        x=Axis(label="jobs", has_zero=True),
        y=Axis(label="", names=tuple(counts)),
        layers=(Bars(name="jobs", at=places, values=tuple(map(float, counts.values()))),),
        about=about,
        tables=(table,),
    )


def _change_section(instance: Instance, plan: Plan, previous: Plan) -> Section:
    entries = jobs_by_id(instance)
    before = {job.id: job for job in previous.jobs}
    after = {job.id: job for job in plan.jobs}
    waiting_before = {job.id for job in previous.waiting_room}
    waiting_after = {job.id for job in plan.waiting_room}
    shared = [id for id in after if id in before and entries[id].running is None]
    moves = np.array([after[id].start - before[id].start for id in shared], dtype=np.int64)
    counts = {
        "planned to start earlier": int((moves < 0).sum()),
        "unchanged": int((moves == 0).sum()),
        "planned to start later": int((moves > 0).sum()),
        "now with a start, before without": len(waiting_before & set(after)),
        "now without a start, before with one": len(waiting_after & set(before)),
        "new": len((set(after) | waiting_after) - set(before) - waiting_before),
        "gone": len((set(before) | waiting_before) - set(after) - waiting_after),
    }
    order = sorted(range(len(shared)), key=lambda k: (-abs(int(moves[k])), shared[k]))
    largest = [(shared[k], int(moves[k])) for k in order[:_MOST_ROWS] if moves[k]]
    rows = tuple(
        (
            id,
            entries[id].queue or NO_QUEUE,
            f"{duration(abs(move))} {'later' if move > 0 else 'earlier'}",
            moment(instance, before[id].start),
            moment(instance, after[id].start),
        )
        for id, move in largest
    )
    moved = counts["planned to start earlier"] + counts["planned to start later"]
    in_all = tuple((words, f"{count:,}") for words, count in counts.items())
    tables = [Table(title="Jobs", headings=("jobs that are", "count"), rows=in_all)]
    if rows:
        tables.append(
            Table(
                title="Moved jobs, the largest moves first",
                headings=("job", "queue", "moved by", "start before", "start now"),
                rows=rows,
                words=frozenset(range(5)),
                note=f"{moved - len(rows):,} more have moved." if moved > len(rows) else "",
            )
        )
    value = f"The value was {value_text(previous.objective.value)} and is {value_text(plan.objective.value)}"
    is_other = plan.now != previous.now or set(after) | waiting_after != set(before) | waiting_before
    value += " (other jobs, or another moment: not comparable)." if is_other else "."
    charts = (_move_chart(moves),) if moves.size else ()
    return Section(title="What changed against the previous plan", text=value, charts=charts, tables=tuple(tables))


def _move_chart(moves: NDArray[np.int64]) -> Chart:
    ends = [duration(end) for end in _MOVES]
    spans = [f"up to {ends[0]}", *(f"{low} to {high}" for low, high in pairwise(ends)), f"more than {ends[-1]}"]
    names = [*(f"{span} earlier" for span in reversed(spans)), "unchanged", *(f"{span} later" for span in spans)]
    places = len(spans) + np.sign(moves) * (1 + np.searchsorted(_MOVES, np.abs(moves)))
    numbers = np.bincount(np.where(moves == 0, len(spans), places), minlength=len(names)).tolist()
    counts = dict(zip(names, numbers, strict=True))
    table = Table(headings=("start", "jobs"), rows=tuple((name, f"{count:,}") for name, count in counts.items()))
    about = "Above the middle: jobs that are planned to start earlier than before."
    return _count_chart("How far planned starts moved", counts, about, table)
