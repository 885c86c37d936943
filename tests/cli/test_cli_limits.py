"""Values and campaign files that were made to break their reader: each ends with exit code 2 and what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from tests.cli.conftest import Run, Window
from tests.formats.pipes import waiting_for_writers

LOG = "; MaxProcs: 4\n; MaxNodes: 4\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
DEEP = "Expected at most 32 tables or lists in each other, got more"

VALUES = {
    "deep": ("[" * 3000 + "]" * 3000, DEEP),
    "open": ("[" * 50_000, DEEP),
    "tables": ("{a=" * 3000 + "1" + "}" * 3000, DEEP),
    "long": ("9" * 5000, "Expected integers of at most 64 bits, got a longer one"),
    "hexadecimal": (
        "0x" + "f" * 20_000,
        "Expected an integer of at most 64 bits, got an integer of more than 38 digits",
    ),
}


@pytest.mark.parametrize("value", VALUES)
def test_values_of_parameters(run: Run, window: Window, value: str) -> None:
    """Nesting and numbers of --policy are bounded."""
    text, expected = VALUES[value]
    shown = run("simulate", window.instance_file, "--policy", f"maui depth={text}")
    assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
    assert shown.stderr.startswith("cpsched: depth: 1 fault\n  ")
    assert shown.stderr.endswith(f"{expected}\n")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    "place", ["name = {}", "name = 'x'\n[[policy]]\nscheduler = 'maui'\nparameters = {{depth = {}}}"]
)
def test_values_of_campaigns(run: Run, tmp_path: Path, value: str, place: str) -> None:
    """Nesting and numbers of campaign files are bounded."""
    text, expected = VALUES[value]
    path = tmp_path / "campaign.toml"
    path.write_text(place.format(text))
    shown = run("bench", path, "-o", tmp_path / "out")
    assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
    assert shown.stderr.startswith(f"cpsched: {path}: 1 fault\n  ")
    assert shown.stderr.endswith(f"{expected}\n")


@pytest.mark.parametrize("option", ["queue", "partition"])
@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000, "x" * 257])
def test_names_of_logs(run: Run, tmp_path: Path, window: Window, option: str, value: str) -> None:
    """Names of queues and partitions are as long as names may be."""
    log = tmp_path / "log.swf"
    log.write_text(LOG)
    commands = [("convert", log, window.instance_file, "-o", tmp_path / "window.json"), ("simulate", log)]
    for command in commands:
        shown = run(*command, f"--{option}", value)
        assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
        assert f"Expected a name of at most 256 characters, got {len(value)}." in shown.stderr


@pytest.mark.parametrize("option", ["status", "first", "jobs", "cores-per-chunk", "now"])
def test_numbers_of_logs(run: Run, tmp_path: Path, window: Window, option: str) -> None:
    """Numbers that Python itself refuses are refused by their option."""
    log = tmp_path / "log.swf"
    log.write_text(LOG)
    shown = run("convert", log, window.instance_file, "-o", tmp_path / "window.json", f"--{option}", "9" * 5000)
    assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
    assert f"Invalid value for '--{option}'" in shown.stderr


def test_a_campaign_with_a_path_longer_than_any(run: Run, repository: Path, tmp_path: Path) -> None:
    """The path is told, cut short, with all other faults."""
    path = repository / "tests" / "cases" / "campaign-path.toml"
    shown = run("bench", path, "-o", tmp_path / "out")
    assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
    (line,) = [line for line in shown.stderr.splitlines() if line.startswith("  page: ")]
    assert line.startswith(f'  page: Expected a file, got "{"x" * 63}…", which does not exist in ')


def test_campaigns_that_are_no_files(run: Run, tmp_path: Path) -> None:
    """A pipe without a writer and a device are refused soon."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        with waiting_for_writers(0.1):
            shown = run("bench", path, "-o", tmp_path / "out")
        assert (shown.exit_code, shown.stdout) == (ExitCode.BAD_INPUT, "")
        assert shown.stderr.startswith(f"cpsched: {path}: 1 fault\n  file: Expected a readable file, got: n")
