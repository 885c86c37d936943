"""``cpsched convert``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.formats import read_instance
from tests.cli.conftest import Run, Window

LOG = """; Version: 2.2
1 100 5 60 2 -1 -1 2 120 -1 1 7 1 -1 1 -1 -1 -1
2 130 5 60 1 -1 -1 1 600 -1 1 8 1 -1 1 -1 -1 -1
3 160 5 60 1 -1 -1 1 -1 -1 1 8 1 -1 1 -1 -1 -1
4 190 5 -1 1 -1 -1 1 -1 -1 1 8 1 -1 1 -1 -1 -1
this is no job
"""


@pytest.fixture
def machine(window: Window) -> Path:
    """Return the file of the machine: the window without its jobs."""
    window.instance["jobs"] = []
    return window.write("machine.json", window.instance)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a gzipped log of four jobs and a faulty line; the last job has no walltime."""
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    return path


def test_a_log_becomes_an_instance(run: Run, log: Path, machine: Path, tmp_path: Path) -> None:
    """Three of the four jobs can be taken; what was left out or adjusted is said on stderr."""
    out = tmp_path / "window.json.gz"
    shown = run("convert", log, machine, "-o", out)
    assert (shown.exit_code, shown.stdout) == (ExitCode.FINE, f"3 jobs in {out}\n")
    instance = read_instance(out)
    assert [(job.id, job.submit, job.walltime) for job in instance.jobs] == [
        ("1", 0, 120),
        ("2", 30, 600),
        ("3", 60, 60),
    ]
    assert [line.partition(":")[0] for line in shown.stderr.splitlines()] == ["faulty line", "left out", "adjusted"]


def test_the_window_is_chosen(run: Run, log: Path, machine: Path, tmp_path: Path) -> None:
    """--submitted, --first, --jobs and --now choose the window; chunks can be whole nodes."""
    out = tmp_path / "window.json"
    shown = run(
        "convert", log, machine, "-o", out,
        "--submitted", 120, 1000, "--first", 0, "--jobs", 1, "--now", 140, "--cores-per-chunk", 4,
    )  # fmt: skip
    assert shown.exit_code == ExitCode.FINE
    instance = read_instance(out)
    assert [job.id for job in instance.jobs] == ["2"]
    assert instance.now == 10
    assert instance.jobs[0].request.chunks[0].resources == {"cores": 4}


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (("--status", 1), ["1", "3"]),
        (("--status", 1, "--status", 0), ["1", "2", "3"]),
        (("--queue", 2), ["2"]),
        (("--queue", -1), ["3"]),
        (("--partition", 4, "--status", 1), ["3"]),
        (("--status", 1, "--first", 1, "--jobs", 1), ["3"]),
    ],
)
def test_jobs_are_chosen_by_what_the_log_says_of_them(
    run: Run, machine: Path, tmp_path: Path, options: tuple[object, ...], chosen: list[str]
) -> None:
    """Status, queue and partition choose jobs, -1 being unknown, before --first and --jobs do; others are counted."""
    log, out = tmp_path / "log.swf", tmp_path / "window.json"
    rows = [(1, 1, 1, 3), (2, 0, 2, 4), (3, 1, -1, 4)]
    log.write_text(
        "".join(f"{n} {n} 0 60 1 -1 -1 1 60 -1 {s} 7 1 -1 {queue} {part} -1 -1\n" for n, s, queue, part in rows)
    )
    shown = run("convert", log, machine, "-o", out, *options)
    assert shown.exit_code == ExitCode.FINE
    assert [job.id for job in read_instance(out).jobs] == chosen
    counts = [int(line.split()[0]) for line in shown.stderr.splitlines() if "x left out by --" in line]
    assert sum(counts) == 3 - len(chosen)


def test_filters_that_leave_nothing_say_what_they_kept_out(run: Run, log: Path, machine: Path, tmp_path: Path) -> None:
    """The error stands below how many jobs each filter left out."""
    shown = run("convert", log, machine, "-o", tmp_path / "out.json", "--queue", 9)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "4 x left out by --queue" in shown.stderr
    assert "No job of the log is in this window." in shown.stderr
    assert run("convert", log, machine, "-o", tmp_path / "out.json", "--queue", "debug").exit_code == ExitCode.BAD_INPUT


@pytest.mark.parametrize("options", [("--submitted", 5, 5), ("--first", 100), ("--jobs", 0), ("--first", -1)])
def test_a_window_without_jobs_is_refused(
    run: Run, log: Path, machine: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    """A window that makes no sense or holds no job ends with exit code 2, and nothing is written."""
    out = tmp_path / "window.json"
    assert run("convert", log, machine, "-o", out, *options).exit_code == ExitCode.BAD_INPUT
    assert not out.exists()


def test_the_machine_has_no_jobs(run: Run, log: Path, window: Window, tmp_path: Path) -> None:
    """An instance with jobs is no machine."""
    out = tmp_path / "out.json"
    shown = run("convert", log, window.instance_file, "-o", out)
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "no jobs in a cluster file" in shown.stderr
    assert not out.exists()


def test_a_file_that_is_no_log_is_refused(run: Run, machine: Path, tmp_path: Path) -> None:
    """A log without a job line is a bad document, and its bytes do not reach the terminal."""
    log = tmp_path / "bad.swf"
    log.write_bytes(b"\x1b[2J no log\n")
    shown = run("convert", log, machine, "-o", tmp_path / "out.json")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "\x1b" not in shown.output
