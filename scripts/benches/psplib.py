"""Solve the project instances of PSPLIB: how many are proven optimal, and how many are as good as the best known.

Sets of RCPSP/max (files ``.sch``) have general time lags; some of their projects have no plan of all activities.
"""

from __future__ import annotations

import argparse
import csv
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarking.measure import print_table, say

from cpsched.domain import DependencyType, Instance, Job
from cpsched.portfolio import ENGINES, prepare, solve
from tests.workloads.psplib import lags_window, project_window

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "psplib"
#: Shares wanted by set: (proven optimal, as good as the best known).
WANTED = {"j30": (1.0, 1.0), "j60": (0.0, 0.91)}
#: What the list of a set says of a project that has no plan of all activities.
_NONE = "unsat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one project."""

    name: str
    value: float
    bound: float | None
    #: The longest path of precedences: no project is shorter.
    critical_path: int
    #: The least makespan that anybody has published, None where the set does not say.
    best_known: int | None
    is_proven: bool
    seconds: float
    #: Whether it has all activities, and whether any plan can.
    is_whole: bool = True
    has_plan: bool = True

    @property
    def is_best(self) -> bool:
        """Whether the project is as short as the best one known, or proven to be as short as any."""
        is_short = self.best_known is not None and self.value <= self.best_known
        return self.is_proven or (self.is_whole and is_short)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("sets", nargs="*", type=Path, help="folders of .sm or .sch files, or .tar.zst archives of one")
    parser.add_argument("--engine", choices=ENGINES, default="portfolio")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds for each project (default: 10)")
    parser.add_argument("--workers", type=int, default=2, help="cores (default: 2)")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N projects of each set")
    parser.add_argument("--sample", type=int, metavar="N", help="N projects of each set, always the same")


def run(options: argparse.Namespace) -> None:
    """Print a table of sets, and one of the projects that are left."""
    sets = options.sets or sorted(REAL.glob("*.tar.zst"))
    if not sets:
        sys.exit("Expected sets of projects as arguments, got none; https://www.om-db.wi.tum.de/psplib has them")
    options.budget = 1.0 if options.quick else options.budget
    prepare(options.engine)
    results = {}
    for path in sets:
        with tempfile.TemporaryDirectory(prefix="cpsched-psplib-") as scratch:
            folder = unpacked(path, Path(scratch))
            chosen = projects(folder, 2 if options.quick else options.limit, options.sample)
            if not chosen:
                sys.exit(f"Expected .sm or .sch files in {path}, got none")
            results[path.name.partition(".")[0]] = [solved(file, options) for file in chosen]
    print_sets(results, options)
    print_open(results)


# --- where the projects are ------------------------------------------------------------------------------------------


def unpacked(path: Path, scratch: Path) -> Path:
    """Return the folder of a set; an archive is unpacked into `scratch`, by tar and zstd, which must be there."""
    if path.is_dir():
        return path
    command = ["tar", "--zstd", "-xf", str(path.resolve()), "-C", str(scratch)]
    subprocess.run(command, check=True)  # noqa: S603 - our own command
    return scratch


def projects(folder: Path, limit: int | None, sample: int | None) -> list[Path]:
    """Return the files of a set in the order of their numbers, or some of them."""
    found = sorted(
        (file for file in folder.rglob("*") if file.is_file() and file.suffix.lower() in (".sm", ".sch")),
        key=lambda file: (len(file.name), file.name),
    )
    if sample is not None and sample < len(found):
        found = sorted(random.Random(0).sample(found, sample), key=found.index)
    return found[:limit]


def known_of(file: Path) -> str | None:
    """Return what the set's list says of a project, if it is there: a length, ``82..87`` for an open one, of which 87
    was found, or ``unsat``.
    """
    listed = file.parent / "optimum" / "optimum.csv"
    if not listed.exists():
        return None
    with listed.open(encoding="utf-8", newline="") as rows:
        return {row["problem"]: row["optimum"] for row in csv.DictReader(rows)}.get(file.name)


# --- solving ---------------------------------------------------------------------------------------------------------


def solved(file: Path, options: argparse.Namespace) -> Result:
    """Solve the project of a file."""
    window = lags_window if file.suffix.lower() == ".sch" else project_window
    return solve_window(window(file.read_text(encoding="utf-8"), file.stem), options, known_of(file))


def solve_window(instance: Instance, options: argparse.Namespace, known: str | None = None) -> Result:
    """Solve one project; the plan has passed the verifier. `known`: see `known_of`."""
    begin = time.perf_counter()
    plan = solve(instance, engine=options.engine, budget=options.budget, workers=options.workers)
    bound, is_whole = plan.objective.bound, not plan.waiting_room
    result = Result(
        name=instance.name,
        value=plan.objective.value,
        bound=bound,
        critical_path=critical_path(instance),
        best_known=None if known in (None, _NONE) else int(known.rpartition("..")[2]),
        is_proven=is_whole and bound is not None and bound >= plan.objective.value - 1e-6,
        seconds=time.perf_counter() - begin,
        is_whole=is_whole,
        has_plan=known != _NONE,
    )
    if is_whole and not result.has_plan:
        sys.exit(f"{result.name}: its set says that no plan has all activities, the verifier accepts one")
    if is_whole and bound is not None and result.best_known is not None and bound > result.best_known:
        sys.exit(f"{result.name}: the bound {bound:g} is above {result.best_known}, which somebody has found")
    say(f"{result.name}: {result.value:g}, {_said(result)}, {result.seconds:.1f} s")
    return result


def _said(result: Result) -> str:
    if not result.has_plan:
        return "none has all activities"
    return ("proven" if result.is_proven else "open") if result.is_whole else "without some activities"


def critical_path(instance: Instance) -> int:
    """Return the length of the longest chain of jobs."""
    jobs: Mapping[str, Job] = {job.id: job for job in instance.jobs}
    starts: dict[str, int] = {}
    pending = list(jobs)
    while pending:
        job = jobs[pending[-1]]
        missing = [link.job for link in job.after if link.job not in starts]
        if missing:
            pending += missing
            continue
        # least seconds from start to start
        lags = [
            (link, link.delay + (0 if link.type is DependencyType.AFTER else jobs[link.job].shortest))
            for link in job.after
        ]
        starts[pending.pop()] = max((starts[link.job] + lag for link, lag in lags), default=0)
    return max((start + jobs[name].shortest for name, start in starts.items()), default=0)


# --- tables ----------------------------------------------------------------------------------------------------------


def print_sets(results: Mapping[str, Sequence[Result]], options: argparse.Namespace) -> None:
    """Print a row for each set."""
    header = ["set", "projects with a plan", "proven optimal", "wanted", "best known or proven", "wanted",
              "over the best known", "over the critical path", "activities left out", "seconds, mean",
              "seconds, most"]  # fmt: skip
    rows = []
    for name, of_all in results.items():
        of_set = [result for result in of_all if result.has_plan]
        wanted = WANTED.get(name, (0.0, 0.0))
        proven, best = (share([getattr(result, key) for result in of_set]) for key in ("is_proven", "is_best"))
        whole = [result for result in of_set if result.is_whole]
        known = [result.value / result.best_known - 1 for result in whole if result.best_known]
        rows.append(
            [
                name,
                f"{len(of_set)}",
                f"{proven:.1%}",
                f"{wanted[0]:.0%}" if wanted[0] else "-",
                f"{best:.1%}",
                f"{wanted[1]:.0%}" if wanted[1] else "-",
                f"{mean(known):+.2%}" if known else "-",
                f"{mean(result.value / result.critical_path - 1 for result in whole):+.1%}" if whole else "-",
                f"{len(of_set) - len(whole)}",
                f"{mean(result.seconds for result in of_set):.2f}",
                f"{max(result.seconds for result in of_set):.2f}",
            ]
        )
    note = (
        f"Engine `{options.engine}`, {options.budget:g} s and {options.workers} workers for each project, or until it "
        "is proven. Every plan has passed the verifier. The critical path is the longest chain of precedences."
    )
    print_table("Projects of PSPLIB", header, rows, note)


def print_open(results: Mapping[str, Sequence[Result]]) -> None:
    """Print the projects that are longer than the best known, or neither known nor proven."""
    rows = [
        [
            result.name,
            f"{result.value:g}",
            "-" if result.best_known is None else f"{result.best_known}",
            "-" if result.bound is None else f"{result.bound:g}",
            f"{result.critical_path}",
        ]
        for of_set in results.values()
        for result in of_set
        if result.has_plan and not result.is_best
    ]
    if rows:
        print_table("Longer than the best known", ["project", "found", "best known", "bound", "critical path"], rows)


def share(told: Sequence[bool]) -> float:
    """Return the share of those that are true."""
    return sum(told) / len(told) if told else 0.0
