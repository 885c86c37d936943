"""Campaigns from beginning to end: resumed, with failures, on a page."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cpsched.errors import DocumentError
from cpsched.lab.bench import Cell, Outcome, cells_of, read_campaign, run_campaign
from tests.bench.fakes import fake_work, runs_of

if TYPE_CHECKING:
    from distributed import Client

CAMPAIGN = """
name = "c"
page = "page.md"
[[workload]]
name = "made-up"
instance = "window.json"
[[policy]]
scheduler = "fcfs"
[[policy]]
scheduler = "easy"
[[table]]
name = "t"
figures = ["wqt"]
[[plot]]
name = "p"
figure = "wait.mean"
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """Return a campaign of two cells, with its files."""
    (tmp_path / "window.json").write_text("{}")
    (tmp_path / "page.md").write_text("# Page\n<!-- table t -->\n<!-- end -->\n")
    path = tmp_path / "c.toml"
    path.write_text(CAMPAIGN)
    return path


def run(toml: Path, client: Client, work: Any = fake_work) -> Outcome:
    """Run a campaign by fake cells, into the folder ``out`` beside it."""
    return run_campaign(read_campaign(toml), toml.parent / "out", lambda: nullcontext(client), work=work)


def begun(toml: Path) -> list[int]:
    """Return how often each cell was begun."""
    return [runs_of(toml.parent, cell) for cell in cells_of(read_campaign(toml))]


def easy_fails(cell: Cell) -> dict[str, Any]:
    """Run a fake cell, but not that of one policy."""
    if cell.contender.scheduler == "easy":
        raise RuntimeError("not today")
    return fake_work(cell)


def nobody() -> AbstractContextManager[Any]:
    """Fail where somebody would be asked to run cells."""
    raise AssertionError("a finished campaign needs no workers")


@pytest.mark.slow
def test_a_campaign_writes_all_that_is_made_of_it(toml: Path, client: Client) -> None:
    """Results, tables, charts, and the page with the table and the chart beside it."""
    outcome = run(toml, client)
    assert (outcome.total, outcome.earlier, outcome.failures) == (2, 0, ())
    folder = toml.parent
    assert set(outcome.written) == {
        *(folder / "out" / name for name in ("results.parquet", "t.md", "t.csv", "p.svg")),
        folder / "page.md",
        folder / "p.svg",
    }
    assert all(path.is_file() for path in outcome.written)
    assert (folder / "out" / "t.md").read_text().strip() in (folder / "page.md").read_text()
    assert "| easy | 0 |" in (folder / "page.md").read_text()


@pytest.mark.slow
def test_a_finished_campaign_runs_nothing(toml: Path, client: Client) -> None:
    """A second run asks for no workers, and writes the same tables again."""
    run(toml, client)
    table = toml.parent / "out" / "t.md"
    text = table.read_text()
    table.unlink()
    outcome = run_campaign(read_campaign(toml), toml.parent / "out", nobody, work=fake_work)
    assert (outcome.total, outcome.earlier) == (2, 2)
    assert begun(toml) == [1, 1]
    assert table.read_text() == text


def test_a_failed_cell_is_run_again_by_the_next_run_and_no_other(toml: Path, client: Client) -> None:
    """Failures are told with traceback in a file, which goes when they do."""
    outcome = run(toml, client, easy_fails)
    (failure,) = outcome.failures
    assert (failure.label, failure.error) == ("easy on made-up", "RuntimeError: not today")
    told = toml.parent / "out" / "failures.txt"
    assert "in easy_fails" in told.read_text()
    assert "**Failed cells, which are not in the figures: 1 of easy.**" in (toml.parent / "out" / "t.md").read_text()
    assert begun(toml) == [1, 0]
    again = run(toml, client)
    assert (again.earlier, again.failures) == (1, ())
    assert begun(toml) == [1, 1]
    assert not told.exists()


def test_a_page_without_a_place_is_refused_before_anything_is_run(toml: Path) -> None:
    """What is wrong with the page is told before workers are asked for."""
    (toml.parent / "page.md").write_text("# Page\n")
    with pytest.raises(DocumentError, match="Expected a place for a table"):
        run_campaign(read_campaign(toml), toml.parent / "out", nobody, work=fake_work)


def test_a_changed_input_is_run_again(toml: Path, client: Client) -> None:
    """Another content of the input file is another workload; the old results stay for when it comes back."""
    run(toml, client)
    window = toml.parent / "window.json"
    window.write_text("{ }")
    assert run(toml, client).earlier == 0
    assert begun(toml) == [2, 2]
    window.write_text("{}")
    assert run(toml, client).earlier == 2


def test_a_new_policy_runs_only_its_own_cells(toml: Path, client: Client) -> None:
    """What was there is kept, and a second name for the same policy is no cell of its own."""
    run(toml, client)
    toml.write_text(f'{CAMPAIGN}\n[[policy]]\nscheduler = "sjf"\n[[policy]]\nname = "easy again"\nscheduler = "easy"\n')
    outcome = run(toml, client)
    assert (outcome.total, outcome.earlier) == (3, 2)
    assert begun(toml) == [1, 1, 1, 0]
    assert "| easy again | 0 |" in (toml.parent / "out" / "t.md").read_text()
