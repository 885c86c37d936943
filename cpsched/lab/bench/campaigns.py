"""A campaign from beginning to end: run the unfinished cells, then write results, tables and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpsched.charts import picture
from cpsched.lab.bench.campaign import Campaign, Cell, cells_of, digest_of
from cpsched.lab.bench.clusters import require_packages
from cpsched.lab.bench.loading import play
from cpsched.lab.bench.plots import charts_of
from cpsched.lab.bench.results import RESULTS, Results, write_parquet
from cpsched.lab.bench.running import Failure, Store, Tally, by_error, content_digest, open_cells, run_cells
from cpsched.lab.bench.tables import as_csv, as_markdown, filled
from cpsched.writing import write_text

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a campaign."""

    #: Number of cells, and of those finished before.
    total: int
    earlier: int
    failures: tuple[Failure, ...]
    written: tuple[Path, ...]


def run_campaign(
    campaign: Campaign,
    folder: Path,
    connect: Callable[[], AbstractContextManager[Client]],
    *,
    work: Callable[[Cell], dict[str, Any]] = play,
    watch: Callable[[Tally], None] | None = None,
) -> Outcome:
    """Run the cells of a campaign that are not finished, and write results, tables and charts (BRIDI-22).

    Raises `CampaignError` if a package is missing, or no cluster can run the cells. Raises `DocumentError` or `OSError`
    if a file cannot be read or written, or the page of the campaign has a place for a table that does not exist.

    `campaign`: from `read_campaign`. `folder`: the folder for all results; those of cells are below ``cells``, and a
    later run reads them again. `connect`: returns the cluster that runs cells, see `clusters.py`; not called if all
    cells are finished. `work`, `watch`: as in `run_cells`.
    """
    require_packages()
    if campaign.page is not None:  # a fault in it is found now, not after hours of work
        filled(campaign.page, {table.name: "" for table in campaign.tables}, campaign=campaign.name)
    content = cache(content_digest)
    digests = [(cell, digest_of(cell, content)) for cell in cells_of(campaign)]
    cells = {digest: cell for cell, digest in digests}
    store = Store(folder / "cells")
    waiting = open_cells(cells, store)
    failures: list[Failure] = []
    if waiting:
        with connect() as client:
            failures = run_cells(cells, store, client, work=work, watch=watch)
    results = Results.of(campaign, [(cell, store.read(digest)) for cell, digest in digests])
    return Outcome(
        total=len(cells),
        earlier=len(cells) - len(waiting),
        failures=tuple(failures),
        written=tuple(_write(results, failures, folder)),
    )


def _write(results: Results, failures: list[Failure], folder: Path) -> Iterator[Path]:
    """Write results, tables and charts; yield their paths."""
    parquet = folder / RESULTS
    write_parquet(results.findings, parquet)
    yield parquet
    parts = ("\n".join([*(one.label for one in alike), alike[0].details]) for alike in by_error(failures).values())
    texts = {"failures.txt": "\n\n".join(parts)}
    tables = {table.name: as_markdown(results, table) for table in results.campaign.tables}
    for table in results.campaign.tables:
        texts |= {f"{table.name}.md": tables[table.name], f"{table.name}.csv": as_csv(results, table)}
    drawn = (chart for plot in results.campaign.plots for chart in charts_of(results, plot))
    charts = {name: picture(chart, "svg").decode() for name, chart in drawn}
    for name, text in (texts | charts).items():
        path = folder / name
        if text:
            write_text(path, text)
            yield path
        else:
            path.unlink(missing_ok=True)  # failures of an earlier run
    page = results.campaign.page
    if page is not None:
        write_text(page, filled(page, tables, campaign=results.campaign.name))
        yield page
        for name, chart in charts.items():
            write_text(page.with_name(name), chart)
            yield page.with_name(name)
