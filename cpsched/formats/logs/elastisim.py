"""ElastiSim's jobs in JSON: rigid ones, and those that take any number of nodes in a range.

Source of the format, of the application model and of its platform: elastisim.github.io, "Workload" and "Application
model", and ElastiSim's example project. The file says what jobs compute, not how long that takes. That comes of the
model which all of its jobs name: in each iteration each of n nodes computes flops / n^alpha while the nodes exchange
communication_size bytes, and then they write a checkpoint; before the first one the model is read and scattered.
"""

import math
from pathlib import Path

from cpsched.formats.faults import UnusableLine, read_each, shown
from cpsched.formats.files import load_json
from cpsched.formats.logs.jobs import JobLog, LogAnomaly, LogJob, LogKind, Note, log_of, on_hosts
from cpsched.formats.logs.quantities import count, number

#: The platform of the example project: nodes, flop/s of each, and bytes/s of its link and of the file system.
_NODES, _SPEED, _LINK, _FILES = 128, 1e12, 12.5e9, 300e9
#: What the application model is told of a job.
_ARGUMENTS = ("iterations", "flops", "alpha", "communication_size", "checkpoint_size", "model_size")
#: Types of jobs, and whether these change their nodes while they run.
_TYPES = {"rigid": False, "moldable": False, "evolving": False, "malleable": True, "adaptive": True}
_FROM_0 = "{}, a number from 0 on"
#: The most sizes of a job: of more, some between the least and the most are left out.
_MOST_SIZES = 16


def is_elastisim(document: object) -> bool:
    """Tell whether a document has jobs of ElastiSim."""
    jobs = document.get("jobs") if isinstance(document, dict) else None
    return isinstance(jobs, list) and any(isinstance(job, dict) and "application_model" in job for job in jobs)


def read_elastisim(path: str | Path) -> JobLog:
    """Read jobs on nodes of one core. Raises `DocumentError` if the file cannot be read or has no job."""
    document = load_json(path)
    entries = document.get("jobs") if isinstance(document, dict) else ()
    jobs = list[LogJob]()
    numbered = enumerate(entries if isinstance(entries, list) else (), start=1)
    faults = read_each(numbered, lambda entry, line: jobs.append(_job(entry, line)))
    most = max((chunk.count for job in jobs for chunk in job.request.chunks), default=0)
    return log_of(path, LogKind.ELASTISIM, jobs, faults, expected="jobs of ElastiSim", hosts=max(_NODES, most))


def _job(entry: object, line: int) -> LogJob:
    if not isinstance(entry, dict) or entry.get("type") not in _TYPES:
        raise UnusableLine(f"Expected a job with a type, one of {', '.join(_TYPES)}, got {shown(entry)}")
    kind, given = str(entry["type"]), entry.get("arguments")
    if not isinstance(given, dict) or set(given) != set(_ARGUMENTS):
        raise UnusableLine(f"Expected arguments {', '.join(_ARGUMENTS)}, whose model is known, got {shown(given)}")
    arguments = {name: number(given[name], _FROM_0.format(name), below=1e18) for name in _ARGUMENTS}
    fewest, largest = ("num_nodes", "num_nodes") if kind == "rigid" else ("num_nodes_min", "num_nodes_max")
    least, most = (count(str(entry.get(name)), name, least=1) for name in (fewest, largest))
    if least > most:
        raise UnusableLine(f"Expected num_nodes_min up to num_nodes_max, {most}, got {least}")
    notes: list[Note] = []
    if kind in ("evolving", "adaptive"):
        notes.append((LogAnomaly.NOT_SIMULATED, "may ask for other nodes while it runs: done without"))
    notes += [(LogAnomaly.NOT_SIMULATED, f"{name}: done without") for name in sorted(entry) if "gpus" in name]
    sizes = [(on_hosts(size), max(1, math.ceil(_seconds(arguments, size)))) for size in _sizes(least, most)]
    (request, seconds), *smaller = sizes
    limit = number(entry.get("walltime", 0), _FROM_0.format("walltime"), below=1e18)
    return LogJob(
        id=str(line),
        line=line,
        submit=math.floor(number(entry.get("submit_time"), _FROM_0.format("submit_time"), below=1e18)),
        request=request,
        walltime=math.ceil(limit) or None,
        runtime=seconds,
        smaller=tuple((request, takes / seconds) for request, takes in smaller),
        is_resizable=_TYPES[kind],
        notes=tuple(notes),
    )


def _sizes(least: int, most: int) -> list[int]:
    """Return numbers of nodes, the most first."""
    steps = min(_MOST_SIZES, most - least + 1)
    return sorted({round(least + (most - least) * step / max(1, steps - 1)) for step in range(steps)}, reverse=True)


def _seconds(arguments: dict[str, float], nodes: int) -> float:
    """Return how long a job takes on some nodes."""
    computing = arguments["flops"] / nodes ** arguments["alpha"] / _SPEED
    exchange = arguments["communication_size"] / nodes / _LINK
    iteration = max(computing, exchange) + arguments["checkpoint_size"] / _FILES
    start = arguments["model_size"] * (1 / _FILES + (nodes - 1) / nodes / _LINK)
    return float(start + arguments["iterations"] * iteration)
