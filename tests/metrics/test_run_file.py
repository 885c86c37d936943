"""A simulation as a file: what is written is read, and what is no such file is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cpsched.errors import DocumentError
from cpsched.metrics import Ending, Runs, SimulatedRun, read_run, write_run
from tests.metrics.made_runs import Row, runs_of

EVIL = '=cmd|"<img src=x>\x00\ud800'
RUNS = runs_of(
    Row(0, 5, 25, cores=32, user=EVIL, queue="q", runtime=20),
    Row(1, 25, 125, cores=4, ending=Ending.KILLED, queue=EVIL, gpus=2),
    Row(2, ending=Ending.REFUSED, attempts=0),
)
RUN = SimulatedRun(
    workload=EVIL,
    policy="sjf",
    capacity={"gpus": 4, "cores": 32, "l": 3},
    runs=RUNS,
    decision_seconds=np.array([0.25, 0.5]),
    elapsed=1.5,
    is_whole=False,
    remarks=("smith, the usual rule", EVIL),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a simulation."""
    path = tmp_path / "run.npz"
    write_run(path, RUN)
    return path


def test_what_is_written_is_read(path: Path) -> None:
    """Every column, name and number comes back, whatever is in a name."""
    run = read_run(path)
    assert (run.workload, run.policy, run.elapsed, run.is_whole) == (EVIL, "sjf", 1.5, False)
    assert run.capacity == {"gpus": 4, "cores": 32, "l": 3}
    assert run.decision_seconds.tolist() == [0.25, 0.5]
    for field in fields(Runs):
        ours, theirs = getattr(run.runs, field.name), getattr(RUNS, field.name)
        if field.name == "asked":
            assert {name: column.tolist() for name, column in ours.items()} == {
                name: column.tolist() for name, column in theirs.items()
            }
        else:
            assert list(ours) == list(theirs), field.name
    assert run.local_time(5) is None
    assert run.remarks == RUN.remarks


def test_the_same_simulation_is_the_same_file(path: Path) -> None:
    """No time of writing is in it."""
    before = path.read_bytes()
    write_run(path, RUN)
    assert path.read_bytes() == before


def changed(path: Path, members: dict[str, Any], **about: Any) -> None:
    """Write a file again with other members (None: without), and other entries in ``about``."""
    with np.load(path) as found:
        columns = {name: found[name] for name in found.files}
    text = json.loads(columns["about"].tobytes()) | about
    columns["about"] = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    columns = {name: column for name, column in (columns | members).items() if column is not None}
    np.savez(path, **columns)


@pytest.mark.parametrize(
    ("members", "about", "said"),
    [
        ({"start": None}, {}, "'start"),
        ({"start": np.zeros(2, dtype=np.int64)}, {}, "columns of one length"),
        ({"start": np.zeros(3)}, {}, "columns of one length that belong together"),
        ({"ending": np.array([9, 2, 1])}, {}, "an ending that does not exist"),
        ({"users": np.array([0, 1, 7])}, {}, "columns of one length that belong together"),
        ({}, {"format": "cpsched-plan/1"}, "cpsched-plan/1"),
        ({}, {"ids": 3}, "ids, got 3"),
        ({}, {"capacity": {"cores": "many"}}, "many"),
        ({}, {"epoch": "yesterday"}, "yesterday"),
        ({}, {"time_zone": "Nowhere/At_All"}, "Nowhere"),
        ({"about": np.frombuffer(b"[1]", dtype=np.uint8)}, {}, "got: [1]"),
        ({"about": np.frombuffer(b"{", dtype=np.uint8)}, {}, "cpsched-run/1"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    path: Path, members: dict[str, Any], about: dict[str, Any], said: str
) -> None:
    """Each fault is told in one error with the file's name."""
    changed(path, members, **about)
    with pytest.raises(DocumentError) as error:
        read_run(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"{}", b"\x80\x04."])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """Neither text nor a broken archive nor a pickle is a simulation."""
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match="Expected a simulation"):
        read_run(path)
    path.unlink()
    with pytest.raises(DocumentError, match="No such file"):
        read_run(path)


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    """A column of objects would be code."""
    path = tmp_path / "run.npz"
    np.savez(path, about=np.array([{}], dtype=object))
    with pytest.raises(DocumentError, match="Expected a simulation"):
        read_run(path)
