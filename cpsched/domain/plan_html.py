"""A plan as a notebook shows it: its summary, and a small Gantt chart, a row for each node."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from cpsched.text import natural

if TYPE_CHECKING:
    from cpsched.domain.plan import Plan


#: Pixels: of the chart and of one row.
_WIDTH, _ROW = 640, 14
#: A chart has rows for so many nodes and at most so many bars: the page of ``cpsched show --html`` has all.
_MOST_NODES, _MOST_BARS = 24, 2000
#: Seconds between labels of the axis, the most of which there are, and the units in which they are said.
_STEPS = (1, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800, 2_419_200)
_MOST_TICKS = 8
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
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
    """Draw the jobs of the first nodes, by their names, as bars over a time axis; a tooltip names each."""
    nodes = sorted({node for job in plan.jobs for node in job.nodes}, key=natural)
    begin = min((job.start for job in plan.jobs), default=plan.now)
    span = max((job.end for job in plan.jobs), default=plan.now) - begin
    if not nodes or span <= 0:
        return ""
    rows, scale = {node: row for row, node in enumerate(nodes[:_MOST_NODES])}, _WIDTH / span
    bottom = len(rows) * _ROW
    bars = [bar for bar, _ in zip(_bars(plan, rows, begin, scale), range(_MOST_BARS), strict=False)]
    labels = [_text(_WIDTH + 4, row * _ROW + 10, node) for node, row in rows.items()]
    now = (plan.now - begin) * scale
    line = f'<line x1="{now:.1f}" x2="{now:.1f}" y1="0" y2="{bottom}" stroke="currentColor" stroke-dasharray="3 2"/>'
    axis = [_text(begin_of, bottom + 12, words) for begin_of, words in _ticks(plan.now, begin, span)]
    more = f"The first {len(rows)} of {len(nodes)} nodes. " if len(rows) < len(nodes) else ""
    legend = f"<p>{more}Each bar is a job on a node; point at it for its name. The dashed line is now.</p>"
    drawn = "".join([*bars, line, *labels, *axis])
    return f'<svg width="{_WIDTH + 120}" height="{bottom + 16}" role="img">{drawn}</svg>{legend}'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="9" fill="currentColor">{escape(words)}</text>'


def _ticks(now: int, begin: int, span: int) -> Iterator[tuple[float, str]]:
    """Yield where the axis is labelled, in pixels, and with what: whole steps before and after now."""
    step = next((step for step in _STEPS if span <= _MOST_TICKS * step), span)
    unit, name = next((unit, name) for unit, name in _UNITS if step % unit == 0)
    for count in range(-((now - begin) // step), (begin + span - now) // step + 1):
        at = (now + count * step - begin) * _WIDTH / span
        yield at, f"{count * step // unit:+,} {name}" if count else "now"


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
