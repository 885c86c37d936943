"""Stand-ins that workers can import: cells that fail, kill their worker, and count their runs.

A fake cell leaves a mark for each run in a folder that its workload's source names, so that tests can count runs in
other processes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpsched.domain import FrozenMap
from cpsched.lab.bench import RESULTS, Cell
from cpsched.lab.bench.campaign import Contender, InstanceFile, Workload
from cpsched.lab.bench.figures import rows_of
from cpsched.lab.bench.results import write_parquet


def fake_cell(
    folder: Path,
    scheduler: str,
    *,
    label: str | None = None,
    workload: str = "made-up",
    load: float | None = None,
    seed: int | None = 1,
) -> Cell:
    """Return a cell whose marks go to a folder."""
    return Cell(
        workload=Workload(name=workload, source=InstanceFile(path=folder / "none.json"), load=load, malleable=None),
        contender=Contender(
            label=label or scheduler,
            scheduler=scheduler,
            parameters=FrozenMap(),
            predict=None,
            charge_overhead=False,
        ),
        seed=seed,
        warm_up=0.0,
        cool_down=0.0,
    )


def runs_of(folder: Path, cell: Cell) -> int:
    """Return how often a cell was begun."""
    return len(list(folder.glob(f"{_mark(cell)}.*.begun")))


def fake_work(cell: Cell) -> dict[str, Any]:
    """Run a cell: ``fails`` raises an error, ``kills`` ends its process the first time, ``always-kills`` each time."""
    assert isinstance(cell.workload.source, InstanceFile)
    folder = cell.workload.source.path.parent
    number = runs_of(folder, cell)
    (folder / f"{_mark(cell)}.{number}.begun").touch()
    scheduler = cell.contender.scheduler
    if scheduler == "fails":
        raise ValueError("nothing to\nwork off")
    if scheduler == "always-kills" or (scheduler == "kills" and number == 0):
        os.kill(os.getpid(), signal.SIGKILL)
    return fake_result(wqt=float(cell.seed or 0))


def _mark(cell: Cell) -> str:
    return f"{cell.contender.label}-{cell.workload.label}-{cell.seed}"


def fake_result(*, wqt: float = 1.0, wait: float | None = 5.0, queues: Mapping[str | None, float] | None = None) -> Any:
    """Return the result of a cell with some figures; where no job is over there is no wait."""
    figures = {
        **dict.fromkeys(("jobs", "completed"), 10),
        **dict.fromkeys(("killed", "refused", "waiting", "restarts", "core_seconds", "late", "tardiness"), 0),
        **dict.fromkeys(("lost_core_seconds", "overdue", "starved"), 0),
        "wait": None if wait is None else {"mean": wait, "median": wait, "p95": wait, "max": wait},
        **dict.fromkeys(("response", "slowdown", "bounded_slowdown", "static_slowdown")),
        "wqt": wqt,
        "weighted_tardiness": 0.0,
        "unfairly_delayed": None,
    }
    groups = [{"key": key, "figures": figures | {"wqt": value}} for key, value in (queues or {}).items()]
    return {
        "cell": "made up",
        "jobs": 10,
        "seconds": 0.5,
        "remarks": {},
        "counters": {},
        "summary": {
            "total": figures,
            "cut": 0,
            "makespan": 100,
            "begin": 0,
            "end": 100,
            "allocated": 0.5,
            "effective": 0.5,
            "mean_queue_length": 1.5,
            "max_queue_length": 3,
            "jain": None,
            "decisions": {"count": 10, "mean": 0.001, "p50": 0.001, "p99": 0.002},
            "by_queue": groups,
            "by_size": [],
            "by_class": [],
            "by_day": [],
            "by_user": [],
        },
    }


def fake_campaign(folder: Path) -> None:
    """Write the results of a campaign with two policies and two seeds into a folder."""
    findings = [
        (fake_cell(folder, policy, seed=seed, load=0.5), row)
        for policy in ("a", "b")
        for seed in (1, 2)
        for row in rows_of(fake_result(wqt=seed, queues={"q": 1.0}))
    ]
    write_parquet(findings, folder / RESULTS)
