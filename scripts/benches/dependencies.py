"""Plan arrays that wait for arrays: each element of one waits for all of the other."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

from benchmarking.measure import print_table, say

from cpsched.answers import Answers
from cpsched.domain import Instance, Plan
from cpsched.formats import instance_to_document, parse_instance, plan_to_document
from cpsched.portfolio import prepare, solve
from cpsched.verify import verify

#: Elements of each of the two arrays.
SIZES = (100, 1_000, 5_000, 20_000)


def run(options: argparse.Namespace) -> None:
    """Print a row for each size."""
    prepare()
    rows = []
    for size in (10, 30) if options.quick else SIZES:
        for is_linked in (False, True):
            say(f"{size} elements{' that wait' if is_linked else ''}")
            rows.append(row_of(size, is_linked=is_linked))
    header = ["elements of each array", "pairs", "`solve --engine planner`, s", "`easy`, s", "`verify`, s",
              "`explain`, s", "memory so far, MB"]  # fmt: skip
    note = (
        "Two arrays on 100 nodes of 16 cores, 600 and 300 s an element; without pairs the second does not wait for the "
        "first. Processor time; `solve` verifies, too."
    )
    print_table("Arrays after arrays", header, rows, note)


def window(size: int, *, is_linked: bool) -> Instance:
    """Return a window of two arrays, of which the second waits for the first, and a job that waits for the second."""
    array = {"indices": f"0-{size - 1}"}
    after: dict[str, Any] = {"after": [{"job": "first", "type": "afterok"}]} if is_linked else {}
    jobs = [
        {"id": "first", "submit": 0, "request": "1:ncpus=2", "walltime": 600, "array": array},
        {"id": "second", "submit": 0, "request": "1:ncpus=1", "walltime": 300, "array": array, **after},
        {"id": "last", "submit": 0, "request": "4:ncpus=16", "walltime": 900,
         "after": [{"job": "second", "type": "afterok"}]},
    ]  # fmt: skip
    nodes = [{"names": "n[001-100]", "resources": {"cores": 16}}]
    return parse_instance({"format": "cpsched-instance/1", "name": "arrays", "cluster": {"nodes": nodes}, "jobs": jobs})


def row_of(size: int, *, is_linked: bool) -> list[str]:
    """Return the row of one size.

    Raises
    ------
    ValueError
        If a job has no start, or the verifier finds a fault.
    """
    instance = window(size, is_linked=is_linked)
    plan, by_planner = timed(lambda: solve(instance, engine="planner", budget=0))
    _, by_rule = timed(lambda: solve(instance, engine="easy", budget=0))
    documents = instance_to_document(instance), plan_to_document(plan)
    faults, judging = timed(lambda: verify(*documents))
    if faults or plan.waiting_room:
        raise ValueError(f"expected a plan of all jobs, got {faults or plan.waiting_room}")
    _, answering = timed(lambda: explained(instance, plan, size))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = (f"{second:.2f}" for second in (by_planner, by_rule, judging, answering))
    return [f"{size:,}", f"{size * size:,}" if is_linked else "none", *seconds, f"{memory:,.0f}"]


def explained(instance: Instance, plan: Plan, size: int) -> None:
    """Explain why an element does not start earlier."""
    Answers(instance, plan).explain(f"second[{size - 1}]")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of some work, and the seconds of processor time that it takes."""
    begin = time.process_time()
    return work(), time.process_time() - begin
