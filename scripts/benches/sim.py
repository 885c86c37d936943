"""Simulate whole logs by rules, and print how many jobs a second that makes.

With --textbook each log is simulated by counts too, and the jobs are counted that start at other seconds.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarking.measure import print_table, say
from benchmarking.textbook import TEXTBOOK_HEADER, textbook_rows
from benchmarking.windows import workload_of

from cpsched.domain import Instance
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import eurora_stream

#: How the names of logs begin, and the rules that play them; that of the first one has no order by walltime.
LOGS = ("CEA-Curie", "HPC2N", "SDSC-SP2", "CTC-SP2", "KTH-SP2")
RULES = ("fcfs", "sjf", "easy", "smith", "conservative")
#: The jobs that come at once to a machine of several kinds of nodes: decisions with a queue of 1,000 jobs in the mean.
CROWD = 2000


HEADER = ["workload", "jobs", "nodes", "rule", "seconds", "jobs/s", "a pass, ms", "mean wait, s", "peak memory, MB"]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this bench can be told besides ``--quick``."""
    parser.add_argument("folder", type=Path, nargs="?", help="where the logs are (*.swf.gz)")
    parser.add_argument("--textbook", action="store_true", help="compare all starts with those of the textbook's rules")


def run(options: argparse.Namespace) -> None:
    """Print a table of logs."""
    if not options.quick and options.folder is None:
        raise SystemExit("Expected a folder with logs, or --quick")
    warm_up_simulation()
    if options.textbook:
        logs = [(eurora_stream(200, 1), "", 1)] if options.quick else whole_logs(options.folder)
        rows = [row for workload, _, cores in logs for row in textbook_rows(workload, cores)]
        print_table(
            "Beside the textbook", TEXTBOOK_HEADER, rows, "Jobs that start at another second: 0 if all is well."
        )
    else:
        rows = [row for workload, rules in workloads(options) for row in rows_of(workload, rules)]
        note = (
            "Processor time of the simulation alone, node by node. Peak memory is that of the process so far. In the "
            f"crowd {CROWD:,} jobs come at once, so that half as many wait in the mean of all passes."
        )
        print_table("Whole logs", HEADER, rows, note)


def crowd(number: int) -> Instance:
    """Return a workload of Eurora's nodes and jobs that all come in its first second."""
    stream = eurora_stream(number, 1)
    jobs = tuple(replace(job, submit=stream.now) for job in stream.jobs)
    return replace(stream, name="crowd", jobs=jobs)


def workloads(options: argparse.Namespace) -> Iterator[tuple[Instance, tuple[str, ...]]]:
    """Yield workloads, each with the rules that play it."""
    yield crowd(50 if options.quick else CROWD), ("easy", "smith")
    if options.quick:
        yield eurora_stream(200, 1), ("fcfs", "easy", "smith", "conservative")
        return
    for workload, log, _ in whole_logs(options.folder):
        yield workload, tuple(rule for rule in RULES if (rule, log) != ("sjf", "CEA-Curie"))


def whole_logs(folder: Path, logs: Iterable[str] = LOGS) -> Iterator[tuple[Instance, str, int]]:
    """Yield the logs of a folder as workloads, how their names begin, and the cores of a chunk."""
    for log in logs:
        for path in sorted(folder.glob(f"{log}*.swf.gz")):
            say(path.name)
            workload, cores = workload_of(path)
            yield workload, log, cores


def rows_of(workload: Instance, rules: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield a row for each rule."""
    jobs = len(workload.jobs)
    for rule in rules:
        began = time.process_time()
        history = simulate(workload, make_scheduler(rule))
        seconds, runs = time.process_time() - began, history.runs
        decision = 1e3 * history.decision_seconds.mean()
        wait = (runs.start - runs.submit)[runs.over].mean()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        nodes = len(workload.cluster.node_names)
        say(f"{rule}: {jobs / seconds:,.0f} jobs/s")
        yield [workload.name, f"{jobs:,}", f"{nodes:,}", rule, f"{seconds:.2f}", f"{jobs / seconds:,.0f}",
               f"{decision:.3f}", f"{wait:,.0f}", f"{memory:,.0f}"]  # fmt: skip
