"""The site's file as nouns: its tables with their keys, types and bounds, as in ``docs/daemon.md``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cpsched.arguments import Seed, Workers
from cpsched.domain import Bounds, Check, Key
from cpsched.formats import FilePath, shown
from cpsched.portfolio import ENGINES
from cpsched.site.bridge.slurm import SlurmModel

Seconds = Annotated[int, Bounds(0, 10**6)]
Engine = Annotated[
    str, Check(lambda text: None if text in ENGINES else f"Expected one of {', '.join(ENGINES)}, got {shown(text)}")
]
_Manager = Key("Which resource manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """A machine in the daemon's own memory, for trying it out."""

    kind: Annotated[Literal["memory"], _Manager]
    instance: Annotated[
        str, Key("The instance document of its machine and its jobs, with their runtimes; beside the site's file")
    ]
    speed: Annotated[float, Bounds(above=0, most=10_000), Key("Its seconds per second")] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesModel:
    """A directory: for software that cpsched does not know, a script of the site reads and writes there."""

    kind: Annotated[Literal["files"], _Manager]
    directory: Annotated[FilePath, Key("Where instance.json and orders.json are; it must exist")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningModel:
    """How plans are made."""

    engine: Annotated[Engine, Key("As in cpsched solve")] = "wspt_list"
    budget: Annotated[
        float, Bounds(0, 600), Key("Seconds of a cycle, everything included; 0: plans are only kept up to date")
    ] = 10.0
    workers: Annotated[Workers, Key("Number of CPU cores")] = 2
    most_jobs: Annotated[
        int, Bounds(1, 1_000_000), Key("The most waiting jobs that are planned, the most urgent ones")
    ] = 500
    seed: Annotated[Seed, Key("Seed of the random numbers")] = 0
    choose: Annotated[
        tuple[Engine, ...],
        Key("Rules that take the place of the engine, a rule too, while they win on what the store has seen"),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleModel:
    """When cycles come, and how far ahead they order."""

    period: Annotated[int, Bounds(1, 30), Key("The most seconds between two cycles")] = 30
    least: Annotated[float, Bounds(0, 30), Key("The fewest seconds between two cycles")] = 1.0
    horizon: Annotated[Seconds, Key("Seconds before its start from which on a job is ordered to start")] = 30
    hold: Annotated[
        int,
        Bounds(2, 3600),
        Key("Seconds of a hold, or of a closed gate, unless it is done anew (exact); at least two periods"),
    ] = 300
    patience: Annotated[Seconds, Key("Seconds after its start at which a job that waits is planned anew")] = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PromisesModel:
    """The starts that users are told."""

    price: Annotated[float, Bounds(0, 1e6), Key("The price of told starts in the objective")] = 1.0
    gain: Annotated[
        float, Bounds(0, 1), Key("The share of the plan's value to be gained before a promise moves later")
    ] = 0.01
    grain: Annotated[Seconds, Key("Seconds by which a start moves earlier before users are told")] = 60
    forecasts: Annotated[Seconds, Key("Seconds between two forecasts of starts, at least; 0: none is made")] = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreModel:
    """The database."""

    url: Annotated[str, Key("As SQLAlchemy writes it: sqlite:////var/lib/cpsched/cpsched.db")]
    keep_days: Annotated[int, Bounds(1, 10_000), Key("Days of history")] = 30
    snapshot_every: Annotated[Seconds, Key("Seconds between two instances that are kept; 0: none is kept")] = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsModel:
    """Metrics in Prometheus's format."""

    port: Annotated[int | None, Bounds(1, 65535), Key("Of 127.0.0.1")] = None
    file: Annotated[FilePath | None, Key("Written after each cycle, for a node exporter")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogModel:
    """The log."""

    level: Annotated[Literal["debug", "info", "warning", "error"], Key("The least level")] = "info"
    format: Annotated[Literal["json", "text"], Key("One JSON object, or key=value, on a line")] = "json"
    file: Annotated[FilePath | None, Key("Default: standard error")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogModel:
    """The dead-man switch."""

    heartbeat: Annotated[FilePath, Key("A file that the daemon touches after each good cycle")]
    dead_after: Annotated[
        int, Bounds(10, 86_400), Key("Seconds without a heartbeat after which everything is handed back")
    ] = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteModel:
    """The whole file."""

    dry_run: Annotated[bool, Key("Plan and report, but give no orders")] = True
    visibility: Annotated[
        Literal["all", "anonymous", "own"], Key("What users see of the jobs of others, in cpsched serve")
    ] = "all"
    allow_root: Annotated[bool, Key("Whether the daemon may run as root")] = False
    manager: Annotated[MemoryModel | FilesModel | SlurmModel, Key("The resource manager")]
    planning: Annotated[PlanningModel, Key("How plans are made")] = PlanningModel()
    cycle: Annotated[CycleModel, Key("When cycles come")] = CycleModel()
    promises: Annotated[PromisesModel, Key("The starts that users are told")] = PromisesModel()
    store: Annotated[StoreModel, Key("The database")]
    metrics: Annotated[MetricsModel, Key("Metrics")] = MetricsModel()
    log: Annotated[LogModel, Key("The log")] = LogModel()
    watchdog: Annotated[WatchdogModel | None, Key("The dead-man switch")] = None
