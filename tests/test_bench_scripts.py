"""The scripts that measure, at tiny sizes: that they work, never how fast they are."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.browser.driving import BROWSER
from tests.sizes import some
from tests.workloads.test_psplib import PROJECT

pytestmark = pytest.mark.slow  # each script is a Python of its own, which loads the compiler

#: Scripts that need no arguments and take little; `bench planner` and `bench rusv` fail where a naive twin differs.
BENCHES = ("gym", "planner", "rusv", "openccs", "mixes", "start", "live", "knowledge", "frontier")


def run(repository: Path, name: str, *arguments: str) -> str:
    """Return what a bench prints, at tiny sizes."""
    return output_of(repository / "scripts" / "bench", name, "--quick", *arguments)


def output_of(script: Path, *arguments: str) -> str:
    """Return what a script prints."""
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603 - our script
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_peers_minimise_what_we_minimise(repository: Path, tmp_path: Path) -> None:
    """CP-SAT by hand starts short jobs first on a machine that has room for one at a time."""
    (tmp_path / "window.json").write_text('{"nodes": 2, "jobs": [[2, 300], [2, 100], [2, 200]]}')
    output_of(repository / "scripts" / "compare_peers", "cp_sat_planned", str(tmp_path), "")
    assert (tmp_path / "cp_sat_planned.json").read_text() == "[300, 0, 100]"


def tables_of(output: str) -> list[list[list[str]]]:
    """Return the rows of each table below its header, table by table."""
    tables = []
    for section in output.split("\n### ")[1:]:
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"
        ]
        tables.append(rows[2:])
    return tables


@pytest.mark.parametrize("name", some(BENCHES, 2))
def test_bench_prints_its_tables(repository: Path, name: str) -> None:
    """Each bench prints tables, none without rows, and judges nothing at tiny sizes."""
    output = run(repository, name)
    tables = tables_of(output)
    assert tables
    assert all(tables), "a table has no rows"
    assert "reached" not in output
    assert "missed" not in output


def test_lists_of_slurm_are_simulated(repository: Path) -> None:
    """Each engine has a row for each list, and one that compares it with Slurm's rules."""
    own, compared = tables_of(
        run(repository, "slurm", "--simulated", "--jobs", "12", "--seeds", "0", "--engines", "smith", "easy")
    )
    assert [row[0] for row in own] == ["Slurm, seed 0", "simulated, smith, seed 0", "simulated, easy, seed 0"]
    assert [row[0] for row in compared] == ["simulated, smith", "simulated, easy"]


@pytest.mark.large
def test_projects_with_modes_or_lags_are_solved(repository: Path) -> None:
    """Each set has a row, and of each project a direct model says what is known."""
    (table,) = tables_of(run(repository, "mmlib", "--budget", "2"))
    assert [row[0] for row in table] == ["j30", "mmlib50", "mmlib100", "lags20", "lags50", "lags100"]


@pytest.mark.large
def test_charts_are_written(repository: Path, tmp_path: Path) -> None:
    """With --plots the growth tables are drawn too, each point once for each of the two operations."""
    run(repository, "rusv", "--plots", str(tmp_path))
    dots = {
        path.name: sum(
            len(group.findall(".//{http://www.w3.org/2000/svg}use"))
            for group in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}g")  # noqa: S314 - ours
            if group.get("id", "").startswith("line-")
        )
        for path in tmp_path.iterdir()
    }
    assert dots == {
        "growth-identical.svg": 4,
        "growth-jobs.svg": 8,
        "growth-nodes.svg": 8,
        "growth-slots.svg": 4,
    }


def test_projects_are_solved(repository: Path, tmp_path: Path) -> None:
    """Bench psplib reads a folder and its list: 16 s by the planner, 14 s known, 13 s on the longest path."""
    folder = tmp_path / "mine"
    (folder / "optimum").mkdir(parents=True)
    (folder / "hand_1.sm").write_text(PROJECT, encoding="utf-8")
    (folder / "optimum" / "optimum.csv").write_text("problem,optimum\nhand_1.sm,12..14\n", encoding="utf-8")
    (of_sets,), (left,) = tables_of(run(repository, "psplib", str(folder), "--engine", "planner"))
    assert of_sets[:8] == ["mine", "1", "0.0%", "-", "0.0%", "-", "+14.29%", "+23.1%"]
    assert (left[:3], left[-1]) == (["hand_1", "16", "14"], "13")


@pytest.mark.large
def test_bounds_are_below_plans(repository: Path) -> None:
    """Bench bounds prints bound and plan of a window, also with less and less to pack, and of a part of it; no bound is
    above its plan.
    """
    of_windows, of_causes, of_parts = tables_of(run(repository, "bounds"))
    figures = [row[2:4] for row in (*of_windows, *of_parts)] + [row[1:3] for row in of_causes]
    assert len(figures) == 8
    assert all(float(bound.replace(",", "")) <= float(plan.replace(",", "")) for plan, bound in figures)


@pytest.mark.large
def test_neighbourhoods_are_measured(repository: Path) -> None:
    """Bench cp prints what CP makes of the planner's plan and of the best list, and what it did; never a worse plan."""
    ((row,),) = tables_of(run(repository, "cp"))
    planner, alone, best, after = (float(row[place].replace(",", "")) for place in (1, 2, 4, 5))
    assert alone <= planner
    assert after <= best <= planner
    assert all("neighbourhoods" in row[place] for place in (7, 8))


def test_answers_are_timed(repository: Path) -> None:
    """Bench answers times explanations and submissions on a plan, also with rules, and judges nothing at tiny sizes."""
    rows, ruled = tables_of(run(repository, "answers"))
    assert [row[-1] for row in (*rows, *ruled)] == ["-", "-", "-", "-"]


@pytest.mark.large
@pytest.mark.skipif(BROWSER is None, reason="no browser in PATH")
def test_pages_are_opened(repository: Path) -> None:
    """Bench pages opens and moves each page on both screens, without a fault, and judges nothing at tiny sizes."""
    (rows,) = tables_of(run(repository, "pages"))
    assert [(row[0], row[2]) for row in rows] == [
        (page, screen) for page in ("Gantt chart", "report", "live page") for screen in ("1440", "390")
    ]
    assert {row[4] for row in rows} == {"-"}
    assert all(float(row[3]) > 0 and float(row[5]) > 0 for row in rows)


@pytest.mark.large
def test_engines_are_compared(repository: Path) -> None:
    """Bench engine prints all its sections; the portfolio is worse than nobody, and proves what is tiny."""
    tables = tables_of(run(repository, "engine"))
    (row,), *_, tiny, _ = tables
    assert all(tables)
    assert row[0] == "eurora-like-0050"
    rule, best_list, planner, portfolio = (float(cell.replace(",", "")) for cell in row[1:5])
    assert portfolio <= min(rule, best_list, planner)
    assert all(row[1] == row[2] for row in tiny)


def test_bench_dependencies(repository: Path) -> None:
    """Bench dependencies prints two rows for each size: with the array that waits for an array, and without."""
    (rows,) = tables_of(run(repository, "dependencies"))
    assert [row[:2] for row in rows] == [["10", "none"], ["10", "100"], ["30", "none"], ["30", "900"]]


@pytest.mark.large
def test_bench_lanes(repository: Path) -> None:
    """Bench lanes prints a row for lanes that know nothing of each other, and one for lanes that exchange plans."""
    (rows,) = tables_of(run(repository, "lanes"))
    assert [row[1] for row in rows] == ["1", "3"]
    assert all(len(row) == 6 for row in rows)


@pytest.mark.large
def test_bench_changing(repository: Path) -> None:
    """Bench changing prints its table: with jobs that may change no solver's plan is worse than the planner's."""
    ((row,),) = tables_of(run(repository, "changing"))
    planner, portfolio = (int(cell.replace(",", "")) for cell in row[7:9])
    assert portfolio <= planner
    assert row[5].startswith("sd_")


@pytest.mark.large
def test_bench_changing_steps(repository: Path) -> None:
    """Bench changing --steps prints how many steps the search does in a second, at three temperatures."""
    ((row,),) = tables_of(run(repository, "changing", "--steps"))
    assert int(row[3]) > 0
    assert all(int(cell.replace(",", "")) > 0 for cell in row[4:])


@pytest.mark.large
def test_windows_with_rules_are_planned(repository: Path) -> None:
    """Bench rules prints its tables: all plans are verified, the portfolio is worse than neither planner nor rule."""
    (queue,), (eurora,) = tables_of(run(repository, "rules"))
    assert (queue[3], queue[4]) == ("4", "0")
    assert float(queue[10].replace(",", "")) <= float(queue[9].replace(",", ""))
    rule, planner, portfolio = (float(cell.replace(",", "")) for cell in eurora[3:6])
    assert portfolio <= min(rule, planner)


@pytest.mark.large
def test_random_judges_print_their_tables(repository: Path) -> None:
    """random_judges rules tells which rules the windows had, what changed plans broke, and who planned them."""
    _, _, by_engine, _ = tables_of(output_of(repository / "scripts" / "random_judges", "--quick", "rules"))
    engines = {row[0]: row[1:] for row in by_engine}
    assert engines["planner"][0] == "10"


@pytest.mark.large
def test_bench_deadlines(repository: Path) -> None:
    """Bench deadlines prints a row for each window: the portfolio leaves out no job that some list places."""
    ((row,),) = tables_of(run(repository, "deadlines"))
    assert int(row[8]) <= min(map(int, row[3:7]))
    assert float(row[11].replace(",", "")) <= float(row[10].replace(",", ""))


def test_logs_are_simulated(repository: Path) -> None:
    """Bench sim prints a row for each rule; nobody waits longer under EASY than under strict order in the mean."""
    (whole,) = tables_of(run(repository, "sim"))
    rows = {row[3]: row for row in whole if row[0] != "crowd"}
    assert list(rows) == ["fcfs", "easy", "smith", "conservative"]
    assert int(rows["easy"][7].replace(",", "")) <= int(rows["fcfs"][7].replace(",", ""))
    assert [row[3] for row in whole if row[0] == "crowd"] == ["easy", "smith"]


def test_whole_logs_are_compared_with_the_textbook(repository: Path, tmp_path: Path) -> None:
    """Bench sim --textbook finds no job of a log that starts at another second than by counts."""
    lines = [f"{n} {5 * n} -1 {20 + n % 7} {1 + n % 4} -1 -1 {1 + n % 4} 40 -1 1 1 1 1 1 1 -1 -1" for n in range(1, 80)]
    log = "\n".join(["; MaxNodes: 5", "; MaxProcs: 5", *lines])
    (tmp_path / "KTH-SP2-tiny.swf.gz").write_bytes(gzip.compress(log.encode()))
    (rows,) = tables_of(output_of(repository / "scripts" / "bench", "sim", str(tmp_path), "--textbook"))
    assert [(row[2], row[-1]) for row in rows] == [("easy", "0"), ("sjf, EASY", "0"), ("conservative", "0")]
    assert all(int(row[5]) > 0 for row in rows)


def test_forecasts_are_judged(repository: Path, tmp_path: Path) -> None:
    """Of a log in which three users crowd eight processors, runtimes are judged four ways, and starts three."""
    log = tmp_path / "small-log.swf"
    lines = [
        f"{number} {number * 20} 0 {20 + 30 * (number % 3)} {1 + number % 4} -1 -1 {1 + number % 4} 200 -1 1 "
        f"{number % 3} 1 -1 1 -1 -1 -1"
        for number in range(1, 300)
    ]
    log.write_text("\n".join(["; MaxNodes: 8", "; MaxProcs: 8", *lines]) + "\n")
    runtimes, starts = tables_of(run(repository, "forecast", str(log)))
    assert [row[1] for row in runtimes] == ["learnt", "walltime", "last two of the user", "16 nearest of the user"]
    assert float(runtimes[0][2]) < float(runtimes[1][2])
    assert [row[1] for row in starts] == ["at submission", "at submission, of those that wait", "each hour"]
