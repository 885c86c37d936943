"""The dependencies behind a plan as a table for a terminal, and as a page: a row for each job, an arrow for a wait."""

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from cpsched.arguments import at_the_door
from cpsched.charts import duration, shortened
from cpsched.domain import Instance, Plan
from cpsched.metrics import WorkflowJob, dependency_graph, workflow_of
from cpsched.report.page_parts import as_html, asset, filled, source_of
from cpsched.report.tables import grid
from cpsched.report.words import moment

#: The most jobs that a page draws; a terminal has all.
MOST_DRAWN = 1000
#: Pixels: of the names, of the time, and of a row and its bar.
_NAMES, _TIME, _ROW, _BAR = 220, 900, 22, 14
#: The least pixels of a bar.
_LEAST = 2
#: The classes of jobs and arrows: not critical, critical.
_KINDS = "wait", "critical"


def workflow_table(instance: Instance, plan: Plan) -> Table:
    """Return one row for each job that waits for others or is waited for; an asterisk marks the critical path."""

    def row(one: WorkflowJob) -> tuple[str, ...]:
        start = "no start" if one.start is None else moment(instance, one.start)
        end = "" if one.end is None else moment(instance, one.end)
        slack = "" if one.slack is None else duration(one.slack)
        return "*" if one.is_critical else "", one.id, start, end, slack, ", ".join(one.after)

    headings = ("", "id", "start", "end", "slack", "waits for")
    return grid(f"{plan.instance}: dependencies", headings, map(row, workflow_of(instance, plan)), right={4})


@at_the_door
def workflow_html(instance: Instance, plan: Plan) -> str:
    """Return a self-contained HTML page of the dependencies behind a plan, without scripts.

    A bar is a job in the plan, an arrow leads from a job to one that waits for it, and the critical path is marked. The
    first `MOST_DRAWN` jobs are drawn.
    """
    rows = workflow_of(instance, plan)
    style, drawn = asset("workflow.css"), rows[:MOST_DRAWN]
    said = f"{len(rows):,} jobs wait for others or are waited for"
    said += f", the first {len(drawn):,} are drawn." if len(drawn) < len(rows) else "."
    parts = {
        "POLICY": f"default-src 'none'; style-src {source_of(style)}; base-uri 'none'; form-action 'none'",
        "TITLE": as_html(f"{plan.instance}: dependencies"),
        "STYLE": style,
        "NAME": as_html(plan.instance),
        "SAID": as_html(said),
        "DRAWING": "".join(_drawing(instance, drawn)),
    }
    return filled("workflow.html", parts)


def _drawing(instance: Instance, rows: Sequence[WorkflowJob]) -> Iterator[str]:
    times = [second for one in rows for second in (one.start, one.end) if second is not None]
    first, last = min(times, default=instance.now), max(times, default=instance.now)
    scale = _TIME / max(1, last - first)
    width, height = _NAMES + _TIME + 20, _ROW * len(rows) + 10
    yield f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Jobs over time, with arrows">'
    yield '<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" '
    yield 'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L6 3L0 6z"/></marker></defs>'

    def at(second: int) -> float:
        return round(_NAMES + (second - first) * scale, 1)

    for number, one in enumerate(rows):
        top = _ROW * number + 5
        yield f'<g class="{_KINDS[one.is_critical]}"><title>{as_html(_words(instance, one))}</title>'
        yield f'<text x="{_NAMES - 8}" y="{top + 11}" text-anchor="end">{as_html(shortened(one.id, 30))}</text>'
        if one.start is not None and one.end is not None:
            length = max(_LEAST, round((one.end - one.start) * scale, 1))
            yield f'<rect x="{at(one.start)}" y="{top}" width="{length}" height="{_BAR}" rx="2"/>'
        yield "</g>"
    yield from _arrows(instance, rows, at)
    yield "</svg>"


def _arrows(instance: Instance, rows: Sequence[WorkflowJob], at: Callable[[int], float]) -> Iterator[str]:
    """Yield an arrow for each wait, with a point between several jobs and several others; `at` places a second.

    One to a critical job is critical too if that job starts as soon as it lets it.
    """
    spots = {
        one.id: (one.start, one.end, _ROW * row + 12, one.is_critical)
        for row, one in enumerate(rows)
        if one.start is not None and one.end is not None
    }
    graph = dependency_graph(instance)
    for event in [node for node in graph if isinstance(node, tuple)]:
        before = [spots[name] for name in graph.predecessors(event) if name in spots]
        seconds = [end if event[1] else start for start, end, _, _ in before]
        last = max(seconds, default=instance.now)
        after = [
            (at(spots[name][0]), spots[name][2], spots[name][3] and last + edge["seconds"] == spots[name][0])
            for _, name, edge in graph.out_edges(event, data=True)
            if name in spots
        ]
        binds = any(critical for _, _, critical in after)
        sources = [(at(own), one[2], binds and own == last) for own, one in zip(seconds, before, strict=True)]
        if len(before) > 1 and len(after) > 1:
            point = max(x for x, _, _ in sources), max(y for _, y, _ in sources) + _ROW // 2
            for x, y, critical in sources:
                yield f'<path class="{_KINDS[critical]}" d="M{x} {y}H{point[0]}V{point[1]}"/>'
            sources = [(*point, binds)]
        for x, y, critical in sources:
            for start, row, also in after:
                yield f'<path class="{_KINDS[critical and also]}" marker-end="url(#tip)" d="M{x} {y}V{row}H{start}"/>'


def _words(instance: Instance, one: WorkflowJob) -> str:
    """Return a job in one line."""
    if one.start is None or one.end is None or one.slack is None:
        return f"{one.id}: no start"
    slack = "on the critical path" if one.is_critical else f"slack {duration(one.slack)}"
    waits = f"; waits for {', '.join(one.after)}" if one.after else ""
    return f"{one.id}: {moment(instance, one.start)} to {moment(instance, one.end)}, {slack}{waits}"
