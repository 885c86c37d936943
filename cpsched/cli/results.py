"""The files that a simulation leaves in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpsched.cli.text import printable

if TYPE_CHECKING:
    from cpsched.domain import Instance
    from cpsched.metrics import RunsSummary
    from cpsched.sim import History

__all__ = ["summary_of", "write_results"]


def summary_of(instance: Instance, history: History) -> RunsSummary:
    """Return the figures of a simulation; of a machine without cores the utilisation is none."""
    from cpsched.metrics import runs_summary

    cores = instance.cluster.totals.get("cores", 0)
    resources = {**instance.cluster.totals, **instance.cluster.licenses}
    return runs_summary(
        history.runs,
        max(1, cores),
        resources={name: amount for name, amount in resources.items() if amount},
        decision_seconds=history.decision_seconds,
    )


def write_results(
    folder: Path, instance: Instance, history: History, summary: RunsSummary, *, about: Mapping[str, Any]
) -> None:
    """Write the figures, the jobs as CSV and as a log, and the load over time.

    Raises
    ------
    DocumentError
        If a file cannot be written.
    OSError
        If the folder cannot be made.
    """
    from cpsched.formats.swf import write_swf
    from cpsched.metrics import log_rows, write_jobs_csv, write_series_csv, write_summary

    folder.mkdir(parents=True, exist_ok=True)
    write_summary(summary, folder / "summary.json", about=about)
    write_jobs_csv(history.runs, history.allocations(), folder / "jobs.csv", workload_name=instance.name)
    write_swf(folder / "jobs.swf.gz", log_rows(history.runs), header=_header(instance, history))
    write_series_csv(history.runs, folder / "series.csv")


def _header(instance: Instance, history: History) -> dict[str, str]:
    """Return what the log says of itself: the machine, and when its second 0 was."""
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
