"""A plan as a notebook shows it: its summary, and a small Gantt chart, a row for each node."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpsched.domain.plan import Plan


#: Pixels: of the chart and of one row.
_WIDTH, _ROW = 640, 14
#: A chart has rows for so many nodes and at most so many bars: the page of ``cpsched show --html`` has all.
_MOST_NODES, _MOST_BARS = 24, 2000
#: Fills that the colour-blind can tell apart (Okabe and Ito), by turns.
_FILLS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")


def plan_html(plan: Plan) -> str:
    """Return a plan in HTML; all names in it are escaped."""
    score = plan.objective
    figures = {
        "jobs": f"{len(plan.jobs):,}",
        "waiting room": f"{len(plan.waiting_room):,}",
        score.name: f"{score.value:,.6g}",
        "bound": "none" if score.bound is None else f"{score.bound:,.6g}",
        "gap": "unknown" if score.gap is None else f"{score.gap:.1%}",
        "engine": f"{plan.engine.name}, {plan.engine.elapsed:.1f} s, {plan.engine.stopped}",
    }
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in figures.items())
    return f"<div><b>{escape(plan.instance)}</b><table>{cells}</table>{_chart(plan)}</div>"


def _chart(plan: Plan) -> str:
    """Draw the jobs of the first nodes as bars; a tooltip names each."""
    nodes = tuple(dict.fromkeys(node for job in plan.jobs for node in job.nodes))
    begin = min((job.start for job in plan.jobs), default=plan.now)
    span = max((job.end for job in plan.jobs), default=plan.now) - begin
    if not nodes or span <= 0:
        return ""
    rows = {node: row for row, node in enumerate(nodes[:_MOST_NODES])}
    bars = [bar for bar, _ in zip(_bars(plan, rows, begin, _WIDTH / span), range(_MOST_BARS), strict=False)]
    labels = [
        f'<text x="{_WIDTH + 4}" y="{row * _ROW + 10}" font-size="9" fill="currentColor">{escape(node)}</text>'
        for node, row in rows.items()
    ]
    more = f"<p>The first {len(rows)} of {len(nodes)} nodes.</p>" if len(rows) < len(nodes) else ""
    drawn = "".join(bars + labels)
    return f'<svg width="{_WIDTH + 120}" height="{len(rows) * _ROW}" role="img">{drawn}</svg>{more}'


def _bars(plan: Plan, rows: dict[str, int], begin: int, scale: float) -> Iterator[str]:
    """Yield a bar for each job, segment and node."""
    for number, job in enumerate(plan.jobs):
        for segment in job.segments:
            for node in dict.fromkeys(place.node for place in segment.allocation):
                if node in rows:
                    x, width = (segment.start - begin) * scale, max((segment.end - segment.start) * scale, 0.5)
                    yield (
                        f'<rect x="{x:.1f}" y="{rows[node] * _ROW + 1}" width="{width:.1f}" height="{_ROW - 2}" '
                        f'fill="{_FILLS[number % len(_FILLS)]}" fill-opacity="0.7" stroke="#444" stroke-width="0.3">'
                        f"<title>{escape(job.id)}: {job.start} to {job.end} s</title></rect>"
                    )
