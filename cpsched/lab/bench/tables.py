"""The tables of a campaign, in Markdown for people, also inside a page of theirs, and in CSV for programs."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cpsched.errors import DocumentError, Fault
from cpsched.lab.bench.campaign import LogFile, Workload
from cpsched.lab.bench.campaign_model import Published, Table
from cpsched.lab.bench.figures import words_of
from cpsched.lab.bench.results import Results, mean_of, won
from cpsched.metrics import UNSERVED, MeanInterval, mean_interval, unserved_counts, unserved_rank, unserved_text
from cpsched.text import csv_cell

#: The digits of a number that are shown.
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row: a policy's figures, ours or published."""

    #: The group of jobs; None: the jobs without queue, or all.
    key: str | None
    policy: str
    #: None: ours.
    source: str | None
    cells: tuple[MeanInterval | None, ...]
    #: The figures of each cell, for the jobs that it did not serve; None: published ones.
    unserved: tuple[Mapping[str, float | None], ...] | None


def as_markdown(results: Results, table: Table) -> str:
    """Return a table as Markdown: a section for each workload, and notes on what is in the figures."""
    shown, samples = [f"## {table.heading}"], results.campaign.samples
    for workload, count in samples.items():
        shown.append(f"### {workload.label}" if len(samples) > 1 else f"Workload: {workload.label}")
        shown.append(_grid(table, list(_lines(results, table, workload))))
        if table.relative_to is not None:
            shown.append(
                f"Relative to {table.relative_to} (divided by its figures); cells where these are 0 do not count."
            )
        shown.extend(_notes(results, workload))
        if count > 1:
            what = "windows" if isinstance(workload.source, LogFile) else "instances"
            shown.append(f"Means over {count} {what} ± half widths of their 95 % confidence intervals.")
    if results.campaign.left_out:
        shown.append(f"Left out, since their files were not found: {'; '.join(results.campaign.left_out)}.")
    if any(workload.is_random for workload in results.campaign.workloads) and len(results.campaign.seeds) > 1:
        seeds = len(results.campaign.seeds)
        shown.append(f"Means over {seeds} seeds ± half widths of their 95 % confidence intervals.")
    return "\n\n".join(shown) + "\n"


def as_csv(results: Results, table: Table) -> str:
    """Return a table as CSV: all workloads in one, three columns for each figure (mean, half width, cells)."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    figures = (*table.figures, *([] if table.won is None else [f"least {table.won}"]))
    columns = [f"{figure}{part}" for figure in figures for part in ("", " half width", " cells")]
    columns += [f"{part} jobs" for part in UNSERVED.split(" / ")]
    writer.writerow(["workload", "load", "malleable", "model", table.by, "policy", "source", *columns])
    for workload in results.campaign.samples:
        for line in _lines(results, table, workload):
            numbers: list[object] = []
            for cell in line.cells:
                numbers += [None, None, 0] if cell is None else [cell.mean, cell.half_width, cell.count]
            numbers += [None] * len(UNSERVED.split(" / ")) if line.unserved is None else unserved_counts(line.unserved)
            what = [csv_cell(workload.name), workload.load, workload.malleable, workload.model]
            writer.writerow([*what, *(csv_cell(text or "") for text in (line.key, line.policy, line.source)), *numbers])
    return stream.getvalue()


def in_words(interval: MeanInterval | None) -> str:
    """Return a mean with its interval, ``1,234 ± 56``; a hyphen if there is none."""
    if interval is None:
        return "-"
    places = 0
    if interval.mean:
        places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(interval.mean))))
    if interval.mean.is_integer() and not interval.half_width:
        places = 0
    around = "" if interval.half_width is None else f" ± {interval.half_width:,.{places}f}"
    return f"{interval.mean:,.{places}f}{around}"


def _lines(results: Results, table: Table, workload: Workload) -> Iterator[_Line]:
    """Yield the rows of a workload: for each group each policy, and published figures below our own."""
    contenders = [contender.label for contender in results.campaign.contenders]
    # published figures are those of all jobs
    named = workload.name, workload.label
    published = [one for one in results.campaign.published if table.by == "total" and one.workload in named]
    for key in results.keys(workload.label, table.by) or [None]:
        best = _best(results, table, workload, key)
        policies = dict(zip(contenders, contenders, strict=True))
        policies |= {} if best is None else {f"best rule in hindsight: {best}": best}
        for name, policy in policies.items():
            cells, *rivals = (results.cells(workload.label, one, table.by, key) for one in (policy, *contenders))
            beside = None
            if table.relative_to is not None:
                beside = results.cells(workload.label, table.relative_to, table.by, key)
            means = [mean_of(cells, figure, beside) for figure in table.figures]
            if table.won is not None:
                means.append(won(cells, rivals, table.won))
            yield _Line(key=key, policy=name, source=None, cells=tuple(means), unserved=tuple(cells.values()))
            yield from (_published_line(one, table, published) for one in published if one.policy == name)
    yield from (_published_line(one, table, published) for one in published if one.policy not in contenders)


def _best(results: Results, table: Table, workload: Workload, key: str | None) -> str | None:
    """Return the policy that is the best choice for a workload when its figures are known; None if none has any."""
    figures = []
    for place, policy in enumerate(table.hindsight or ()):
        cells = results.cells(workload.label, policy, table.by, key)
        mean = None if table.won is None else mean_of(cells, table.won)
        if mean is not None:
            figures.append((unserved_rank(tuple(cells.values())), mean.mean, place, policy))
    return min(figures)[-1] if figures else None


def _published_line(one: Published, table: Table, published: Sequence[Published]) -> _Line:
    """Return published figures as a row, without intervals; relative ones are relative to those of the same source."""
    figures = dict(one.figures)
    if table.relative_to is not None:
        beside = [other for other in published if (other.source, other.policy) == (one.source, table.relative_to)]
        theirs = {name: value for other in beside for name, value in other.figures.items() if value}
        figures = {name: value / theirs[name] for name, value in figures.items() if name in theirs}
    cells = [mean_interval([figures[name]]) if name in figures else None for name in table.figures]
    won = [] if table.won is None else [None]
    return _Line(key=None, policy=one.policy, source=one.source, cells=(*cells, *won), unserved=None)


def _grid(table: Table, lines: Sequence[_Line]) -> str:
    """Return rows with their heading; groups and sources have columns if there are any."""
    has_keys, has_sources = table.by != "total", any(line.source is not None for line in lines)
    texts = [*([table.by] if has_keys else []), "policy", *(["source"] if has_sources else [])]
    figures = [words_of(figure) for figure in table.figures]
    figures += [] if table.won is None else [f"has the least {words_of(table.won)}"]
    figures.append(UNSERVED)
    rows = [[*texts, *figures], ["---"] * len(texts) + ["---:"] * len(figures)]
    for line in lines:
        key = [line.key or "(none)"] if has_keys else []
        source = [line.source or "ours"] if has_sources else []
        unserved = "-" if line.unserved is None else unserved_text(line.unserved)
        rows.append([*key, line.policy, *source, *map(in_words, line.cells), unserved])
    return "\n".join(" | ".join(["", *(cell.replace("|", r"\|") for cell in row), ""]).strip() for row in rows)


def _notes(results: Results, workload: Workload) -> Iterator[str]:
    """Yield a paragraph on missing cells, and one on jobs that were left out or changed."""
    missing = [f"{count} of {policy}" for (label, policy), count in results.missing.items() if label == workload.label]
    if missing:
        yield f"**Failed cells, which are not in the figures: {', '.join(missing)}.**"
    remarks = results.remarks.get(workload.label, {})
    if remarks:
        listed = (words if count == 1 else f"{words} ({count:,})" for words, count in remarks.items())
        yield f"Of the log: {'; '.join(listed)}."


#: ``<!-- table NAME -->`` or ``<!-- table NAME of CAMPAIGN -->``, the present content, ``<!-- end -->``.
_PLACE = re.compile(
    r"(?P<mark><!-- table (?P<table>[^ ]+)(?: of (?P<campaign>[^ ]+))? -->\n)(?:.*?\n)??(?P<end><!-- end -->)",
    flags=re.DOTALL,
)


def filled(page: Path, tables: Mapping[str, str], *, campaign: str) -> str:
    """Return the text of a page with each table between its marks: ``<!-- table NAME -->`` and ``<!-- end -->``.

    In a page of several campaigns a table names its campaign, ``<!-- table NAME of CAMPAIGN -->``; tables of other
    campaigns remain unchanged. Raises `DocumentError` if the page has a place for a table that is none of these, or
    none at all; `OSError` if it cannot be read.
    """
    text = page.read_text(encoding="utf-8")

    def is_ours(place: re.Match[str]) -> bool:
        return place["campaign"] in (None, campaign)

    names = [place["table"] for place in _PLACE.finditer(text) if is_ours(place)]
    faults = [Fault(f"table {name}", f"Expected one of {', '.join(tables)}") for name in names if name not in tables]
    if not names:
        faults.append(Fault("", "Expected a place for a table: <!-- table NAME -->, and <!-- end --> on a later line"))
    if faults:
        raise DocumentError(str(page), faults)

    def fill(place: re.Match[str]) -> str:
        return f"{place['mark']}\n{tables[place['table']]}\n{place['end']}" if is_ours(place) else place[0]

    return _PLACE.sub(fill, text)
