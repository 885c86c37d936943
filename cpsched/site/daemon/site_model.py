"""The site's file as pydantic models: its tables with their keys, types and bounds, as in ``docs/daemon.md``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from cpsched.arguments import SEED, WORKERS
from cpsched.formats import DocumentModel, Omittable, refusal, shown
from cpsched.portfolio import ENGINES
from cpsched.site.bridge.slurm import SlurmModel


def _path(text: str) -> str:
    if not text.startswith("/") or "\0" in text:
        raise refusal(f"Expected an absolute path, got {shown(text)}")
    return text


def _engine(text: str) -> str:
    if text not in ENGINES:
        raise refusal(f"Expected one of {', '.join(ENGINES)}, got {shown(text)}")
    return text


FilePath = Annotated[str, AfterValidator(_path)]
Seconds = Annotated[int, Field(ge=0, le=10**6)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class MemoryModel(DocumentModel):
    """A machine in the daemon's own memory, for trying it out."""

    kind: Literal["memory"] = Field(description="Which resource manager")
    instance: str = Field(
        description="The instance document of its machine and its jobs, with their runtimes; beside the site's file"
    )
    speed: Annotated[Finite, Field(gt=0, le=10_000)] = Field(1.0, description="Its seconds per second")


class FilesModel(DocumentModel):
    """A directory: for software that cpsched does not know, a script of the site reads and writes there."""

    kind: Literal["files"] = Field(description="Which resource manager")
    directory: FilePath = Field(description="Where instance.json and orders.json are; it must exist")


def _kind(table: object) -> str:
    kind = table.get("kind") if isinstance(table, dict) else getattr(table, "kind", None)
    return f"<{kind}>" if kind in ("files", "slurm") else "<memory>"


ManagerModel = Annotated[
    Annotated[MemoryModel, Tag("<memory>")]
    | Annotated[FilesModel, Tag("<files>")]
    | Annotated[SlurmModel, Tag("<slurm>")],
    Discriminator(_kind),
]


class PlanningModel(DocumentModel):
    """How plans are made."""

    engine: Annotated[str, AfterValidator(_engine)] = Field("wspt_list", description="As in cpsched solve")
    budget: Annotated[Finite, Field(ge=0, le=600)] = Field(
        10.0, description="Seconds of a cycle, everything included; 0: plans are only kept up to date"
    )
    workers: Annotated[int, Field(ge=WORKERS.least, le=WORKERS.most)] = Field(2, description="Number of CPU cores")
    most_jobs: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        500, description="The most waiting jobs that are planned, the most urgent ones"
    )
    seed: Annotated[int, Field(ge=SEED.least, le=SEED.most)] = Field(0, description="Seed of the random numbers")


class CycleModel(DocumentModel):
    """When cycles come, and how far ahead they order."""

    period: Annotated[int, Field(ge=1, le=30)] = Field(30, description="The most seconds between two cycles")
    least: Annotated[Finite, Field(ge=0, le=30)] = Field(1.0, description="The fewest seconds between two cycles")
    horizon: Seconds = Field(30, description="Seconds before its start from which on a job is ordered to start")
    hold: Annotated[int, Field(ge=2, le=3600)] = Field(
        300, description="Seconds of a hold, or of a closed gate, unless it is done anew (exact); at least two periods"
    )
    patience: Seconds = Field(60, description="Seconds after its start at which a job that waits is planned anew")


class PromisesModel(DocumentModel):
    """The starts that users are told."""

    price: Annotated[Finite, Field(ge=0, le=1e6)] = Field(1.0, description="The price of told starts in the objective")
    gain: Annotated[Finite, Field(ge=0, le=1)] = Field(
        0.01, description="The share of the plan's value to be gained before a promise moves later"
    )
    grain: Seconds = Field(60, description="Seconds by which a start moves earlier before users are told")
    forecasts: Seconds = Field(300, description="Seconds between two forecasts of starts, at least; 0: none is made")


class StoreModel(DocumentModel):
    """The database."""

    url: str = Field(description="As SQLAlchemy writes it: sqlite:////var/lib/cpsched/cpsched.db")
    keep_days: Annotated[int, Field(ge=1, le=10_000)] = Field(30, description="Days of history")
    snapshot_every: Seconds = Field(3600, description="Seconds between two instances that are kept; 0: none is kept")


class MetricsModel(DocumentModel):
    """Metrics in Prometheus's format."""

    port: Omittable[Annotated[int, Field(ge=1, le=65535)]] = Field(None, description="Of 127.0.0.1")
    file: Omittable[FilePath] = Field(None, description="Written after each cycle, for a node exporter")


class LogModel(DocumentModel):
    """The log."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least level")
    format: Literal["json", "text"] = Field("json", description="One JSON object, or key=value, on a line")
    file: Omittable[FilePath] = Field(None, description="Default: standard error")


class WatchdogModel(DocumentModel):
    """The dead-man switch."""

    heartbeat: FilePath = Field(description="A file that the daemon touches after each good cycle")
    dead_after: Annotated[int, Field(ge=10, le=86_400)] = Field(
        180, description="Seconds without a heartbeat after which everything is handed back"
    )


class SiteModel(DocumentModel):
    """The whole file."""

    dry_run: bool = Field(True, description="Plan and report, but give no orders")
    visibility: Literal["all", "anonymous", "own"] = Field(
        "all", description="What users see of the jobs of others, in cpsched serve"
    )
    allow_root: bool = Field(False, description="Whether the daemon may run as root")
    manager: ManagerModel = Field(description="The resource manager")
    planning: PlanningModel = Field(PlanningModel(), description="How plans are made")
    cycle: CycleModel = Field(CycleModel(), description="When cycles come")
    promises: PromisesModel = Field(PromisesModel(), description="The starts that users are told")
    store: StoreModel = Field(description="The database")
    metrics: MetricsModel = Field(MetricsModel(), description="Metrics")
    log: LogModel = Field(LogModel(), description="The log")
    watchdog: Omittable[WatchdogModel] = Field(None, description="The dead-man switch")
