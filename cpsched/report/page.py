"""A report as one HTML file that opens offline: texts and tables are HTML, charts are drawn by the plotly.js in it.

The page loads nothing: its content security policy admits only the scripts and styles that it carries, by their hashes,
so that not even a flaw in the escaping could run a name as code. Without scripts all numbers are there as tables.
"""

import html
from collections.abc import Iterator

from cpsched.charts import COLOURS, DARK_COLOURS, Box, Chart, Line, Table, plotly_figure, plotly_script
from cpsched.report.gantt import gantt_assets
from cpsched.report.page_parts import as_html, asset, embedded, filled, source_of
from cpsched.report.report import Report, Section

#: Pixels: of a chart, around the rows of names, and of one such row (and of each further series in it).
_HEIGHT, _AROUND, _ROW, _SERIES = 330, 92, 30, 9
#: Tables of more rows have a height of their own.
_MANY = 30
#: A figure of the top with a longer text has a line of its own.
_SHORT = 48


def report_page(report: Report) -> str:
    """Return a report as a self-contained HTML page. Raises `ReportError` if plotly is not installed."""
    style, script, plotly = asset("page.css"), asset("page.js"), plotly_script()
    scripts = [plotly, script, *([gantt_assets()[1]] if any(section.frame for section in report.sections) else [])]
    # plotly.js styles what it draws, and shows heat maps as pictures; a style can neither run code nor load anything
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {' '.join(map(source_of, scripts))}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    figures = {
        f"chart-{place}-{number}": _drawing(chart)
        for place, section in enumerate(report.sections)
        for number, chart in enumerate(section.charts)
    }
    links = (
        f'<li><a href="#section-{place}">{as_html(section.title)}</a></li>'
        for place, section in enumerate(report.sections)
    )
    from importlib.metadata import version  # a table needs none

    data = {"light": COLOURS, "dark": DARK_COLOURS, "charts": figures}
    parts = {
        "POLICY": policy,
        "TITLE": as_html(report.title),
        "STYLE": style,
        "KIND": as_html(report.kind),
        "NAME": as_html(report.name),
        "SUMMARY": _summary(report),
        "NAV": f"<ul>{''.join(links)}</ul>",
        "MAIN": "".join(_section(place, section) for place, section in enumerate(report.sections)),
        "VERSION": as_html(version("cpsched")),
        "DATA": embedded(data),
        "PLOTLY": plotly,
        "SCRIPT": script,
    }
    return filled("page.html", parts)


def _drawing(chart: Chart) -> dict[str, object]:
    """Return what the script draws: the figure of plotly, and how its numbers are written."""
    return {
        "figure": plotly_figure(chart),
        "x": {"unit": str(chart.x.unit), "floor": chart.x.floor},
        "y": {"unit": str(chart.y.unit), "floor": chart.y.floor},
        "isNamed": bool(chart.y.names),
    }


def _height(chart: Chart) -> int:
    """Return the pixels of a chart: more where many names are along y."""
    points = sum(isinstance(layer, Line) and layer.is_flat for layer in chart.layers)
    # whether each layer has a row of its own
    is_one_each = all(isinstance(one, Box) or (isinstance(one, Line) and len(one.y) == 1) for one in chart.layers)
    row = max(_ROW, 12 + _SERIES * points) if len(chart.y.names) > 1 and not is_one_each else _ROW
    return max(_AROUND + row * len(chart.y.names), 150) if chart.y.names else _HEIGHT


def _summary(report: Report) -> str:
    said = "".join(f"<p>{as_html(sentence)}</p>" for sentence in report.sentences)
    if not report.figures:
        return said
    cards = "".join(
        f"<div{' class=long' if len(value) > _SHORT else ''}><dt>{as_html(label)}</dt><dd>{as_html(value)}</dd></div>"
        for label, value in report.figures
    )
    return f'{said}<dl class="facts" aria-label="Figures">{cards}</dl>'


def _section(place: int, section: Section) -> str:
    parts = [f'<section aria-labelledby="section-{place}"><h2 id="section-{place}">{as_html(section.title)}</h2>']
    if section.text:
        parts.append(f'<p class="said">{as_html(section.text)}</p>')
    if section.frame is not None:
        page = html.escape(section.frame.html)
        parts.append(f'<iframe title="{as_html(section.frame.title)}" srcdoc="{page}"></iframe>')
    if section.is_folded:  # open, until its charts are drawn as wide as they are shown
        parts.append(f'<details class="part" open><summary>Charts and tables: {as_html(section.title)}</summary>')
    if section.charts:
        parts += _columns(place, section.charts)
    parts += [_table(table) for table in section.tables]
    return "".join([*parts, "</details>" if section.is_folded else "", "</section>"])


def _columns(place: int, charts: tuple[Chart, ...]) -> Iterator[str]:
    """Yield charts in two columns, each below those of the shorter one; a wide chart is across both."""
    columns: tuple[list[str], list[str]] = ([], [])
    heights = [0, 0]
    for number, chart in enumerate(charts):
        text = _figure(f"chart-{place}-{number}", chart)
        if chart.is_wide or len(charts) == 1:
            yield from _row(columns)
            columns, heights = ([], []), [0, 0]
            yield text
        else:
            shorter = heights.index(min(heights))
            columns[shorter].append(text)
            heights[shorter] += _height(chart) + _AROUND
    yield from _row(columns)


def _row(columns: tuple[list[str], list[str]]) -> Iterator[str]:
    """Yield two columns, if there is anything in them."""
    if columns[0]:
        yield '<div class="charts">' + "".join(f"<div>{''.join(column)}</div>" for column in columns) + "</div>"


def _figure(name: str, chart: Chart) -> str:
    about = f'<p class="about">{as_html(chart.about)}</p>' if chart.about else ""
    tables = "".join(map(_table, chart.tables))
    axes = " over ".join(filter(None, (chart.y.label, chart.x.label)))
    words = f"Chart: {chart.title}, {axes}. The numbers are in the table below."
    numbers = f"<details><summary>The numbers: {as_html(chart.title)}</summary>{tables}</details>" if tables else ""
    return (
        f'<figure aria-labelledby="{name}-title">'
        f'<h3 id="{name}-title">{as_html(chart.title)}</h3>{about}'
        f'<div class="plot" id="{name}" role="group" aria-label="{as_html(words)}" '
        f'data-height="{_height(chart)}"></div><ul class="legend" id="{name}-legend" hidden></ul>{numbers}</figure>'
    )


def _table(table: Table) -> str:
    title = table.title or "Numbers"
    kinds = ["" if place in table.words else " class=number" for place in range(len(table.headings))]
    head = "".join(
        f"<th scope=col{kind}>{as_html(text)}</th>" for kind, text in zip(kinds, table.headings, strict=True)
    )
    body = "".join(f"<tr>{''.join(_cells(table, number, row))}</tr>" for number, row in enumerate(table.rows))
    caption = f"<caption>{as_html(table.title)}</caption>" if table.title else ""
    note = f'<p class="note">{as_html(table.note)}</p>' if table.note else ""
    kind = "scroll long" if len(table.rows) > _MANY else "scroll"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{as_html(title)}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}</div>"
    )


def _cells(table: Table, number: int, row: tuple[str, ...]) -> Iterator[str]:
    """Yield the cells of a row; the first one names it."""
    for place, text in enumerate(row):
        classes = ["number"] if place not in table.words else []
        if (number, place) in table.marked:
            classes.append("best")
        kind = f' class="{" ".join(classes)}"' if classes else ""
        yield f"<th scope=row{kind}>{as_html(text)}</th>" if place == 0 else f"<td{kind}>{as_html(text)}</td>"
