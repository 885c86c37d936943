"""Measure the planner as a whole: processes, memory, a large window; beside the naive twin."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarking.measure import Sample, print_table, repeat, run_command, say, verdict
from benchmarking.twin import TWIN_HEADER, TWIN_NOTE, compare
from benchmarking.workload import OCULUS_NODES, Load, instance_of

from cpsched.formats import instance_to_document, plan_to_document, read_instance, write_instance
from cpsched.planner import Planner, warmup
from cpsched.portfolio import solve
from cpsched.verify import verify

ROOT = Path(__file__).resolve().parents[2]
PROBES = ROOT / "scripts" / "benchmarking" / "probes.py"
CPSCHED = (sys.executable, "-m", "cpsched")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is measured, and how often."""

    repetitions: int
    #: Jobs of a window, one of a real trace where there is one here.
    window: int
    nodes: int
    jobs: int
    #: Jobs of the plan whose memory is measured.
    most_jobs: int
    #: (nodes, jobs, seconds at the most, MB at the most) of large windows.
    large: tuple[tuple[int, int, float | None, float | None], ...]
    #: Jobs of the window that the naive twin plans.
    twins_window: int


FULL = Sizes(
    repetitions=3,
    window=800,
    nodes=OCULUS_NODES,
    jobs=10_000,
    most_jobs=15_000,
    large=((5040, 10_000, 2.0, None), (10_000, 50_000, 60.0, 4000.0)),
    twins_window=200,
)
QUICK = Sizes(
    repetitions=1,
    window=50,
    nodes=32,
    jobs=200,
    most_jobs=300,
    large=((64, 300, None, None),),
    twins_window=50,
)

#: Seconds and megabytes, at most; they hold for the full sizes.
SOLVE_WANTED, MEMORY_WANTED = 2.0, 400.0


def window_of(jobs: int) -> Path:
    """Return a Eurora window of so many jobs: a real one where there is one here, else one that ships with cpsched."""
    real = ROOT.parent / "shared" / "data" / "eurora" / f"window-{jobs:04}-0.json.gz"
    return real if real.exists() else ROOT / "instances" / f"eurora-like-{jobs:04}.json.gz"


def probe(*arguments: str) -> dict[str, float]:
    """Run one of the probes in a process of its own, and return what it measured."""
    command = [sys.executable, str(PROBES), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - our own file
    return dict(json.loads(done.stdout.splitlines()[-1]))


# --- tables ---------------------------------------------------------------------------------------------------------


def print_process(sizes: Sizes, folder: Path, *, judged: bool) -> None:
    """Print how long ``cpsched solve`` takes with warm kernels, and on what."""
    window, output = window_of(sizes.window), folder / "plan.json"
    say(f"cpsched solve on {window.name}")
    command = [*CPSCHED, "solve", str(window), "--engine", "planner", "-o", str(output), "--quiet"]
    run_command(command)
    whole, wall = (
        Sample(seconds) for seconds in zip(*(run_command(command) for _ in range(sizes.repetitions)), strict=True)
    )
    found = [probe("stages", str(window), str(output)) for _ in range(sizes.repetitions)]
    samples = {name: Sample(tuple(stages[name] for stages in found)) for name in found[0]}
    again = samples.pop("plan again")
    rest = whole.median - sum(sample.median for sample in samples.values())
    rows = [("whole process", whole.text(2), "100%", verdict(whole, SOLVE_WANTED if judged else None, at_most=True))]
    rows += [(name, s.text(3), f"{s.median / whole.median:.0%}", "") for name, s in samples.items()]
    rows.append(("interpreter, command line, exit", f"{rest:.3f}", f"{rest / whole.median:.0%}", ""))
    note = (
        f"`cpsched solve {window.name} --engine planner -o plan.json --quiet`, kernels cached. The stages were "
        f"measured one by one in another process. On the wall the whole took {wall.text(2)} s. "
        f"To plan the same window a second time there took {again.text(3)} s."
    )
    title = f"`cpsched solve` on a Eurora window of {sizes.window} jobs"
    print_table(title, ("stage", "seconds", "share", "target"), rows, note)


def print_memory(sizes: Sizes, folder: Path, *, judged: bool) -> None:
    """Print the peak memory of processes that hold a large plan."""
    say(f"memory with {sizes.most_jobs:,} planned jobs")
    found = probe("planner-memory", str(sizes.nodes), str(sizes.most_jobs))
    document = folder / "many.json"
    write_instance(instance_of(Load(nodes=sizes.nodes, jobs=sizes.most_jobs, rounding=1)), document)
    solving = probe(
        "solve-memory", "solve", str(document), "--engine", "planner", "-o", str(folder / "many-plan.json"), "--quiet"
    )
    wanted = MEMORY_WANTED if judged else None
    figures = {
        "Python with the kernels loaded, nothing planned": (found["kernels loaded"], None),
        "planner: instance, ledger and timeline, planned and backfilled": (found["planned"], wanted),
        "the same, and the plan as values": (found["plan as values"], wanted),
        "`cpsched solve`: all that, and both documents and the verifier": (solving["whole"], wanted),
    }
    rows = [
        (name, f"{megabytes:,.0f}", verdict(Sample((megabytes,)), target, at_most=True))
        for name, (megabytes, target) in figures.items()
    ]
    title = f"Memory with {sizes.most_jobs:,} planned jobs, {sizes.nodes:,} nodes, continuous durations"
    print_table(title, ("process", "peak, MB", "target"), rows)


def print_large(sizes: Sizes) -> None:
    """Print how long plans of large windows take, on one core, and their memory."""
    rows = []
    for nodes, jobs, seconds, megabytes in sizes.large:
        say(f"{jobs:,} jobs on {nodes:,} nodes")
        found = [probe("large-plan", str(nodes), str(jobs)) for _ in range(sizes.repetitions)]
        made, planned, peak = (Sample(tuple(one[name] for one in found)) for name in ("made", "planned", "peak"))
        whole = Sample(tuple(one["made"] + one["planned"] for one in found))
        row = f"{nodes:,}", f"{jobs:,}", made.text(2), planned.text(2), whole.text(2)
        rows.append((*row, verdict(whole, seconds, at_most=True), peak.text(0), verdict(peak, megabytes, at_most=True)))
    header = ("nodes", "jobs", "`Planner(instance)`, s", "`plan()`, s", "both, s", "target", "peak, MB", "target")
    print_table("Large windows, continuous durations", header, rows)


def print_stages(sizes: Sizes) -> None:
    """Print what the work around the kernels costs."""
    say(f"a window of {sizes.jobs:,} jobs, stage by stage")
    instance = instance_of(Load(nodes=sizes.nodes, jobs=sizes.jobs, rounding=1))
    times = sizes.repetitions
    planner = Planner(instance)
    planner.plan()
    document, plan = instance_to_document(instance), solve(instance, engine="planner")
    stages = {
        "`Planner(instance)`: admission, columns, demands": repeat(times, lambda: instance, Planner),
        "`plan()`: search, map, book": repeat(times, lambda: Planner(instance), Planner.plan),
        "`backfill()` to the fix point": repeat(times, lambda: planner, Planner.backfill),
        "`outcome()`: the plan as values": repeat(times, lambda: planner, Planner.outcome),
        "plan as a document": repeat(times, lambda: plan, plan_to_document),
        "`verify()`": repeat(times, lambda: plan_to_document(plan), lambda planned: verify(document, planned)),
    }
    rows = [(name, sample.text(3)) for name, sample in stages.items()]
    title = f"A window of {sizes.jobs:,} jobs on {sizes.nodes:,} nodes, continuous durations"
    print_table(title, ("stage", "seconds"), rows)


def print_twin(sizes: Sizes) -> None:
    """Print the planner beside its naive twin on a Eurora window."""
    window = window_of(sizes.twins_window)
    say(f"the naive twin on {window.name}")
    print_table("Beside the naive twin", TWIN_HEADER, [compare(read_instance(window)).row()], TWIN_NOTE)


#: Its figures are processor time: it keeps to one core.
IS_PINNED = True


def run(arguments: argparse.Namespace) -> None:
    """Measure all, and print it."""
    sizes, judged = (QUICK, False) if arguments.quick else (FULL, True)
    say("loading the kernels (the first time this compiles them)")
    warmup()
    with tempfile.TemporaryDirectory(prefix="cpsched-bench-") as name:
        folder = Path(name)
        print_process(sizes, folder, judged=judged)
        print_memory(sizes, folder, judged=judged)
    print_large(sizes)
    print_stages(sizes)
    print_twin(sizes)
