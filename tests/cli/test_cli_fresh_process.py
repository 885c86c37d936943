"""Commands in a process of their own whose kernels are all on disk: nothing is compiled there, only loaded.

Other tests run in a process in which numba has compiled something already, or load a few kernels alone. What a loaded
kernel needs of numba's runtime is missed only here, and then the process dies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sizes import some

ROOT = Path(__file__).parents[2]

CAMPAIGN = """
name = "tiny"
[[workload]]
name = "eurora"
generator = "eurora"
parameters = {jobs = 20}
[[policy]]
scheduler = "easy"
[[policy]]
scheduler = "smith"
[[table]]
name = "waits"
figures = ["wait.mean"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a workload of twelve jobs on two nodes, and a campaign."""
    jobs = [
        {"id": f"j{k}", "user": f"u{k % 3}", "submit": 20 * k, "walltime": 100 + 10 * k, "runtime": 60 + 5 * k,
         "request": f"{1 + k % 2}:ncpus={2 + k % 3}"}
        for k in range(12)
    ]  # fmt: skip
    nodes = [{"names": "n[1-2]", "resources": {"cores": 4}}]
    workload = {"format": "cpsched-instance/1", "name": "twelve", "cluster": {"nodes": nodes}, "jobs": jobs}
    (tmp_path / "workload.json").write_text(json.dumps(workload))
    (tmp_path / "tiny.toml").write_text(CAMPAIGN)
    return tmp_path


def run_alone(folder: Path, *arguments: str) -> str:
    """Run a command in a process of its own and return what it says on stderr; it has to end well."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "cpsched", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr}"
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("policy", some(["smith", "f1", "slurm"], 3))
def test_a_simulation_loads_its_kernels(policy: str, folder: Path) -> None:
    """The second process compiles nothing, and every job has the same start in it."""
    for out in ("first", "second"):
        said = run_alone(folder, "simulate", "workload.json", "--policy", policy, "--verify", "-o", out)
    assert "compiling" not in said
    assert (folder / "first" / "jobs.csv").read_text() == (folder / "second" / "jobs.csv").read_text()


@pytest.mark.slow
def test_a_plan_loads_its_kernels(folder: Path) -> None:
    """The second process compiles neither the planner's kernels nor the search's, and its plan is verified."""
    for _ in range(2):
        window = str(ROOT / "instances" / "tiny-pack-scatter.json")
        said = run_alone(folder, "solve", window, "--engine", "search", "--budget", "0.5")
    assert "compiling" not in said


@pytest.mark.large
def test_the_workers_of_a_campaign_load_their_kernels(folder: Path) -> None:
    """Each worker is a process that has compiled nothing; all cells have a result, also when all is on disk."""
    for out in ("first", "second"):
        run_alone(folder, "bench", "tiny.toml", "-o", out, "--quiet")
    assert (folder / "first" / "waits.csv").read_text() == (folder / "second" / "waits.csv").read_text()
