"""When a log happened: its header's start becomes the epoch of instances."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from cpsched.formats.logs import LogAnomaly, LogWindow, log_to_instance
from tests.formats.swf_logs import line, log_of, machine


def window_of(
    tmp_path: Path, *header: str, epoch: str | None = None, submits: tuple[int, ...] = (100, 160)
) -> LogWindow:
    """Return the window of a log with jobs at these seconds."""
    jobs = [line(number=number, submit=submit) for number, submit in enumerate(submits, start=1)]
    described = machine() if epoch is None else replace(machine(), epoch=datetime.fromisoformat(epoch))
    return log_to_instance(log_of(tmp_path, *header, *jobs), described)


@pytest.mark.parametrize(
    ("header", "epoch"),
    [
        (["; UnixStartTime: 1296571124", "; TimeZoneString: Europe/Paris"], "2011-02-01T15:40:24+01:00"),
        (["; UnixStartTime: 893466664", "; TimeZoneString: US/Pacific"], "1998-04-24T18:12:44-07:00"),
        (["; UnixStartTime: 893466664", "; TimeZone: -28800"], "1998-04-24T17:12:44-08:00"),
        (["; UnixStartTime: 893466664", "; TimeZoneString: Nowhere/At all"], "1998-04-25T01:12:44+00:00"),
        (["; UnixStartTime: 893466664", "; TimeZone: 90000"], "1998-04-25T01:12:44+00:00"),
        (["; UnixStartTime: 893466664"], "1998-04-25T01:12:44+00:00"),
    ],
)
def test_the_first_submission_has_a_date(tmp_path: Path, header: list[str], epoch: str) -> None:
    """Second 0 of an instance is 100 s after the start that the header says, by the clock of the log's time zone."""
    window = window_of(tmp_path, *header)
    assert window.instance.epoch is not None
    assert window.instance.epoch.isoformat() == epoch
    assert not window.adjusted


def test_what_the_machine_says_counts_more(tmp_path: Path) -> None:
    """The epoch of a cluster file is kept."""
    window = window_of(tmp_path, "; UnixStartTime: 1296571124", epoch="2020-01-01T00:00:00+01:00")
    assert window.instance.epoch == datetime.fromisoformat("2020-01-01T00:00:00+01:00")


@pytest.mark.parametrize("header", [[], ["; UnixStartTime: 0"]])
def test_nobody_says_when_it_was(tmp_path: Path, header: list[str]) -> None:
    """Logs of models have no start, or one of 0: there is no epoch, and nothing odd about that."""
    window = window_of(tmp_path, *header)
    assert (window.instance.epoch, window.adjusted) == (None, ())


@pytest.mark.parametrize(
    ("start", "submits"),
    [
        ("in spring", (0,)),
        ("-5", (0,)),
        ("9" * 14, (0,)),
        ("893466664", (10**15 - 5, 10**15)),
        ("1e9", (0,)),
        ("", (0,)),
    ],
)
def test_a_start_that_is_none_is_named(tmp_path: Path, start: str, submits: tuple[int, ...]) -> None:
    """A start that is no number, or makes no date, is told and counted; the jobs are taken all the same."""
    window = window_of(tmp_path, f"; UnixStartTime: {start}", submits=submits)
    assert window.instance.epoch is None
    assert len(window.instance.jobs) == len(submits)
    (fault,) = window.adjusted
    assert fault.path == "header UnixStartTime"
    assert window.counts[LogAnomaly.NO_CALENDAR] == 1
