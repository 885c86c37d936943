"""The windows that benches plan: real ones where they are present, else those that the repository ships."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cpsched.domain import Instance, Plan
from cpsched.formats.logs import LogOptions, log_to_instance
from cpsched.formats.swf import machine_of_log, read_machine, read_swf
from cpsched.lab.bench import read_campaign
from cpsched.lab.bench.loading import load_workload

__all__ = [
    "REAL", "ROOT", "below", "changeable", "decision_workloads", "eurora_windows", "known", "shipped", "workload_of",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT.parent / "shared" / "data"
#: The machines of logs whose headers do not say enough, and the cores of a chunk there, by how a log's name begins.
_MACHINES = {"CEA-Curie": ("curie-thin", 16)}


def shipped() -> list[Path]:
    """Return the windows of the repository, smallest first."""
    return sorted((ROOT / "instances").glob("eurora-like-*.json.gz"))


def eurora_windows(*, quick: bool) -> Sequence[Path]:
    """Return the real Eurora windows of 100 jobs and more where they are present, else those shipped."""
    real = [path for path in sorted((REAL / "eurora").glob("window-*.json.gz")) if "window-0050" not in path.name]
    return shipped()[:1] if quick else real or shipped()


def decision_workloads(
    folder: Path | None, begins: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[str, list[Instance]]]:
    """Yield the workloads of docs/decisions.md that are there: the name of each, and what it is by each seed.

    `folder`: where the logs are. `begins`: the begins of the names that are wanted.
    """
    for one in read_campaign(ROOT / "campaigns" / "decisions.toml", folder).workloads:
        if (name := one.name or one.label).startswith(tuple(begins)):
            yield name, [load_workload(one, seed).instance for seed in seeds]


def changeable(plan: Plan) -> float:
    """Return Z: the part of a plan's value that a plan can change."""
    return plan.objective.value - plan.objective.suffered


def below(value: float, other: float) -> str:
    """Return by how much a value is below another one."""
    return "equal" if value == other else f"{value / other - 1:+.1%}" if other else "-"


def known(workload: Instance) -> Instance:
    """Return a workload in which each job asks for the time that it takes; its queue and so its expected wait stay."""
    jobs = (
        replace(job, steps=tuple(replace(step, walltime=min(job.walltime, job.runtime)) for step in job.steps))
        if job.runtime
        else job
        for job in workload.jobs
    )
    return replace(workload, jobs=tuple(jobs))


def workload_of(path: Path) -> tuple[Instance, int]:
    """Return a log as a workload, and the cores of a chunk."""
    machine, cores = next((known for start, known in _MACHINES.items() if path.name.startswith(start)), (None, None))
    log = read_swf(path)
    is_known = machine is not None
    found = (
        read_machine(ROOT / "instances" / "machines" / f"{machine}.json") if is_known else machine_of_log(log).machine
    )
    return log_to_instance(log, found, LogOptions(cores_per_chunk=cores), arriving=True).instance, cores or 1
