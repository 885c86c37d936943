"""Small logs in Standard Workload Format, and a machine for them."""

from __future__ import annotations

from pathlib import Path

from cpsched.domain import Amounts, Cluster, FrozenMap, Instance, NodeClass, Queue
from cpsched.formats.swf import SwfLog, read_swf

LOG = """\
; Version: 2.2
;  Computer: IBM SP2
; Queue: 1 express
; Queue: 2 normal
;
;   a line of prose
    7   100    5  300    4  142.00   -1    8   600  4096  1  12   3  5  1  -1 -1 -1
    8   160   -1   -1   -1     -1    -1    2  7200    -1  5  13  -1 -1  2  -1 -1 -1

    9   220    0   90    3     -1  12.5   -1    -1    -1  1  12   3  5 -1  -1 -1 -1 {4,5} q_1d
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def machine(*queues: str, mem: int | None = 4096) -> Instance:
    """Return 16 nodes of 4 cores without jobs."""
    resources = {"cores": 4} if mem is None else {"cores": 4, "mem": mem}
    nodes = NodeClass(names=tuple(f"n{number:02d}" for number in range(16)), resources=Amounts(resources))
    declared = {queue: Queue(expected_wait=99) for queue in queues}
    return Instance(name="machine", cluster=Cluster(classes=(nodes,)), queues=FrozenMap(declared))


def log_of(tmp_path: Path, *lines: str) -> SwfLog:
    return read_swf(write(tmp_path / "log.swf", "\n".join(lines)))


def line(**columns: int | float) -> str:
    """Return a job line; columns by their name here, all others plain."""
    values = {"number": 1, "submit": 0, "wait": 0, "run": 50, "got": 2, "cpu": -1, "used": -1, "procs": 2, "time": 60}
    values |= {
        "mem": -1,
        "status": 1,
        "user": 1,
        "group": 1,
        "exe": -1,
        "queue": -1,
        "part": -1,
        "prev": -1,
        "think": -1,
    }
    assert columns.keys() <= values.keys()
    return " ".join(str(value) for value in (values | columns).values())
