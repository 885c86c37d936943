"""Measurements that need a process of their own: ``python probes.py WHAT ...`` prints one JSON object.

Nothing of cpsched is imported before the clock runs.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path


def stages(instance: str, output: str) -> dict[str, float]:
    """Do what ``cpsched solve`` does, and return the seconds that each stage takes."""
    marks = [("", time.process_time())]

    def mark(name: str) -> None:
        marks.append((name, time.process_time()))

    from cpsched.formats import load_document, parse_instance, write_plan
    from cpsched.portfolio import solve

    mark("import")
    document = load_document(instance)
    parsed = parse_instance(document)
    mark("read")
    plan = solve(parsed, engine="planner", document=document)
    mark("plan and verify, kernels loaded first")
    write_plan(plan, Path(output))
    mark("write")
    solve(parsed, engine="planner", document=document)
    mark("plan again")
    return {name: end - begin for (_, begin), (name, end) in pairwise(marks)}


def planner_memory(nodes: str, jobs: str) -> dict[str, float]:
    """Plan so many jobs from values in memory, and return the peak of this process in MB."""
    from benchmarking.workload import Load, instance_of
    from cpsched.planner import Planner, warmup

    warmup()
    before = peak_megabytes()
    planner = Planner(instance_of(Load(nodes=int(nodes), jobs=int(jobs), rounding=1)))
    planner.plan()
    planner.backfill()
    booked = peak_megabytes()
    planner.outcome()
    return {"kernels loaded": before, "planned": booked, "plan as values": peak_megabytes()}


def large_plan(nodes: str, jobs: str) -> dict[str, float]:
    """Plan so many jobs with continuous durations; return the seconds of making the planner and of its plan, and MB."""
    from benchmarking.workload import Load, instance_of
    from cpsched.planner import Planner, warmup

    warmup()
    instance = instance_of(Load(nodes=int(nodes), jobs=int(jobs), rounding=1))
    began = time.process_time()
    planner = Planner(instance)
    made = time.process_time()
    planner.plan()
    return {"made": made - began, "planned": time.process_time() - made, "peak": peak_megabytes()}


def solve_memory(*arguments: str) -> dict[str, float]:
    """Run ``cpsched`` with these arguments, and return the peak of this process in MB."""
    from cpsched.cli import main as command

    try:
        command(arguments, prog_name="cpsched")
    except SystemExit as end:
        if end.code:
            raise
    return {"whole": peak_megabytes()}


def peak_megabytes() -> float:
    """Return the largest resident size of this process so far, in MB (10^6 bytes).

    Linux counts for ``ru_maxrss`` what the parent had when it started this process, hence ``/proc``.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main(what: str, arguments: Sequence[str]) -> None:
    """Run one probe."""
    probes = {
        "stages": stages,
        "planner-memory": planner_memory,
        "large-plan": large_plan,
        "solve-memory": solve_memory,
    }
    print(json.dumps(probes[what](*arguments)))


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # this folder is a package
    main(sys.argv[1], sys.argv[2:])
