"""The nouns of a campaign: workloads, policies and seeds, whose product are its cells.

Tables, charts and published figures are as the file has them (`campaign_model`).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from cpsched.domain import FrozenMap, RuntimeModel
from cpsched.formats.logs import LogOptions
from cpsched.lab.bench.campaign_model import Plot, Published, Table
from cpsched.lab.bench.figures import FIGURES, GROUPS
from cpsched.lab.sim import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFile:
    """A workload that is an instance document."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A workload that is a part of a log of any kind."""

    path: Path
    options: LogOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A workload of a generator, a different one for each seed."""

    generator: str
    parameters: FrozenMap[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload at one load and one malleable share; None: unchanged.

    Where `model` is None, malleable jobs are those of `cpsched.lab.workloads.with_malleable`.
    """

    name: str
    source: InstanceFile | LogFile | Generated
    load: float | None
    malleable: float | None
    #: The runtime model of malleable jobs on half of their cores.
    model: RuntimeModel | None = None
    #: What is drawn with replacement for each seed, ``users`` or ``weeks``, and the seconds by which each submission
    #: is moved at random; None: nothing, none.
    resampled: str | None = None
    moved: int | None = None
    #: How walltimes are wrong, and how often nodes fail, as `cpsched.lab.workloads` reads it; both are in the name.
    walltimes: str | None = None
    failures: str | None = None
    #: The name of its file, where several are instances of the same; else None.
    sample: str | None = None

    @property
    def is_random(self) -> bool:
        """Whether it differs for each seed."""
        changes = (self.malleable, self.resampled, self.moved, self.walltimes, self.failures)
        return isinstance(self.source, Generated) or any(change is not None for change in changes)

    @property
    def label(self) -> str:
        """The name with the changes: ``eurora, load 1.2, malleable 0.5, ideal``."""
        return workload_label(self.name, self.load, self.malleable, self.model)


def workload_label(name: str, load: float | None, malleable: float | None, model: str | None) -> str:
    """Return the name of a workload with its changes."""
    changes = {"load": load, "malleable": malleable}
    words = [f"{change} {value:g}" for change, value in changes.items() if value is not None]
    return ", ".join([name, *words, *([] if model is None else [model])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A scheduler with its parameters, and the settings of its simulations."""

    #: Its name with the parameters that vary, ``sd max_slowdown=10``; else the scheduler's with all parameters.
    label: str
    scheduler: str
    parameters: FrozenMap[str, Any]
    #: The use of predicted runtimes; None: none.
    predict: Prediction | None
    charge_overhead: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign: what is compared, and how it is shown."""

    name: str
    seeds: tuple[int, ...]
    #: Shares of the jobs that do not count, see `cpsched.metrics.runs_summary`.
    warm_up: float
    cool_down: float
    #: Several with the same label are samples: tables and charts have the means of their figures.
    workloads: tuple[Workload, ...]
    contenders: tuple[Contender, ...]
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    published: tuple[Published, ...]
    #: A page with places for the tables; charts are put beside it.
    page: Path | None
    #: The names of the optional workloads whose files were not found.
    left_out: tuple[str, ...] = ()

    @property
    def samples(self) -> Mapping[Workload, int]:
        """The first workload of each label, and the number of workloads with that label."""
        firsts: dict[str, Workload] = {}
        for workload in self.workloads:
            firsts.setdefault(workload.label, workload)
        counts = Counter(workload.label for workload in self.workloads)
        return {workload: counts[label] for label, workload in firsts.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One simulation: a policy on a workload."""

    workload: Workload
    contender: Contender
    #: None where the workload is the same for each seed.
    seed: int | None
    warm_up: float
    cool_down: float

    @property
    def label(self) -> str:
        """A label for people."""
        sample = "" if self.workload.sample is None else f", {self.workload.sample}"
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.contender.label} on {self.workload.label}{sample}{seed}"


def cells_of(campaign: Campaign) -> Iterator[Cell]:
    """Yield all cells; cells of one workload and seed follow each other, so that a worker makes the workload once.

    A workload that is the same for each seed has one cell for each policy: more cells would be no independent sample.
    """
    for workload in campaign.workloads:
        seeds = campaign.seeds if workload.is_random else (None,)
        for seed, contender in product(seeds, campaign.contenders):
            yield Cell(
                workload=workload,
                contender=contender,
                seed=seed,
                warm_up=campaign.warm_up,
                cool_down=campaign.cool_down,
            )


def _fields(noun: Workload | Contender) -> Iterator[tuple[str, Any]]:
    return ((field.name, getattr(noun, field.name)) for field in fields(noun))


def digest_of(cell: Cell, content: Callable[[Path], str]) -> str:
    """Return the name of a cell's result: a digest of everything that it depends on, and of nothing else.

    Names of workloads and policies are not in it, nor are paths: `content` gives the digest of a file's bytes. The
    version of cpsched is, so that a campaign never mixes those of two, and so are the names of the figures.
    """
    definition = {
        "version": version("cpsched"),
        "source": [type(cell.workload.source).__name__, asdict(cell.workload.source)],
        **{name: value for name, value in _fields(cell.workload) if name not in ("name", "source", "sample")},
        **{name: value for name, value in _fields(cell.contender) if name != "label"},
        "seed": cell.seed,
        "cut": [cell.warm_up, cell.cool_down],
        "figures": [*FIGURES, *GROUPS],
    }

    def plain(value: object) -> object:
        match value:
            case Path():
                return content(value)
            case Mapping():
                return dict(value)
        return repr(value)

    text = json.dumps(definition, default=plain, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
