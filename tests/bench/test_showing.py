"""What is made of results: figures by name, tables, charts, pages and one Parquet file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pyarrow import parquet

from cpsched.charts import Chart, picture
from cpsched.domain import FrozenMap, RuntimeModel
from cpsched.errors import DocumentError
from cpsched.lab.bench import Campaign, Cell
from cpsched.lab.bench.campaign_model import Plot, Published, Table
from cpsched.lab.bench.figures import FIGURES, MACHINE_FIGURES, rows_of, words_of
from cpsched.lab.bench.plots import charts_of
from cpsched.lab.bench.results import Results, won, write_parquet
from cpsched.lab.bench.tables import as_csv, as_markdown, filled, in_words
from cpsched.metrics import mean_interval
from tests.bench.fakes import fake_cell, fake_result

Given = dict[Cell, Mapping[str, Any] | None]


def results_of(
    cells: Given,
    *,
    table: Table | None = None,
    plot: Plot | None = None,
    published: tuple[Published, ...] = (),
) -> Results:
    """Return the results of a campaign that has these cells."""
    campaign = Campaign(
        name="c",
        seeds=tuple(dict.fromkeys(cell.seed or 0 for cell in cells)),
        warm_up=0,
        cool_down=0,
        workloads=tuple(dict.fromkeys(cell.workload for cell in cells)),
        contenders=tuple(dict.fromkeys(cell.contender for cell in cells)),
        tables=(table,) if table else (),
        plots=(plot,) if plot else (),
        published=published,
        page=None,
    )
    return Results.of(campaign, cells.items())


def table_of(*figures: str, **options: Any) -> Table:
    """Return a table of some figures."""
    return Table(name="t", title="A table", figures=figures, **options)


@pytest.fixture
def two_policies(tmp_path: Path) -> Given:
    """Return the results of two policies with three seeds: WQT 1, 2, 3 and 10 each; a cell of the second has failed."""
    cells: Given = {fake_cell(tmp_path, "slow|y", seed=seed): fake_result(wqt=seed) for seed in (1, 2, 3)}
    cells |= {fake_cell(tmp_path, "fast", seed=seed): fake_result(wqt=10, wait=None) for seed in (1, 2)}
    return cells | {fake_cell(tmp_path, "fast", seed=3): None}


def test_figures_have_the_names_of_the_summary() -> None:
    """Names are those of the summary's fields, with a dot inside distributions; those of the machine are marked."""
    assert {"wqt", "late", "wait.mean", "bounded_slowdown.p95", "unfairly_delayed"} <= FIGURES.keys()
    assert {"makespan", "allocated", "jain", "decisions.p99", "seconds"} <= MACHINE_FIGURES.keys()
    assert not {"total", "by_queue", "begin", "wait", "decisions"} & FIGURES.keys()
    assert (FIGURES["late"], FIGURES["wqt"]) == (True, False)


def test_rows_are_of_all_jobs_and_of_groups() -> None:
    """A result gives one row for all jobs, with the machine's figures, and one for each queue, without."""
    total, debug, none = rows_of(fake_result(wqt=3, queues={"debug": 1.0, None: 2.0}))
    assert (total.by, total.key, total.figures["wqt"], total.figures["decisions.p99"]) == ("total", None, 3, 0.002)
    assert (total.figures["wait.mean"], total.figures["jain"], total.figures["response.mean"]) == (5.0, None, None)
    assert (debug.by, debug.key, debug.figures["wqt"], debug.figures["makespan"]) == ("queue", "debug", 1.0, None)
    assert (none.by, none.key, none.figures["wqt"]) == ("queue", None, 2.0)


def test_a_table_for_people(two_policies: Given) -> None:
    """Means with intervals, hyphens where nothing is known, and which cells are missing.

    Of 1, 2, 3 the mean is 2 and the half width t(2, 97.5 %) · 1 / √3 = 4.303 / 1.732 = 2.484.
    """
    assert as_markdown(results_of(two_policies), table_of("wqt", "wait.mean")).splitlines() == [
        "## A table",
        "",
        "Workload: made-up",
        "",
        "| policy | weighted queue time | wait, mean | unfinished / killed / lost / starved |",
        "| --- | ---: | ---: | ---: |",
        r"| slow\|y | 2.000 ± 2.484 | 5 ± 0 | 0 / 0 / 0 / 0 |",
        "| fast | 10 ± 0 | - | 0 / 0 / 0 / 0 |",
        "",
        "**Failed cells, which are not in the figures: 1 of fast.**",
    ]


def test_every_figure_has_a_name_in_words() -> None:
    """Headings are words, no names of keys, and no two figures have the same."""
    words = {words_of(figure) for figure in FIGURES}
    assert len(words) == len(FIGURES)
    assert not any(sign in word for word in words for sign in "._")


def test_a_table_of_seeds_says_so(tmp_path: Path) -> None:
    """Where a workload is another one for each seed, the table says what the intervals are."""
    cells: Given = {}
    for seed in (1, 2):
        cell = fake_cell(tmp_path, "fast", seed=seed)
        cells[changed(cell, malleable=0.5)] = fake_result()
    text = as_markdown(results_of(cells), table_of("wqt"))
    assert text.endswith("Means over 2 seeds ± half widths of their 95 % confidence intervals.\n")


def changed(cell: Cell, **changes: Any) -> Cell:
    """Return a cell whose workload is changed."""
    return replace(cell, workload=replace(cell.workload, **changes))


def test_remarks_on_a_log_stand_below_its_table(tmp_path: Path) -> None:
    """What was left out of a log is told, with how often."""
    result = fake_result() | {"remarks": {"assumed: one core": 1, "left out: no size": 1234}}
    text = as_markdown(results_of({fake_cell(tmp_path, "fast"): result}), table_of("wqt"))
    assert text.endswith("\n\nOf the log: assumed: one core; left out: no size (1,234).\n")


def test_published_figures_stand_beside_ours(tmp_path: Path) -> None:
    """Those of a policy of ours come below it, those of others at the end; what was not published is a hyphen."""
    published = (
        Published(source="A 2000", workload="other", policy="fast", figures=FrozenMap({"wqt": 1.0})),
        Published(source="B 2001", workload="w, load 2", policy="theirs", figures=FrozenMap({"late": 7.0})),
        Published(source="C 2002", workload="w", policy="fast", figures=FrozenMap({"wqt": 1234.5})),
    )
    cells: Given = {
        fake_cell(tmp_path, name, workload="w", load=2.0, seed=None): fake_result(wqt=10) for name in ("fast", "slow")
    }
    text = as_markdown(results_of(cells, published=published), table_of("wqt", "late"))
    assert [line for line in text.splitlines() if line.startswith("|")] == [
        "| policy | source | weighted queue time | late jobs | unfinished / killed / lost / starved |",
        "| --- | --- | ---: | ---: | ---: |",
        "| fast | ours | 10 | 0 | 0 / 0 / 0 / 0 |",
        "| fast | C 2002 | 1,234 | - | - |",
        "| slow | ours | 10 | 0 | 0 / 0 / 0 / 0 |",
        "| theirs | B 2001 | - | 7 | - |",
    ]


def samples_of(folder: Path, name: str, figures: Mapping[str, float]) -> Given:
    """Return cells of a policy on one workload of several instances, each with its WQT."""
    cell = fake_cell(folder, name, seed=None)
    return {changed(cell, sample=sample): fake_result(wqt=wqt) for sample, wqt in figures.items()}


def test_instances_of_one_workload_are_samples(tmp_path: Path) -> None:
    """Several workloads with one label have one section, with the means of their figures; here 2 of 1, 2 and 3."""
    cells = samples_of(tmp_path, "slow", {"a": 1, "b": 2, "c": 3})
    text = as_markdown(results_of(cells), table_of("wqt"))
    assert text.splitlines()[2:] == [
        "Workload: made-up",
        "",
        "| policy | weighted queue time | unfinished / killed / lost / starved |",
        "| --- | ---: | ---: |",
        "| slow | 2.000 ± 2.484 | 0 / 0 / 0 / 0 |",
        "",
        "Means over 3 instances ± half widths of their 95 % confidence intervals.",
    ]
    assert len(list(csv.DictReader(io.StringIO(as_csv(results_of(cells), table_of("wqt")))))) == 1
    plot = Plot(name="p", title="P", figure="wqt")
    assert [name for name, _ in charts_of(results_of(cells, plot=plot), plot)] == ["p.svg"]


def test_figures_in_proportion_to_a_policy(tmp_path: Path) -> None:
    """Proportions are taken cell by cell: 2 / 1 and 2 / 4 are 1.25 in the mean. Who has 0 is no measure, and what is
    published is put in proportion to the same source (BRIDI-23).
    """
    cells = samples_of(tmp_path, "base", {"a": 1, "b": 4, "c": 0}) | samples_of(tmp_path, "x", {"a": 2, "b": 2, "c": 2})
    published = tuple(
        Published(source=source, workload="made-up", policy=policy, figures=FrozenMap(figures))
        for source, policy, figures in (
            ("S", "base", {"wqt": 10.0, "late": 0.0}),
            ("S", "theirs", {"wqt": 5.0, "late": 3.0}),
            ("T", "theirs", {"wqt": 5.0}),
        )
    )
    table = table_of("wqt", "late", relative_to="base")
    text = as_markdown(results_of(cells, published=published), table)
    assert [line for line in text.splitlines() if line.startswith("|")][2:] == [
        "| base | ours | 1 ± 0 | - | 0 / 0 / 0 / 0 |",
        "| base | S | 1 | - | - |",
        "| x | ours | 1.250 ± 9.530 | - | 0 / 0 / 0 / 0 |",
        "| theirs | S | 0.5000 | - | - |",
        "| theirs | T | - | - | - |",
    ]
    assert "\n\nRelative to base (divided by its figures); cells where these are 0 do not count.\n\n" in text


def test_a_table_by_queue_has_a_row_for_each_queue_and_policy(tmp_path: Path) -> None:
    """Groups come in the order of the summary; jobs without queue are told as such."""
    result = fake_result(queues={"debug": 1.0, None: 2.0})
    text = as_markdown(
        results_of({fake_cell(tmp_path, name): result for name in ("a", "b")}), table_of("wqt", by="queue")
    )
    assert [line for line in text.splitlines() if line.startswith("| ")][2:] == [
        "| debug | a | 1 | 0 / 0 / 0 / 0 |",
        "| debug | b | 1 | 0 / 0 / 0 / 0 |",
        "| (none) | a | 2 | 0 / 0 / 0 / 0 |",
        "| (none) | b | 2 | 0 / 0 / 0 / 0 |",
    ]


def test_a_table_for_programs(two_policies: Given) -> None:
    """CSV has the means in full, and half widths and numbers of cells in columns of their own."""
    slow, fast = csv.DictReader(io.StringIO(as_csv(results_of(two_policies), table_of("wqt", "wait.mean"))))
    assert (slow["workload"], slow["policy"], slow["wqt"], slow["wqt cells"]) == ("made-up", "slow|y", "2.0", "3")
    assert float(slow["wqt half width"]) == pytest.approx(2.484, abs=1e-3)
    assert (fast["wqt cells"], fast["wait.mean"], fast["wait.mean cells"]) == ("2", "", "0")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1234567.0], "1,234,567"),
        ([0.00123456], "0.001235"),
        ([12.3456], "12.35"),
        ([0.0], "0"),
        ([-3.25], "-3.250"),
        ([7.0, 7.0], "7 ± 0"),
        ([0.0, 0.0], "0 ± 0"),
    ],
)
def test_numbers_have_four_digits(values: list[float], shown: str) -> None:
    """Whole numbers are whole; others have four digits, and their half width as many places."""
    assert in_words(mean_interval(values)) == shown


def svg_of(chart: Chart) -> str:
    """Return a chart as a campaign writes it."""
    return picture(chart, "svg").decode()


def elements(svg: str, name: str) -> list[ElementTree.Element]:
    """Return the elements of a kind; the document is parsed, so that markup in names would be found."""
    return list(ElementTree.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{name}"))  # noqa: S314 - ours


def drawn(svg: str, kind: str) -> list[list[tuple[float, float]]]:
    """Return the corners of each bar, or the points of each line, in the order in which they were drawn."""
    paths = {
        group.get("id"): group.find("{http://www.w3.org/2000/svg}path")
        for group in elements(svg, "g")
        if group.get("id", "").startswith(f"{kind}-")
    }
    found = []
    for place in range(len(paths)):
        path = paths[f"{kind}-{place}"]
        assert path is not None
        numbers = [float(number) for number in re.findall(r"-?[0-9.]+", path.attrib["d"])]
        found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


def test_a_plot_over_load_has_a_line_for_each_policy(tmp_path: Path) -> None:
    """Workloads that differ in nothing but the load are one chart; its points go from low load to high."""
    cells: Given = {
        changed(fake_cell(tmp_path, policy, load=load), malleable=share): fake_result(wqt=load)
        for policy in ("a", "b")
        for load in (1.5, 0.5)
        for share in (None, 1.0)
    }
    plot = Plot(name="p", title="P", figure="wqt", over="load")
    charts = dict(charts_of(results_of(cells, plot=plot), plot))
    assert list(charts) == ["p-1.svg", "p-2.svg"]
    for chart in charts.values():
        lines = drawn(svg_of(chart), "line")
        assert len(lines) == 2
        left, right = lines[0]
        assert left[0] < right[0]
        assert left[1] > right[1]
    assert charts["p-2.svg"].title == "P: made-up, malleable 1"


def test_a_plot_over_the_malleable_share_is_a_chart_for_each_model(tmp_path: Path) -> None:
    """Workloads that differ in the model of their malleable jobs are not on one line."""
    cells: Given = {
        changed(fake_cell(tmp_path, "a"), malleable=share, model=model): fake_result(wqt=share)
        for model in RuntimeModel
        for share in (0.5, 1.0)
    }
    plot = Plot(name="p", title="P", figure="wqt", over="malleable")
    charts = dict(charts_of(results_of(cells, plot=plot), plot))
    assert [chart.title for chart in charts.values()] == ["P: made-up, ideal", "P: made-up, worst"]


def test_a_plot_without_figures_is_no_chart(tmp_path: Path) -> None:
    """Where all cells have failed nothing is drawn; where one policy has a figure, it is."""
    plot = Plot(name="p", title="P", figure="wait.mean")
    failed: Given = {fake_cell(tmp_path, "a"): None}
    assert list(charts_of(results_of(failed), plot)) == []
    ((name, chart),) = charts_of(results_of(failed | {fake_cell(tmp_path, "b"): fake_result()}), plot)
    assert name == "p.svg"
    assert len(drawn(svg_of(chart), "bars")) == 1


def test_tables_are_put_between_their_marks(tmp_path: Path) -> None:
    """What stood there is replaced, also the second time; the rest of the page stays."""
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- table a -->\n<!-- end -->\n\nwords\n\n<!-- table b -->\nold\n\nold\n<!-- end -->\n")
    tables = {"a": "A\n", "b": "B\n", "c": "C\n"}
    text = filled(page, tables, campaign="x")
    assert text == (
        "# Page\n\n<!-- table a -->\n\nA\n\n<!-- end -->\n\nwords\n\n<!-- table b -->\n\nB\n\n<!-- end -->\n"
    )
    page.write_text(text)
    assert filled(page, tables, campaign="x") == text


def test_a_page_may_have_tables_of_several_campaigns(tmp_path: Path) -> None:
    """Each campaign fills its own places, and those that say no campaign; what is of another one stays."""
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- table a of x -->\n<!-- end -->\n<!-- table a of y -->\nold\n<!-- end -->\n"
        "<!-- table b -->\n<!-- end -->\n"
    )
    assert filled(page, {"a": "A\n", "b": "B\n"}, campaign="x") == (
        "<!-- table a of x -->\n\nA\n\n<!-- end -->\n<!-- table a of y -->\nold\n<!-- end -->\n"
        "<!-- table b -->\n\nB\n\n<!-- end -->\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Page\n", "Expected a place for a table"),
        ("<!-- table x -->\n<!-- end -->\n", "table x: Expected one of a"),
        ("<!-- table x of c -->\n<!-- end -->\n", "table x: Expected one of a"),
        ("<!-- table a of d -->\n<!-- end -->\n", "Expected a place for a table"),
    ],
)
def test_a_page_without_its_places_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """A page needs a place, and each place a table of the campaign."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(DocumentError, match=expected):
        filled(page, {"a": "A"}, campaign="c")


def test_all_results_are_in_one_file(two_policies: Given, tmp_path: Path) -> None:
    """Parquet has a row for each cell and group with what the cell is; unknown figures are null."""
    write_parquet(results_of(two_policies).findings, tmp_path / "r.parquet")
    read = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert [(row["policy"], row["seed"], row["wqt"]) for row in read] == [
        ("slow|y", 1, 1.0),
        ("slow|y", 2, 2.0),
        ("slow|y", 3, 3.0),
        ("fast", 1, 10.0),
        ("fast", 2, 10.0),
    ]
    assert read[3]["wait.mean"] is None
    assert (read[0]["by"], read[0]["makespan"], read[0]["parameters"], read[0]["load"]) == ("total", 100, "{}", None)
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


def test_the_share_of_cells_that_a_policy_wins(tmp_path: Path) -> None:
    """Of the cells that all policies have: a draw counts for both; one that has failed counts for no policy."""
    values = {"a": (1.0, 5.0, 3.0, 9.0), "b": (2.0, 4.0, 3.0, None)}
    cells: Given = {
        fake_cell(tmp_path, policy, seed=seed): None if value is None else fake_result(wqt=value)
        for policy, of_policy in values.items()
        for seed, value in enumerate(of_policy)
    }
    results = results_of(cells, table=table_of("wqt", won="wqt"))
    label = next(iter(cells)).workload.label
    rows = {policy: results.cells(label, policy) for policy in values}
    shares = {policy: won(row, list(rows.values()), "wqt") for policy, row in rows.items()}
    assert {policy: share and share.mean for policy, share in shares.items()} == {"a": 2 / 3, "b": 2 / 3}
    (table,) = results.campaign.tables
    assert "has the least weighted queue time" in as_markdown(results, table).splitlines()[4]
    assert "least wqt cells" in as_csv(results, table).splitlines()[0]


def test_a_policy_that_leaves_jobs_unstarted_wins_no_cell(tmp_path: Path) -> None:
    """It has the least figure, and is neither the best of a cell nor the best rule in hindsight."""
    cells: Given = {}
    for policy, wqt, waiting in (("leaves", 1.0, 7), ("serves", 2.0, 0)):
        result = fake_result(wqt=wqt)
        result["summary"]["total"]["waiting"] = waiting
        cells[fake_cell(tmp_path, policy)] = result
    table = table_of("wqt", won="wqt", hindsight=["leaves", "serves"])
    rows = [line for line in as_markdown(results_of(cells, table=table), table).splitlines() if line.startswith("|")]
    assert rows[2:] == [
        "| leaves | 1 | 0 | 7 / 0 / 0 / 0 |",
        "| serves | 2 | 1 | 0 / 0 / 0 / 0 |",
        "| best rule in hindsight: serves | 2 | 1 | 0 / 0 / 0 / 0 |",
    ]
    (first, *_) = csv.DictReader(io.StringIO(as_csv(results_of(cells, table=table), table)))
    assert (first["unfinished jobs"], first["starved jobs"]) == ("7", "0")


def test_the_best_rule_in_hindsight_has_a_row(tmp_path: Path) -> None:
    """Of the policies named, the one with the least mean has one more row, below all, with the same figures."""
    values = {"a": (1.0, 5.0), "b": (2.0, 3.0), "c": (1.0, 1.0)}
    cells: Given = {
        fake_cell(tmp_path, policy, seed=seed): fake_result(wqt=value)
        for policy, of_policy in values.items()
        for seed, value in enumerate(of_policy)
    }
    table = table_of("wqt", won="wqt", hindsight=["a", "b"])
    rows = [line for line in as_markdown(results_of(cells, table=table), table).splitlines() if line.startswith("|")]
    by_name = {row.split("|")[1].strip(): row.split("|")[2:] for row in rows[2:]}
    assert list(by_name) == ["a", "b", "c", "best rule in hindsight: b"]
    assert by_name["best rule in hindsight: b"] == by_name["b"]
    nobody = table_of("wqt", won="wqt")
    assert "hindsight" not in as_markdown(results_of(cells, table=nobody), nobody)
