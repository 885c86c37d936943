"""Measure how soon cpsched answers: its help, a plan of a small window, and the first plan on a machine."""

from __future__ import annotations

import argparse
import compileall
import sys
import tempfile
from pathlib import Path

from benchmarking.measure import Sample, print_table, run_command, say, verdict

ROOT = Path(__file__).resolve().parents[2]
CPSCHED = (sys.executable, "-m", "cpsched")
#: Three jobs, whose best plan is the planner's.
SOLVE = (*CPSCHED, "solve", str(ROOT / "instances" / "tiny-order.json"), "--quiet")

#: What is started with compiled kernels, which few jobs do not need, and the most seconds that it may take.
STARTS = {
    "Python alone": ((sys.executable, "-c", ""), None),
    "`import cpsched`": ((sys.executable, "-c", "import cpsched"), None),
    "`cpsched --help`": ((*CPSCHED, "--help"), 0.3),
    "`cpsched solve --engine planner`, 3 jobs": ((*SOLVE, "--engine", "planner"), 0.6),
    "`cpsched solve`, 3 jobs": (SOLVE, 0.6),
}
#: What is started with an empty kernel cache, and the most seconds of processor time that it may take.
FIRST_STARTS = {
    "`cpsched solve --engine planner`, 3 jobs": ((*SOLVE, "--engine", "planner"), 30.0),
    "`cpsched solve`, 3 jobs": (SOLVE, None),
    "`cpsched warmup`": ((*CPSCHED, "warmup"), None),
}


def print_starts(repetitions: int, *, judged: bool) -> None:
    """Print how long commands take whose kernels are compiled."""
    rows = []
    for name, (command, most) in STARTS.items():
        say(name)
        run_command(command)
        found = [run_command(command) for _ in range(repetitions)]
        used, wall = (Sample(seconds) for seconds in zip(*found, strict=True))
        rows.append((name, used.text(2), wall.text(2), verdict(used, most if judged else None, at_most=True)))
    note = "The target is for processor time, in which other processes of the machine have no share."
    print_table("Starts with compiled kernels", ("process", "seconds", "on the wall, s", "target"), rows, note)


def print_first_starts(*, judged: bool) -> None:
    """Print how long first starts take, with an empty kernel cache, and the next ones."""
    rows = []
    for name, (command, most) in FIRST_STARTS.items():
        say(f"{name} with an empty kernel cache")
        with tempfile.TemporaryDirectory(prefix="cpsched-bench-") as cache:
            first, wall = run_command(command, {"XDG_CACHE_HOME": cache})
            second, _ = run_command(command, {"XDG_CACHE_HOME": cache})
        target = verdict(Sample((first,)), most if judged else None, at_most=True)
        rows.append((name, f"{first:.1f}", f"{wall:.1f}", f"{second:.2f}", target))
    print_table(
        "First starts, with an empty kernel cache", ("process", "first, s", "on the wall, s", "next, s", "target"), rows
    )


#: Its figures are processor time: it keeps to one core.
IS_PINNED = True


def run(options: argparse.Namespace) -> None:
    """Measure all, and print it."""
    is_quick = options.quick
    compileall.compile_dir(ROOT / "cpsched", quiet=1)  # as an installation does, also where Python may not
    print_starts(1 if is_quick else 7, judged=not is_quick)
    if not is_quick:
        print_first_starts(judged=True)
