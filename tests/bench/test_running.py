"""Cells on real workers: results are kept, failures noted, and what a killed worker had is run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpsched.errors import DocumentError
from cpsched.lab.bench import Tally
from cpsched.lab.bench.running import Store, open_cells, run_cells
from tests.bench.fakes import fake_cell, fake_result, fake_work, runs_of

if TYPE_CHECKING:
    from distributed import Client


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty folder of results."""
    return Store(tmp_path / "cells")


def test_each_result_is_kept_and_counted(client: Client, store: Store, tmp_path: Path) -> None:
    """All cells are run once; the tally begins with none done and ends with all."""
    cells = {f"d{seed}": fake_cell(tmp_path, "works", seed=seed) for seed in range(4)}
    seen: list[Tally] = []
    assert run_cells(cells, store, client, work=fake_work, watch=seen.append) == []
    for digest, cell in cells.items():
        result = store.read(digest)
        assert result is not None
        assert result["summary"]["total"]["wqt"] == cell.seed
        assert runs_of(tmp_path, cell) == 1
    assert [tally.done for tally in seen] == [0, 1, 2, 3, 4]
    assert {tally.total for tally in seen} == {4}
    assert (seen[0].running, seen[-1].running) == (2, 0)


def test_finished_cells_are_not_run_again(client: Client, store: Store, tmp_path: Path) -> None:
    """A cell with a result is left alone, and counts as done from the beginning."""
    cells = {f"d{seed}": fake_cell(tmp_path, "works", seed=seed) for seed in range(2)}
    store.write("d0", fake_result(wqt=77.0))
    assert list(open_cells(cells, store)) == ["d1"]
    seen: list[Tally] = []
    assert run_cells(cells, store, client, work=fake_work, watch=seen.append) == []
    assert [runs_of(tmp_path, cell) for cell in cells.values()] == [0, 1]
    kept = store.read("d0")
    assert kept is not None
    assert kept["summary"]["total"]["wqt"] == 77.0
    assert [tally.done for tally in seen] == [1, 2]


def test_a_failing_cell_is_noted_and_the_others_go_on(client: Client, store: Store, tmp_path: Path) -> None:
    """An error of a cell is told in one line and with its traceback; it has no result, the others have."""
    cells = {
        "bad": fake_cell(tmp_path, "fails"),
        "good": fake_cell(tmp_path, "works"),
    }
    seen: list[Tally] = []
    (failure,) = run_cells(cells, store, client, work=fake_work, watch=seen.append)
    assert failure.label == "fails on made-up, seed 1"
    assert failure.error == "ValueError: nothing to work off"
    assert "in fake_work" in failure.details
    assert store.read("bad") is None
    assert store.read("good") is not None
    assert (seen[-1].done, seen[-1].failed) == (1, 1)


@pytest.mark.slow
def test_the_cell_of_a_killed_worker_is_run_again(client: Client, store: Store, tmp_path: Path) -> None:
    """A worker is killed in the middle of a cell: the cell is begun a second time, and has a result."""
    cells = {"k": fake_cell(tmp_path, "kills"), "w": fake_cell(tmp_path, "works")}
    assert run_cells(cells, store, client, work=fake_work) == []
    assert store.read("k") is not None
    assert runs_of(tmp_path, cells["k"]) == 2


@pytest.mark.slow
def test_a_cell_that_always_kills_its_worker_fails(client: Client, store: Store, tmp_path: Path) -> None:
    """Where it was more workers than Dask allows for (one in these tests), the campaign does not go on for ever.

    A worker that Dask itself gives up on a busy machine, before it has begun the cell, counts among those.
    """
    cells = {"k": fake_cell(tmp_path, "always-kills")}
    (failure,) = run_cells(cells, store, client, work=fake_work)
    assert failure.error.startswith("KilledWorker: ")
    assert 1 <= runs_of(tmp_path, cells["k"]) <= 2


def test_a_file_that_is_no_result_is_not_written_over(store: Store, tmp_path: Path) -> None:
    """What stands in a result's place and is none is refused by name, and stays."""
    path = tmp_path / "cells" / "d.json"
    path.write_text('{"format": "something else"}')
    with pytest.raises(DocumentError, match="Expected 'cpsched-cell/1'"):
        open_cells({"d": fake_cell(tmp_path, "works")}, store)
    assert "something else" in path.read_text()
