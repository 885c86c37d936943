"""``cpsched daemon``: its tasks on the command line, and its signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from configparser import ConfigParser
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.formats import write_instance
from tests.bridge.small_world import job, site
from tests.cli.conftest import Run

JOBS = [job(f"j{number}", ["ncpus=4", "ncpus=2"][number % 2], walltime=400, runtime=300) for number in range(8)]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a site whose machine is in memory."""
    write_instance(site(*JOBS), tmp_path / "machine.json")
    path = tmp_path / "site.toml"
    path.write_text(
        f"""
dry_run = false
allow_root = true
[manager]
kind = "memory"
instance = "machine.json"
[planning]
engine = "planner"
budget = 1
[cycle]
period = 2
[store]
url = "sqlite:///{tmp_path}/cpsched.db"
[log]
file = "{tmp_path}/daemon.log"
[metrics]
file = "{tmp_path}/metrics.prom"
[watchdog]
heartbeat = "{tmp_path}/heart"
"""
    )
    path.chmod(0o600)
    return path


def test_check_says_what_the_daemon_would_do(run: Run, config: Path) -> None:
    """--check reads the file and says whether orders would be given; it makes no file."""
    shown = run("daemon", "--config", str(config), "--check")
    assert shown.exit_code == ExitCode.FINE
    assert "live: it gives orders" in shown.output
    assert sorted(path.name for path in config.parent.iterdir()) == ["machine.json", "site.toml"]


def test_a_file_that_is_not_in_order_is_refused(run: Run, config: Path) -> None:
    """Faults of the file are told with their paths, as bad input."""
    config.write_text(config.read_text() + "\n[cycles]\nperiod = 1\n")
    shown = run("daemon", "--config", str(config), "--once")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "cycles" in shown.stderr


def test_one_cycle_plans_and_gives_orders(run: Run, config: Path) -> None:
    """--once says what it has found and done; whatever it writes only its owner can read."""
    mask = os.umask(0o022)
    try:
        shown = run("daemon", "--config", str(config), "--once")
    finally:
        os.umask(mask)
    assert shown.exit_code == ExitCode.FINE, shown.output
    figures = dict(line.rsplit(None, 1) for line in shown.stdout.splitlines())
    # two run by themselves before the gate is closed
    assert figures["running"] == "2"
    assert figures["waiting"] == figures["planned"] == "6"
    for name in ("cpsched.db", "daemon.log", "metrics.prom", "heart"):
        assert (config.parent / name).stat().st_mode & 0o077 == 0, name
    lines = [json.loads(line) for line in (config.parent / "daemon.log").read_text().splitlines()]
    assert lines[-1]["event"] == "cycle"
    assert 'cpsched_orders_total{kind="Gate",result="done"} 1.0' in (config.parent / "metrics.prom").read_text()


def test_a_silent_store_is_bad_input(run: Run, config: Path) -> None:
    """A database that cannot be opened ends the command before anything is done."""
    config.write_text(config.read_text().replace("sqlite:///", "sqlite:////nowhere"))
    shown = run("daemon", "--config", str(config), "--once")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "nowhere" in shown.stderr


@pytest.mark.slow
def test_signals_reload_and_stop(repository: Path, config: Path) -> None:
    """On SIGHUP the file counts anew, one with faults does not, and on SIGTERM the daemon ends with code 0."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "cpsched", "daemon", "--config", str(config)],
        cwd=config.parent,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    log = config.parent / "daemon.log"

    def until(event: str) -> None:
        end = time.monotonic() + 60
        while not (log.exists() and f'"event": "{event}"' in log.read_text()):
            assert process.poll() is None
            assert time.monotonic() < end, event
            time.sleep(0.1)

    try:
        until("cycle")
        text = config.read_text()
        config.write_text(text + "\n[cycles]\n")
        process.send_signal(signal.SIGHUP)
        until("the site's file is not in order: the old one holds")
        config.write_text(text.replace("dry_run = false", "dry_run = true"))
        process.send_signal(signal.SIGHUP)
        until("configuration read again")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert '"event": "ended"' in log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["cpsched", "cpsched-watchdog", "cpsched-serve"])
def test_a_unit_for_systemd_starts_what_there_is(run: Run, repository: Path, name: str) -> None:
    """Its command has these options, runs as an account of its own, and writes for this alone."""
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # keys keep their capitals
    unit.read(repository / "scripts" / "systemd" / f"{name}.service")
    service = unit["Service"]
    program, command, *arguments = service["ExecStart"].split()
    assert program.endswith("/cpsched")
    shown = run(command, "--help").output
    assert all(word in shown for word in arguments if word.startswith("--"))
    assert (service["User"], service["UMask"], service["Restart"]) == ("cpsched", "0077", "always")
    assert service["NoNewPrivileges"] == "yes"


@pytest.mark.parametrize("name", ["cpsched", "cpsched-serve"])
def test_a_service_keeps_its_compiled_kernels(repository: Path, name: str) -> None:
    """Homes are hidden from it: kernels go where it may write, so that no restart compiles for a minute."""
    text = (repository / "scripts" / "systemd" / f"{name}.service").read_text()
    assert "CacheDirectory=cpsched\nCacheDirectoryMode=0700\nEnvironment=XDG_CACHE_HOME=%C\n" in text


@pytest.mark.parametrize("name", ["cpsched", "cpsched-watchdog"])
def test_slurmctld_can_read_the_gate(repository: Path, name: str) -> None:
    """It is another user than the daemon's, and the gate is in the daemon's directory below /run."""
    text = (repository / "scripts" / "systemd" / f"{name}.service").read_text()
    assert "RuntimeDirectory=cpsched\n" in text
    assert "RuntimeDirectoryMode=0755\n" in text
