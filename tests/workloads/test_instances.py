"""The shipped instances: what the script writes, readable, and with the values that the table states."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cpsched.formats import read_instance
from tests.workloads.changing import changing_windows
from tests.workloads.eurora_windows import eurora_window
from tests.workloads.tiny import shipped_cases

EURORA_LIKE = {
    "eurora-like-0050": eurora_window(50, 1, busy=0.9, demand=100),
    "eurora-like-0200": eurora_window(200, 1, busy=0.5, demand=100),
    "eurora-like-0800": eurora_window(800, 1, demand=100),
}
CHANGING = {made.name: made for made in changing_windows()}


@pytest.fixture(scope="module")
def shipped(repository: Path) -> dict[str, Path]:
    """Return the shipped documents by file name."""
    return {path.name: path for path in sorted((repository / "instances").glob("*.json*"))}


@pytest.fixture(scope="module")
def table(repository: Path) -> dict[str, list[str]]:
    """Return the rows of the tables in the README by instance."""
    text = (repository / "instances" / "README.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| `.*\|$", text, re.MULTILINE)
    ]
    return {row[0].strip("`"): row for row in rows}


def unpacked(path: Path) -> bytes:
    """Return the document's bytes; what gzip makes of them depends on the version of zlib."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def test_script_writes_what_is_shipped(repository: Path, shipped: dict[str, Path], tmp_path: Path) -> None:
    """scripts/make_instances writes the same files again, to the byte, and no others."""
    command = [sys.executable, str(repository / "scripts" / "make_instances"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)  # noqa: S603 - the script of this repository
    written = {path.name: unpacked(path) for path in tmp_path.iterdir()}
    assert written == {name: unpacked(path) for name, path in shipped.items()}


def test_documents_hold_what_was_generated(shipped: dict[str, Path]) -> None:
    """Each document reads back as the instance that it was made from."""
    expected = {f"{case.instance.name}.json": case.instance for case in shipped_cases()}
    expected |= {f"{name}.json.gz": window for name, window in (EURORA_LIKE | CHANGING).items()}
    assert {name: read_instance(path) for name, path in shipped.items()} == expected


def test_packed_documents_hold_no_clock(shipped: dict[str, Path]) -> None:
    """The gzip header's time is 0, so that the same content gives the same file."""
    packed = [path for path in shipped.values() if path.suffix == ".gz"]
    assert len(packed) == len(EURORA_LIKE | CHANGING)
    assert all(path.read_bytes()[4:8] == bytes(4) for path in packed)


def test_table_lists_each_instance(shipped: dict[str, Path], table: dict[str, list[str]]) -> None:
    """Every shipped instance has its row, and every row its instance."""
    assert set(table) == {path.name.removesuffix(".gz").removesuffix(".json") for path in shipped.values()}


def test_table_states_the_optimum_of_the_tiny_ones(table: dict[str, list[str]]) -> None:
    """Best known value and bound of a tiny instance are its optimum, and the sizes are its own."""
    for case in shipped_cases():
        jobs = case.instance.jobs
        running = sum(job.running is not None for job in jobs)
        _, sizes, _, best, bound = table[case.instance.name]
        assert sizes == f"{len(case.instance.cluster.node_names)} / {len(jobs) - running} / {running}"
        assert float(best) == float(bound) == pytest.approx(case.optimum, abs=1e-6)


def test_table_states_how_the_windows_were_made(table: dict[str, list[str]]) -> None:
    """Seed, numbers of jobs and the end of the window stand in the table as they are."""
    for name, window in EURORA_LIKE.items():
        running = sum(job.running is not None for job in window.jobs)
        _, seed, sizes, _, _, now, *_ = table[name]
        assert (seed, sizes, now) == ("1", f"{len(window.jobs) - running} / {running}", str(window.now))


def test_table_states_how_large_the_changing_ones_are(table: dict[str, list[str]]) -> None:
    """The numbers of waiting and running jobs stand in the table, and what was found is better than made rigid."""
    for name, window in CHANGING.items():
        running = sum(job.running is not None for job in window.jobs)
        _, _, sizes, planner, best, rigid, suffered = table[name]
        assert sizes == f"{len(window.jobs) - running} / {running}"
        assert int(best.replace(",", "")) < min(int(one.replace(",", "")) for one in (planner, rigid))
        assert int(suffered.replace(",", "")) == sum(
            window.now - job.submit + job.walltime for job in window.jobs if job.running is None
        )
