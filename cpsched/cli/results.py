"""The files that a simulation leaves in its folder, and which simulation they are of."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cpsched.text import printable
from cpsched.writing import whole_folder

if TYPE_CHECKING:
    from cpsched.cli.schedulers import Contender
    from cpsched.domain import Instance, Plan
    from cpsched.lab.sim import History
    from cpsched.metrics import RunsSummary


#: The file with the figures, which begins with the identity of the simulation.
SUMMARY = "summary.json"
#: The file with the whole simulation, from which reports are made.
RUN = "run.npz"
#: So long may the name of a folder be.
_LONGEST = 100


def identity_of(instance: Instance, contender: Contender, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a simulation as values of JSON: the workload, the policy, and the settings."""
    found = {
        "workload": instance.name,
        "workload_digest": _digest(instance),
        "policy": contender.name,
        "parameters": contender.parameters,
        **conditions,
    }
    return dict(json.loads(json.dumps(found, default=str)))


def _digest(instance: Instance) -> str:
    rules = [getattr(instance, field.name) for field in fields(instance) if field.compare and field.name != "jobs"]
    sha = hashlib.sha256(repr(rules).encode())
    requests: dict[int, str] = {}
    own = [field.name for job in instance.jobs[:1] for field in fields(job) if field.name != "steps"]
    for job in instance.jobs:
        for step in job.steps:  # many jobs share a request
            text = requests.get(id(step.request)) or requests.setdefault(id(step.request), repr(step.request))
            sha.update(f"{step.walltime} {text}\n".encode())
        sha.update(repr([getattr(job, name) for name in own]).encode())
    return sha.hexdigest()[:16]


def folder_names(labels: Sequence[str]) -> list[str]:
    """Return a folder name for each label, ``sjf,backfill=easy``: different ones, without odd characters."""
    names = [re.sub(r"[^A-Za-z0-9._=,-]", "_", label.replace(" ", ","))[:_LONGEST] for label in labels]
    counts = Counter(names)
    return [f"{name},{number}" if counts[name] > 1 else name for number, name in enumerate(names, start=1)]


def found_in(folder: Path, name: str) -> list[Path]:
    """Return the files of a name in a folder of results, and in the folders of policies in it."""
    return [path for path in (folder / name, *sorted(folder.glob(f"[!.]*/{name}"))) if path.is_file()]


def runs_in(folder: Path) -> list[Path]:
    """Return the whole simulations in a folder of results, in the order of their policies."""

    def place(run: Path) -> int:
        try:
            return int(json.loads((run.parent / SUMMARY).read_text(encoding="utf-8"))["place"])
        except (OSError, ValueError, TypeError, LookupError):  # of an earlier version, or changed by hand
            return 0

    return sorted(found_in(folder, RUN), key=place)


def check_free(folder: Path, identity: Mapping[str, Any]) -> None:
    """Refuse a folder with the results of another simulation.

    Raises `UsageError` if there are such results, or a file of that name that cannot be read, or it can be no folder.
    """
    try:
        found = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except OSError as error:
        what = f"got: {error.strerror or error}"
        raise click.UsageError(f"Expected a folder for results, {what} ({printable(str(folder))}).") from None
    except (ValueError, RecursionError):
        found = None
    theirs = found if isinstance(found, dict) else {}
    different = [key for key in identity if theirs.get(key) != identity[key]]
    if different:
        what = ", ".join(f"{key} {printable(str(theirs.get(key)))}" for key in different)
        raise click.UsageError(
            f"{printable(str(folder))} has the results of another simulation ({what}). Choose another folder with -o, "
            "or remove it."
        )


def write_results(
    folder: Path,
    instance: Instance,
    history: History,
    summary: RunsSummary,
    *,
    label: str,
    about: Mapping[str, Any],
    record: Plan | None = None,
) -> None:
    """Write the figures, the jobs as CSV and as a log, the load over time, and all of it for reports: all, or nothing.

    Raises `DiskFullError`, `DocumentError` if the folder cannot be made, or a file not be written.

    `label`: the policy with its parameters. `about`: the identity of the simulation and what else its figures begin
    with. `record`: the schedule as a plan; None: it is not written.
    """
    from cpsched.formats import write_plan
    from cpsched.formats.swf import write_swf
    from cpsched.metrics import log_rows, write_jobs_csv, write_run, write_series_csv, write_summary

    with whole_folder(folder) as unfinished:
        write_summary(summary, unfinished / SUMMARY, about=about)
        write_jobs_csv(history.runs, history.allocations(), unfinished / "jobs.csv", workload_name=instance.name)
        write_swf(unfinished / "jobs.swf.gz", log_rows(history.runs), header=_header(instance, history))
        write_series_csv(history.runs, unfinished / "series.csv")
        write_run(unfinished / RUN, history.as_run(label))
        if record is not None:
            write_plan(record, unfinished / "record.json.gz")


def _header(instance: Instance, history: History) -> dict[str, str]:
    """Return the header of the log: the machine, and the time of its second 0."""
    first = min(job.submit for job in instance.jobs)
    header = {
        "Version": "2.2",
        "Computer": printable(instance.name).strip() or "unnamed",
        "MaxJobs": str(len(history.runs)),
        "MaxNodes": str(len(instance.cluster.node_names)),
        "MaxProcs": str(instance.cluster.totals.get("cores", 0)),
        "Note": f"simulated by cpsched, policy {history.scheduler}",
    }
    if instance.epoch is not None:
        header["UnixStartTime"] = str(int(instance.epoch.timestamp()) + first)
    return header
