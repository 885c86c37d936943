"""From a TOML file to a campaign, or to everything that is wrong with it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, cast

from cpsched.domain import FrozenMap, RuntimeModel
from cpsched.errors import DocumentError
from cpsched.formats import Faults, Location, TomlFaults, keys_of, load_toml, read_table, shown
from cpsched.formats.logs import LogOptions, MemoryField, Selection
from cpsched.lab.bench.campaign import Campaign, Contender, Generated, InstanceFile, LogFile, Workload
from cpsched.lab.bench.campaign_model import (
    CampaignModel,
    GeneratedModel,
    InstanceFileModel,
    LogFileModel,
    Plot,
    PolicyModel,
    Published,
    SelectionModel,
    SimulationModel,
    Table,
    WorkloadModel,
)
from cpsched.lab.bench.figures import FIGURES, GROUPS, MACHINE_FIGURES
from cpsched.lab.bench.loading import GENERATORS
from cpsched.lab.policies import (
    checked_parameters,
    factory_of,
    label_of,
    make_scheduler,
    parameter_text,
    scheduler_names,
)
from cpsched.lab.sim import Prediction
from cpsched.lab.workloads import Failures, check_walltimes

_KEYS = keys_of(
    CampaignModel, SimulationModel, InstanceFileModel, LogFileModel, GeneratedModel, PolicyModel, Table, Plot, Published
)
#: The keys of a workload that say where it is from, and what such a workload looks like.
_SOURCES: Mapping[str, type[WorkloadModel]] = {
    "instance": InstanceFileModel,
    "log": LogFileModel,
    "generator": GeneratedModel,
}

M = TypeVar("M")
T = TypeVar("T")


def read_campaign(path: Path, data: Path | None = None) -> Campaign:
    """Read a campaign; paths in it are relative to its own folder.

    Raises `DocumentError` with everything that is wrong with it.

    `data`: a folder with the files that are not at their places, by their names; the first half of a log,
    ``NAME.firsthalf.swf.gz``, may also be there as the whole log, ``NAME.swf.gz``.
    """
    document = load_toml(path)
    reading = _Reading(folder=path.parent, data=data, faults=TomlFaults(document, _KEYS))
    campaign = _read_parts(reading, document)
    reading.faults.raise_if_any(str(path))
    return campaign


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Mutable: what all parts of reading one campaign share."""

    #: Paths are relative to it.
    folder: Path
    #: Where else files are, by their names.
    data: Path | None
    faults: Faults
    #: The names of optional workloads without their files.
    left_out: list[str] = field(default_factory=list)
    #: Kinds of tables of which some were refused in part: what speaks of them cannot be checked.
    incomplete: set[object] = field(default_factory=set)

    def table(self, model: type[M], table: object, at: Location, **stand_ins: object) -> M | None:
        """Return one table; what refers to tables of which one was refused in part is not checked."""
        before = len(self.faults.locations())
        found = read_table(model, table, at, self.faults, **stand_ins)
        if len(self.faults.locations()) > before:
            self.incomplete |= set(at[:1])
        return found

    def file(self, at: Location, said: str) -> Path:
        """Find a file, which has to exist."""
        found = self.found(said)
        if found is not None:
            return found
        beside = "" if self.data is None else f", nor by its name in {self.data.resolve()}"
        where = f"{self.folder.resolve()}{beside}"
        self.faults.add(at, f"Expected a file, got {shown(said)}, which does not exist in {where}")
        return self.folder / said

    def found(self, said: str) -> Path | None:
        """Find a file; None if there is none."""
        path = self.folder / said
        names = dict.fromkeys((Path(said).name, Path(said).name.replace(".firsthalf.", ".")))
        for place in (path, *(self.data / name for name in names if self.data is not None)):
            try:
                if place.is_file():
                    return place.resolve()
            except (OSError, RuntimeError):
                continue  # a name that is too long, a circle of links
        return None

    def tables(self, model: type[M], key: str, tables: Sequence[object]) -> dict[int, M]:
        """Check tables of one kind; return those that make sense, by their places."""
        found = ((place, self.table(model, table, (key, place))) for place, table in enumerate(tables))
        return {place: one for place, one in found if one is not None}

    def check_known(self, at: Location, noun: str, names: Iterable[str | None], known: Collection[str]) -> None:
        """Note a fault for each name that is not known, if all that might be known is."""
        for name in names if noun not in self.incomplete else ():
            if name is not None and name not in known:
                self.faults.add_unknown(at, noun, name, known)

    def check_different(self, key: str, names: Iterable[str]) -> None:
        """Note the names that several tables of one kind have."""
        for name, count in Counter(names).items():
            if count > 1:
                self.faults.add((key,), f"Expected names that differ, got {shown(name)} {count} times")


def _read_parts(reading: _Reading, document: Mapping[str, Any]) -> Campaign:
    """Read all tables and check them against each other; the campaign counts only if no fault was noted."""
    top = reading.table(CampaignModel, document, (), name="refused") or CampaignModel(name="refused")
    simulation = reading.table(SimulationModel, dict(top.simulation), ("simulation",)) or SimulationModel()
    for key in ("workload", "policy"):
        if key not in document:
            reading.faults.add((key,), f"Expected at least one table [[{key}]], got none")
    groups = [_read_workloads(reading, table, ("workload", index)) for index, table in enumerate(top.workload)]
    workloads = tuple(workload for group in groups for workload in group)
    reading.check_different("workload", (label for group in groups for label in {one.label: None for one in group}))
    policies = [_read_policy(reading, table, ("policy", index), simulation) for index, table in enumerate(top.policy)]
    contenders = tuple(contender for policy in policies for contender in policy)
    reading.check_different("policy", (contender.label for contender in contenders))
    tables = reading.tables(Table, "table", top.table)
    for place, table in tables.items():
        _check_table(reading, table, ("table", place), [contender.label for contender in contenders])
    plots = reading.tables(Plot, "plot", top.plot)
    for place, plot in plots.items():
        reading.check_known(("plot", place, "figure"), "figure", [plot.figure], FIGURES)
        is_known = "workload" not in reading.incomplete
        if is_known and plot.over and all(getattr(one, plot.over) is None for one in workloads):
            message = f"Expected a workload with several values of {plot.over}, got none"
            reading.faults.add(("plot", place, "over"), message)
    published = reading.tables(Published, "published", top.published)
    names = dict.fromkeys(name for one in workloads for name in (one.name, one.label))
    for place, figures in published.items():
        reading.check_known(("published", place, "workload"), "workload", [figures.workload], names)
        reading.check_known(("published", place, "figures"), "figure", figures.figures, FIGURES)
    reading.check_different("table", (table.name for table in tables.values()))
    reading.check_different("plot", (plot.name for plot in plots.values()))
    return Campaign(
        name=top.name,
        seeds=top.seeds,
        warm_up=simulation.warm_up,
        cool_down=simulation.cool_down,
        workloads=workloads,
        contenders=contenders,
        tables=tuple(tables.values()),
        plots=tuple(plots.values()),
        published=tuple(published.values()),
        page=None if top.page is None else reading.file(("page",), top.page),
        left_out=tuple(reading.left_out),
    )


def _read_workloads(reading: _Reading, table: object, at: Location) -> list[Workload]:
    """Read a workload, or samples of it, at all its loads, malleable shares and models."""
    said = [key for key in _SOURCES if isinstance(table, dict) and key in table]
    if isinstance(table, dict) and len(said) != 1:
        got = " and ".join(said) or "none"
        reading.faults.add(at, f"Expected one of instance, log and generator, got {got}")
    if isinstance(table, dict):
        table = {key: value for key, value in table.items() if key not in said[1:]}
    model = reading.table(_SOURCES[said[0]] if said else WorkloadModel, table, at)
    if model is None:
        return []
    if model.model and not model.malleable:
        reading.faults.add((*at, "model"), "Expected a malleable share beside it, got none")
    files = model.instance if isinstance(model, InstanceFileModel) else ()
    files = (model.log,) if isinstance(model, LogFileModel) else files
    if model.optional and not all(map(reading.found, files)):
        reading.left_out.append(model.name)
        return []
    for key, check, texts in (
        ("walltimes", check_walltimes, model.walltimes),
        ("failures", Failures.of, model.failures),
    ):
        for text in texts:
            try:
                check(text)
            except ValueError as error:
                reading.faults.add((*at, key), str(error))
    sources = _read_sources(reading, model, at)
    runtime_models = tuple(map(RuntimeModel, model.model))
    return [
        Workload(
            name=", ".join(filter(None, (model.name, wrong and f"walltimes {wrong}", breaks and f"failures {breaks}"))),
            source=source,
            load=load,
            malleable=share,
            model=kind,
            resampled=model.resampled,
            moved=model.moved,
            sample=_sample(source, sources, at=number),
            walltimes=wrong,
            failures=breaks,
        )
        for load, share, kind, (number, source), wrong, breaks in product(
            model.load or (None,),
            model.malleable or (None,),
            runtime_models or (None,),
            enumerate(sources),
            model.walltimes or (None,),
            model.failures or (None,),
        )
    ]


def _sample(source: InstanceFile | LogFile | Generated, sources: Sequence[object], *, at: int) -> str | None:
    """Return what distinguishes one of several instances, or windows of a log: its file, or its number."""
    if len(sources) == 1:
        return None
    return source.path.name if isinstance(source, InstanceFile) else f"window {at}"


def _read_sources(
    reading: _Reading, model: WorkloadModel, at: Location
) -> Sequence[InstanceFile | LogFile | Generated]:
    match model:
        case InstanceFileModel():
            return [InstanceFile(path=reading.file((*at, "instance"), said)) for said in model.instance]
        case LogFileModel():
            return [_read_log(reading, model, one, at) for one in model.selection or (SelectionModel(),)]
        case GeneratedModel():
            return [_read_generated(reading, model, at)]
    return []


def _read_log(reading: _Reading, model: LogFileModel, selection: SelectionModel, at: Location) -> LogFile:
    options = LogOptions(
        cluster=None if model.cluster is None else reading.file((*at, "cluster"), model.cluster),
        selection=Selection(**{one.name: getattr(selection, one.name) for one in fields(Selection)}),
        cores_per_chunk=model.cores_per_chunk,
        memory_field=MemoryField(model.memory_field),
        dependencies=model.dependencies,
        feedback=model.feedback,
    )
    return LogFile(path=reading.file((*at, "log"), model.log), options=options)


def _read_generated(reading: _Reading, model: GeneratedModel, at: Location) -> Generated:
    if model.generator in GENERATORS:
        _, faults = checked_parameters(GENERATORS[model.generator], model.parameters, given=("seed",))
        for fault in faults:
            reading.faults.add((*at, "parameters", fault.path), fault.message)
    else:
        reading.faults.add_unknown((*at, "generator"), "generator", model.generator, GENERATORS)
    return Generated(generator=model.generator, parameters=frozen_parameters(model.parameters))


def frozen_parameters(table: Mapping[str, object]) -> FrozenMap[str, Any]:
    """Freeze the parameters of a generator or a scheduler, so that they can be hashed."""
    return cast(FrozenMap[str, Any], _frozen(table))


def _frozen(value: object) -> object:
    match value:
        case Mapping():
            return FrozenMap((str(key), _frozen(inner)) for key, inner in value.items())
        case list():
            return tuple(map(_frozen, value))
    return value


def _read_policy(reading: _Reading, table: object, at: Location, default: SimulationModel) -> list[Contender]:
    """Read a policy with all combinations of what varies in it."""
    model = reading.table(PolicyModel, table, at)
    if model is None:
        return []
    for key in model.vary:
        if key in model.parameters:
            reading.faults.add((*at, "vary"), f"Expected {key} in parameters or in vary, got it in both")
    try:
        is_known = factory_of(model.scheduler) is not None
    except DocumentError as error:
        reading.faults.add((*at, "scheduler"), error.faults[0].message)
        return []
    if not is_known:
        reading.faults.add_unknown((*at, "scheduler"), "scheduler", model.scheduler, scheduler_names())
        return []
    found = []
    for choice in product(*([(key, value) for value in values] for key, values in model.vary.items())):
        parameters = frozen_parameters({**model.parameters, **dict(choice)})
        try:
            make_scheduler(model.scheduler, parameters)
        except DocumentError as error:
            for fault in error.faults:
                place = ("vary" if fault.path in model.vary else "parameters", *filter(None, [fault.path]))
                reading.faults.add((*at, *place), fault.message)
        varied = "".join(f" {key}={parameter_text(value)}" for key, value in choice)
        predict = default.predict if model.predict is None else model.predict
        overhead = model.charge_overhead
        found.append(
            Contender(
                label=label_of(model.scheduler, parameters) if model.name is None else model.name + varied,
                scheduler=model.scheduler,
                parameters=parameters,
                predict=Prediction.ORDER if predict is True else Prediction(predict) if predict else None,
                charge_overhead=default.charge_overhead if overhead is None else overhead,
            )
        )
    return found


def _check_table(reading: _Reading, table: Table, at: Location, policies: Sequence[str]) -> None:
    """Check what a table shows; `policies` are the labels of all."""
    reading.check_known((*at, "relative_to"), "policy", [table.relative_to], policies)
    reading.check_known((*at, "figures"), "figure", table.figures, FIGURES)
    reading.check_known((*at, "won"), "figure", [table.won], FIGURES)
    reading.check_known((*at, "hindsight"), "policy", table.hindsight or (), policies)
    if table.hindsight is not None and table.won is None:
        reading.faults.add((*at, "hindsight"), "Expected the figure that decides as won beside it, got none")
    of_machine = [name for name in (*table.figures, table.won) if name in MACHINE_FIGURES]
    if table.by in GROUPS and of_machine:
        message = f"Expected figures that each {table.by} has, got {', '.join(of_machine)}"
        reading.faults.add((*at, "figures"), message)
