"""Logs in Standard Workload Format: read as they are, and written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.errors import DocumentError
from cpsched.formats.swf import read_swf, write_swf
from tests.formats.swf_logs import LOG, line, log_of, write
from tests.sizes import examples


def test_fields_and_header_are_read(tmp_path: Path) -> None:
    """Unknown fields are None, means stay floats, repeated keys keep all values, further columns stay text."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    assert log.header == {"Version": ("2.2",), "Computer": ("IBM SP2",), "Queue": ("1 express", "2 normal")}
    assert log.comments == ("a line of prose",)
    assert log.faults == ()
    first, second, third = log.jobs
    assert (first.number, first.submit, first.wait, first.run_time, first.processors) == (7, 100, 5, 300, 4)
    assert (first.cpu_time, first.used_memory, first.requested_processors) == (142.0, None, 8)
    assert (first.requested_time, first.requested_memory, first.status) == (600, 4096, 1)
    assert (first.user, first.group, first.executable, first.queue, first.partition) == (12, 3, 5, 1, None)
    assert (first.preceding_job, first.think_time, first.extra) == (None, None, ())
    assert (second.wait, second.run_time, second.processors) == (None, None, None)
    assert [job.line for job in log.jobs] == [7, 8, 10]
    assert (third.used_memory, third.extra) == (12.5, ("{4,5}", "q_1d"))


def test_gzip_is_told_by_its_bytes(tmp_path: Path) -> None:
    """A compressed log reads the same, whatever it is called."""
    packed = tmp_path / "log.swf"
    packed.write_bytes(gzip.compress(LOG.encode()))
    assert read_swf(packed).jobs == read_swf(write(tmp_path / "plain.txt", LOG)).jobs


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1 2 3", "Expected 18 fields, got 3"),
        (line().replace("60", "1h"), "Expected a number in field 9, got '1h'"),
        (line(number=-1), "Expected a job number >= 0 in field 1, got -1"),
        (line(submit=-1), "Expected a submit time in field 2, got -1 (unknown)"),
        (line(run=float("nan")), "Expected a number within ±10^15 in field 4, got nan"),
        (line(procs=10**18), "Expected a number within ±10^15 in field 8, got 1000000000000000000"),
        (
            line(procs=10**400),
            "Expected a number within ±10^15 in field 8, got 1000000000000000000000000000000000000000",
        ),
    ],
)
def test_odd_lines_are_collected_with_line_and_reason(tmp_path: Path, bad: str, reason: str) -> None:
    """A line that is no job is a fault with its number, and the lines around it are read."""
    log = log_of(tmp_path, line(number=1), "; Note: x", bad, line(number=2))
    assert [job.number for job in log.jobs] == [1, 2]
    assert [(fault.path, fault.message) for fault in log.faults] == [("line 3", reason)]


def test_fractions_are_rounded_up(tmp_path: Path) -> None:
    """A run time of 12.2 s needs 13 whole seconds, and a float that is whole stays what it is."""
    (job,) = log_of(tmp_path, line(run=12.2, time=60.0)).jobs
    assert (job.run_time, job.requested_time) == (13, 60)


@pytest.mark.parametrize(
    "content",
    [
        b"\x1f\x8b nonsense",
        gzip.compress(LOG.encode(), mtime=0)[:-20],
        b"hello\n",
        b"\x00" * 100,
        b"",
        b"; only: words",
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes) -> None:
    """Damaged gzip files, empty ones and those without a job line are a DocumentError that names the file."""
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match=r"log\.swf"):
        read_swf(path)


def test_missing_log_is_refused(tmp_path: Path) -> None:
    """A file that is not there is a DocumentError, too."""
    with pytest.raises(DocumentError, match="No such file"):
        read_swf(tmp_path / "none.swf")


@given(content=st.binary(max_size=300) | st.text(alphabet="0123456789-.; e\n", max_size=300).map(str.encode))
@examples(60)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """Whatever the file holds: each line is a job, a fault, a comment or empty, or the file is refused."""
    path = tmp_path_factory.getbasetemp() / "any.swf"
    path.write_bytes(content)
    try:
        log = read_swf(path)
    except DocumentError:
        return
    lines = [text for text in content.decode(errors="replace").split("\n") if text.strip()]
    comments = [text for text in lines if text.strip().startswith(";")]
    assert len(log.jobs) + len(log.faults) == len(lines) - len(comments)


_numbers = st.integers(0, 10**15)
_unknown = st.none() | _numbers
_means = st.none() | st.floats(0, 10**15)
_rows = st.tuples(_numbers, _numbers, *[_unknown] * 3, _means, _means, *[_unknown] * 11)


@given(rows=st.lists(_rows, min_size=1, max_size=5), packed=st.booleans())
@examples(100)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float | None, ...]], packed: bool
) -> None:
    """Rows of 18 numbers survive their log, plain and packed, with None for what is unknown."""
    path = tmp_path_factory.getbasetemp() / ("out.swf.gz" if packed else "out.swf")
    write_swf(path, rows, header={"Computer": "a machine: ours", "MaxProcs": "8"})
    log = read_swf(path)
    assert [job[:18] for job in log.jobs] == rows
    assert log.header == {"Computer": ("a machine: ours",), "MaxProcs": ("8",)}
    assert log.faults == log.comments == ()
    assert path.read_bytes().startswith(b"\x1f\x8b") == packed


def test_a_log_is_written_as_it_was_read(tmp_path: Path) -> None:
    """The jobs of a log are rows themselves; arrays of other libraries give numbers that are no Python integers."""
    log = read_swf(write(tmp_path / "log.swf", LOG))
    rows: Any = log.jobs  # mypy sees no sequence of numbers in a named tuple that has one of texts at its end
    write_swf(tmp_path / "copy.swf", rows)
    copied = read_swf(tmp_path / "copy.swf").jobs
    assert [job[:18] for job in copied] == [job[:18] for job in log.jobs]
    columns = np.array([[7, 100, 5, 300, 4, -1, -1, 8, 600, -1, 1, 12, 3, -1, 1, -1, -1, -1]])
    write_swf(tmp_path / "array.swf", columns)
    assert (tmp_path / "array.swf").read_text() == "7 100 5 300 4 -1 -1 8 600 -1 1 12 3 -1 1 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("row", "header"),
    [
        ((1, 2, 3), {}),
        ((1, 2, float("nan"), *range(15)), {}),
        (range(18), {"Key": "two\nlines"}),
        (range(18), {"": "no key"}),
        (range(18), {"A: b": "two keys"}),
    ],
)
def test_what_no_log_can_hold_is_not_written(tmp_path: Path, row: tuple[float, ...], header: dict[str, str]) -> None:
    """A short row, a number that is none and a header of two lines are mistakes, and there is no file."""
    with pytest.raises(ValueError, match="need"):
        write_swf(tmp_path / "out.swf", [row], header=header)
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A folder that is not there is a DocumentError."""
    with pytest.raises(DocumentError, match="Expected to write it"):
        write_swf(tmp_path / "none" / "out.swf", [tuple(range(18))])
