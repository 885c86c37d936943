"""Simulate whole logs by rules, and print how many jobs a second that makes.

With --textbook each log is simulated by counts too, and the jobs are counted that start at other seconds.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarking.measure import print_table, say
from benchmarking.textbook import TEXTBOOK_HEADER, textbook_rows

from cpsched.domain import Instance
from cpsched.formats.logs import LogOptions, log_to_instance
from cpsched.formats.swf import machine_of_log, read_machine, read_swf
from cpsched.lab.policies import make_scheduler
from cpsched.lab.sim import simulate, warm_up_simulation
from cpsched.lab.workloads import eurora_stream

#: The machines that we know of logs whose headers do not say enough.
MACHINES = Path(__file__).resolve().parents[2] / "instances" / "machines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log, and who plays it."""

    #: How its file's name begins.
    name: str
    rules: tuple[str, ...]
    machine: str | None = None
    #: None: single cores.
    cores_per_chunk: int | None = None


LOGS = (
    Log(name="CEA-Curie", rules=("fcfs", "easy", "smith", "conservative"), machine="curie-thin", cores_per_chunk=16),
    Log(name="HPC2N", rules=("fcfs", "sjf", "easy", "smith", "conservative")),
    Log(name="SDSC-SP2", rules=("fcfs", "sjf", "easy", "smith", "conservative")),
    Log(name="CTC-SP2", rules=("fcfs", "sjf", "easy", "smith", "conservative")),
    Log(name="KTH-SP2", rules=("fcfs", "sjf", "easy", "smith", "conservative")),
)
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
        rows = [
            row for workload, log in workloads(options) for row in textbook_rows(workload, log.cores_per_chunk or 1)
        ]
        print_table(
            "Beside the textbook", TEXTBOOK_HEADER, rows, "Jobs that start at another second: 0 if all is well."
        )
    else:
        rows = [row for workload, log in workloads(options) for row in rows_of(workload, log.rules)]
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


def workloads(options: argparse.Namespace) -> Iterator[tuple[Instance, Log]]:
    """Yield workloads, each with what its log says of it."""
    if not options.textbook:
        yield crowd(50 if options.quick else CROWD), Log(name="crowd", rules=("easy", "smith"))
    if options.quick:
        yield eurora_stream(200, 1), Log(name="Eurora", rules=("fcfs", "easy", "smith", "conservative"))
        return
    yield from whole_logs(options.folder)


def whole_logs(folder: Path, logs: Iterable[Log] = LOGS) -> Iterator[tuple[Instance, Log]]:
    """Yield the logs of a folder as workloads."""
    for log in logs:
        for path in sorted(folder.glob(f"{log.name}*.swf.gz")):
            say(path.name)
            read = read_swf(path)
            machine = (
                machine_of_log(read).machine if log.machine is None else read_machine(MACHINES / f"{log.machine}.json")
            )
            taken = log_to_instance(read, machine, LogOptions(cores_per_chunk=log.cores_per_chunk), arriving=True)
            yield taken.instance, log


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
