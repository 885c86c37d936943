"""``cpsched bench``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.lab.bench import read_campaign
from tests.cli.conftest import Run

CAMPAIGN = """
name = "tiny"
[[workload]]
name = "eurora"
generator = "eurora"
parameters = {jobs = 20}
[[policy]]
scheduler = "fcfs"
[[policy]]
scheduler = "easy"
[[table]]
name = "waits"
figures = ["wait.mean"]
"""

#: A workload that its generator refuses: the model needs 32 nodes.
REFUSED = """
[[workload]]
name = "small"
generator = "lublin"
parameters = {jobs = 20, nodes = 8}
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """Return a campaign of two cells."""
    path = tmp_path / "tiny.toml"
    path.write_text(CAMPAIGN)
    return path


@pytest.mark.slow
def test_a_campaign_is_run_and_resumed(run: Run, toml: Path, tmp_path: Path) -> None:
    """Two real cells on a local cluster, a table; the second run finds both finished. A cell that fails is listed at
    the end and has an exit code of its own.
    """
    out = tmp_path / "out"
    shown = run("bench", toml, "-o", out)
    assert (shown.exit_code, shown.stderr) == (ExitCode.FINE, "")
    assert "| fcfs | " in shown.stdout
    assert shown.stdout.endswith(f"2 cells, 0 of them finished before, 0 failed\nresults: {out}\n")
    assert (out / "waits.csv").read_text().startswith("workload,load,malleable,model,total,policy,source,wait.")
    again = run("bench", toml, "-o", out, "--quiet")
    assert again.stdout == f"2 cells, 2 of them finished before, 0 failed\nresults: {out}\n"
    toml.write_text(CAMPAIGN + REFUSED)
    failed = run("bench", toml, "-o", out, "--quiet", "--workers", 1)
    assert failed.exit_code == ExitCode.FAILED_CELLS
    assert "4 cells, 2 of them finished before, 2 failed" in failed.stdout
    (told,) = failed.stderr.splitlines()  # one fault is told once
    assert told.startswith("failed: 2 cells (fcfs on small, seed 0; easy on small, seed 0): ValueError: need jobs >= 1")
    assert (out / "failures.txt").read_text().count("Traceback") == 1


def test_a_typo_is_told_with_its_place(run: Run, toml: Path, tmp_path: Path) -> None:
    """A campaign that is refused ends with exit code 2 before anything is run."""
    toml.write_text(CAMPAIGN.replace("figures", "figrues"))
    shown = run("bench", toml, "-o", tmp_path / "out")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "table[0].figrues: unknown key, did you mean figures?" in shown.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ("local", 2)),
        (("--workers", 7), ("local", 7)),
        (("--slurm", "--workers", 5), ("on_slurm", 5)),
        (("--scheduler", "tcp://there:8786"), ("at_address", "tcp://there:8786")),
    ],
)
def test_options_say_who_runs_the_cells(
    run: Run, toml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], expected: object
) -> None:
    """Each option leads to its cluster; where that fails, the error is said and the exit code is 2."""
    from cpsched.errors import CampaignError

    asked: list[object] = []
    for name in ("local", "on_slurm", "at_address"):

        def refuse(what: object, name: str = name) -> AbstractContextManager[object]:
            asked.append((name, what))
            raise CampaignError("nobody there")

        monkeypatch.setattr(f"cpsched.lab.bench.{name}", refuse)
    shown = run("bench", toml, "-o", tmp_path / "out", *options)
    assert (shown.exit_code, shown.stderr) == (ExitCode.BAD_INPUT, "cpsched: nobody there\n")
    assert asked == [expected]


def test_one_cluster_at_a_time(run: Run, toml: Path) -> None:
    """--scheduler and --slurm exclude each other."""
    assert run("bench", toml, "--scheduler", "x", "--slurm").exit_code == ExitCode.BAD_INPUT


def test_the_shipped_campaigns_are_in_order(repository: Path) -> None:
    """Each campaign of the repository is read without a fault, if its data are here."""
    for path in sorted((repository / "campaigns").glob("*.toml")):
        if "../shared" not in path.read_text() or (repository.parent / "shared").is_dir():
            assert read_campaign(path).name == path.stem


#: Hours of work behind the two cells of the campaign.
ENDLESS = """
[[workload]]
name = "months"
generator = "lublin"
parameters = {jobs = 1000000, nodes = 128}
"""


@pytest.mark.slow
def test_ctrl_c_in_a_process_keeps_the_finished_cells(repository: Path, toml: Path, run: Run, tmp_path: Path) -> None:
    """A real SIGINT, which a terminal sends to the workers too, ends a campaign with exit code 130 and no traceback."""
    toml.write_text(CAMPAIGN + ENDLESS)
    out = tmp_path / "out"
    # whoever runs the tests in the background has them ignore SIGINT, and children inherit that
    heeding = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from cpsched.cli import run; run()"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", heeding, "bench", str(toml), "-o", str(out), "--workers", "1"],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while len(list(out.glob("cells/[0-9a-f]*.json"))) < 2 and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        printed, said = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert (printed, said) == ("", "cpsched: interrupted\n")
    toml.write_text(CAMPAIGN)
    assert "2 cells, 2 of them finished before, 0 failed" in run("bench", toml, "-o", out).stdout
