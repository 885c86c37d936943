"""Whole logs beside the textbook's rules: where nodes are equal, every job starts at the same second."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from cpsched.domain import Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate
from tests.oracle.textbook import conservative_by_counts, easy_by_counts, items_of

__all__ = ["TEXTBOOK_HEADER", "textbook_rows"]

TEXTBOOK_HEADER = ("workload", "jobs", "rule", "seconds", "textbook's seconds", "mean wait, s", "other starts")


def textbook_rows(workload: Instance, cores_per_chunk: int) -> Iterator[list[str]]:
    """Yield a row for each rule: how many jobs start at another second than in the textbook."""
    items = [item._replace(width=item.width // cores_per_chunk) for item in items_of(workload)]
    size = workload.cluster.totals["cores"] // cores_per_chunk
    rules = {
        "easy": (make_scheduler("easy"), lambda: easy_by_counts(items, size)),
        "sjf, EASY": (
            make_scheduler("sjf", {"backfill": "easy"}),
            lambda: easy_by_counts(items, size, lambda item: item.walltime),
        ),
        "conservative": (make_scheduler("conservative"), lambda: conservative_by_counts(items, size)),
    }
    for rule, (scheduler, textbook) in rules.items():
        began = time.process_time()
        runs = simulate(workload, scheduler).runs
        between = time.process_time()
        expected = np.array(textbook())
        ended = time.process_time()
        yield [workload.name, f"{len(items):,}", rule, f"{between - began:.1f}", f"{ended - between:.1f}",
               f"{(runs.start - runs.submit).mean():,.0f}", str(np.count_nonzero(runs.start != expected))]  # fmt: skip
