"""``cpsched simulate`` and ``convert`` on logs of resource managers: Torque's accounting and sbatch events."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.formats import read_instance
from tests.cli.conftest import Run
from tests.formats.job_logs import TORQUE, event


@pytest.fixture
def accounting(tmp_path: Path) -> Path:
    """Return an accounting log, gzipped."""
    path = tmp_path / "20200301.acct.gz"
    path.write_bytes(gzip.compress(f"{TORQUE}no record\n".encode()))
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Return three jobs, of which the second one wants what no node has."""
    path = tmp_path / "week.events"
    jobs = [
        event("-N 2 -n 8 -t 10 -p main", name="jobid_1"),
        event("-n 1 -t 10 -p main -C fast", name="jobid_2"),
        event("-n 1 -t 10 -p debug", name="jobid_3", at="7"),
    ]
    path.write_text("\n".join(jobs))
    return path


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Return a cluster file of two partitions."""
    path = tmp_path / "cluster.json"
    nodes = [
        {"names": "n[1-2]", "resources": {"cores": 4}, "properties": {"partition": "main"}},
        {"names": "d1", "resources": {"cores": 4}, "properties": {"partition": "debug"}},
    ]
    path.write_text(json.dumps({"cluster": {"nodes": nodes}}))
    return path


def test_accounting_is_simulated_on_the_machine_that_it_tells_of(run: Run, accounting: Path, tmp_path: Path) -> None:
    """The record of the two jobs that can be simulated keeps every rule, and all that is left out is counted."""
    out = tmp_path / "out"
    shown = run("simulate", accounting, "-o", out, "--record", "--verify")
    assert shown.exit_code == ExitCode.FINE
    assert "assumed: 2 nodes of 4 cores, 4096 mem" in shown.stderr
    assert "1 x left out: lines that are not jobs" in shown.stderr
    assert "1 x left out: deleted before it started" in shown.stderr
    assert "easy: verified, no violations" in shown.stderr
    workload = read_instance(out / "workload.json.gz")
    assert (workload.name, [job.id for job in workload.jobs]) == ("20200301", ["2", "1"])
    assert run("verify", out / "workload.json.gz", out / "record.json.gz").exit_code == ExitCode.FINE


def test_events_are_simulated_on_a_cluster_file(run: Run, events: Path, cluster: Path) -> None:
    """Job 2 can never run, for no node is fast; without the file the error says what is missing."""
    shown = run("simulate", events, "--cluster", cluster, "--notes", "--verify")
    assert shown.exit_code == ExitCode.FINE
    assert "1 x larger than the machine: it can never run" in shown.stderr
    assert "line 2: job 2: asks for 1 chunks of cores=1:fast=yes:partition=main, of which 0 have room" in shown.stderr
    refused = run("simulate", events)
    assert refused.exit_code == ExitCode.BAD_INPUT
    assert "Expected a cluster file (--cluster)" in refused.stderr


def test_a_window_is_made_of_such_logs_too(run: Run, accounting: Path, events: Path, cluster: Path) -> None:
    """Queues and partitions are chosen by name, and what runs when the log ends waits in a window."""
    out = cluster.parent / "window.json"
    assert run("convert", events, cluster, "-o", out, "--partition", "debug").exit_code == ExitCode.FINE
    assert [job.id for job in read_instance(out).jobs] == ["3"]
    shown = run("convert", accounting, cluster, "-o", out, "--queue", "batch", "--queue", "-1", "--status", -1)
    assert shown.exit_code == ExitCode.FINE
    assert [job.id for job in read_instance(out).jobs] == ["5"]
    assert "3 x left out by --status" in shown.stderr


@pytest.mark.parametrize("option", [("--cores-per-chunk", 4), ("--memory-field", "bytes-per-job"), ("--dependencies",)])
def test_options_for_the_fields_of_other_logs_are_refused(
    run: Run, accounting: Path, option: tuple[object, ...]
) -> None:
    """What a column of the Standard Workload Format means is no question here."""
    shown = run("simulate", accounting, *option)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert (
        "Expected a log in Standard Workload Format for cores_per_chunk, memory_field and dependencies, "
        "got Torque accounting" in shown.stderr
    )
