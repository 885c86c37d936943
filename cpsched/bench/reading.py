"""From a TOML file to a campaign, or to everything that is wrong with it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

from cpsched.bench.campaign import (
    Campaign,
    Contender,
    Generated,
    InstanceFile,
    LogFile,
    Plot,
    Published,
    Table,
    Workload,
)
from cpsched.bench.fields import FLAG, TEXT, Fields, Kind, integer, list_of, number, one_of, parameters_of
from cpsched.bench.figures import FIGURES, GROUPS, MACHINE_FIGURES
from cpsched.bench.loading import GENERATORS
from cpsched.bench.signatures import refuse_generator_parameters
from cpsched.domain import FrozenMap, RuntimeModel
from cpsched.errors import DocumentError, Fault
from cpsched.formats import Faults, shown
from cpsched.formats.swf import MemoryField, Selection
from cpsched.portfolio import ALL_SCHEDULERS, make_any_scheduler

__all__ = ["read_campaign"]

#: Names that files are called by.
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_SEEDS = list_of(integer(0), "a list of different integers >= 0")
_LOADS = list_of(number("", lambda load: load > 0, 1), "a number > 0, or a list of different ones", or_one=True)
_SHARES = list_of(
    number("", lambda share: 0 <= share <= 1, 0), "a number from 0 to 1, or a list of different ones", or_one=True
)
_MODELS = list_of(one_of(list(RuntimeModel), RuntimeModel.IDEAL), '"ideal" or "worst", or a list of both', or_one=True)
_CUT = number("a number >= 0 and < 1", lambda share: 0 <= share < 1, 0)
_ANY_NUMBER = number("a number", lambda _: True, 0)
_FILES = list_of(TEXT, "a text of one line, or a list of different ones", or_one=True)
_NAMES = list_of(TEXT, "a list of different texts")


def _read_file_name(value: object) -> str:
    if not isinstance(value, str) or not _FILE_NAME.fullmatch(value):
        raise ValueError
    return value


_NAME_OF_FILE = Kind("a name of letters, digits, dots, dashes and underscores", _read_file_name, "?")


def read_campaign(path: Path) -> Campaign:
    """Read a campaign; paths in it are relative to its own folder.

    Raises
    ------
    DocumentError
        With everything that is wrong with it.
    """
    document = _load(path)
    faults = Faults(document)
    top = Fields(document, (), faults)
    name = top.required("name", _NAME_OF_FILE)
    seeds = top.optional("seeds", _SEEDS, (0,))
    simulation = top.table("simulation")
    warm_up, cool_down = (simulation.optional(key, _CUT, 0.0) for key in ("warm_up", "cool_down"))
    if warm_up + cool_down >= 1:
        simulation.refuse("cool_down", f"Expected warm_up + cool_down < 1, got {warm_up + cool_down:g}")
    how = {key: simulation.optional(key, FLAG, False) for key in ("predict", "charge_overhead")}
    groups = [_workloads(fields, path.parent) for fields in top.tables("workload")]
    workloads = tuple(chain.from_iterable(groups))
    contenders = tuple(chain.from_iterable(_contenders(fields, how) for fields in top.tables("policy")))
    for key in ("workload", "policy"):
        if key not in top:
            top.refuse(key, f"Expected at least one table [[{key}]], got none")
    _refuse_repeated(
        top, "workload", (label for group in groups for label in dict.fromkeys(one.label for one in group))
    )
    _refuse_repeated(top, "policy", (contender.label for contender in contenders))
    tables = tuple(_table(fields, [contender.label for contender in contenders]) for fields in top.tables("table"))
    plots = tuple(_plot(fields, workloads) for fields in top.tables("plot"))
    _refuse_repeated(top, "table", (table.name for table in tables))
    _refuse_repeated(top, "plot", (plot.name for plot in plots))
    published = tuple(_published(fields, workloads) for fields in top.tables("published"))
    page = _file(top, "page", path.parent) if "page" in top else None
    for fields in (simulation, top):
        fields.close()
    faults.raise_if_any(str(path))
    return Campaign(
        name=name,
        seeds=seeds,
        warm_up=warm_up,
        cool_down=cool_down,
        workloads=workloads,
        contenders=contenders,
        tables=tables,
        plots=plots,
        published=published,
        page=page,
    )


def _load(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fault = Fault("file", f"Expected a readable file, got: {error.strerror or error}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        fault = Fault("", f"Expected TOML, got: {error}")
    raise DocumentError(str(path), [fault])


def _refuse_repeated(top: Fields, key: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            top.refuse(key, f"Expected names that differ, got {shown(name)} {count} times")


# --- workloads ----------------------------------------------------------------------------------------------------


def _workloads(fields: Fields, folder: Path) -> list[Workload]:
    """Read a workload, or samples of it, at all its loads, malleable shares and models."""
    name = fields.required("name", TEXT)
    kinds: dict[str, Callable[[Fields, Path], Sequence[InstanceFile | LogFile | Generated]]]
    kinds = {"instance": _instance_files, "log": _log_file, "generator": _generated}
    said = [key for key in kinds if key in fields]
    sources: Sequence[InstanceFile | LogFile | Generated] = (InstanceFile(path=folder),)
    if len(said) != 1:
        got = " and ".join(said) or "none"
        fields.faults.add(fields.location, f"Expected one of instance, log and generator, got {got}")
    for key in said:
        sources = kinds[key](fields, folder)
    loads = fields.optional("load", _LOADS, ()) or (None,)
    shares = fields.optional("malleable", _SHARES, ()) or (None,)
    models = [RuntimeModel(model) for model in fields.optional("model", _MODELS, ())] or (None,)
    if "model" in fields and "malleable" not in fields:
        fields.refuse("model", "Expected a malleable share beside it, got none")
    fields.close()
    return [
        Workload(name=name, source=source, load=load, malleable=share, model=model, sample=_sample(source, sources))
        for load, share, model, source in product(loads, shares, models, sources)
    ]


def _sample(source: InstanceFile | LogFile | Generated, sources: Sequence[object]) -> str | None:
    """Return what tells one of several instances from the others."""
    return source.path.name if isinstance(source, InstanceFile) and len(sources) > 1 else None


def _file(fields: Fields, key: str, folder: Path) -> Path:
    """Read the path of a file that has to be there."""
    return _existing(fields, key, folder, fields.required(key, TEXT))


def _existing(fields: Fields, key: str, folder: Path, said: str) -> Path:
    """Return the path of a file that a key speaks of."""
    path = (folder / said).resolve()
    if said != TEXT.stand_in and not path.is_file():
        fields.refuse(key, f"Expected a file, got {shown(said)}, which does not exist in {folder.resolve()}")
    return path


def _instance_files(fields: Fields, folder: Path) -> list[InstanceFile]:
    return [
        InstanceFile(path=_existing(fields, "instance", folder, said)) for said in fields.required("instance", _FILES)
    ]


def _log_file(fields: Fields, folder: Path) -> list[LogFile]:
    """Read a log and which jobs of it are taken."""
    cores = fields.optional("cores_per_chunk", integer(1), 0)
    memory = fields.optional("memory_field", one_of(list(MemoryField), ""), MemoryField.KB_PER_PROCESSOR)
    log = LogFile(
        path=_file(fields, "log", folder),
        cluster=_file(fields, "cluster", folder) if "cluster" in fields else None,
        selection=_selection(fields.table("selection")),
        cores_per_chunk=cores or None,
        memory_field=MemoryField(memory or MemoryField.KB_PER_PROCESSOR),
    )
    return [log]


def _selection(fields: Fields) -> Selection:
    """Read the filters of a log's jobs."""
    codes = list_of(integer(-1), "a list of different integers >= -1")
    filters = {key: fields.optional(key, codes, ()) for key in ("statuses", "queues", "partitions")}
    submitted = fields.optional("submitted", list_of(integer(0), "two integers [from, until]"), ())
    if submitted and (len(submitted) != 2 or submitted[0] >= submitted[1]):
        fields.refuse("submitted", f"Expected two integers [from, until] with from < until, got {list(submitted)}")
        submitted = ()
    first, jobs = fields.optional("first", integer(0), 0), fields.optional("jobs", integer(1), 0)
    fields.close()
    return Selection(
        **{key: frozenset(values) if values else None for key, values in filters.items()},
        submitted=(submitted[0], submitted[1]) if submitted else None,
        first=first,
        jobs=jobs or None,
    )


def _generated(fields: Fields, folder: Path) -> list[Generated]:
    """Read the name of a generator and its parameters."""
    name = fields.required("generator", TEXT)
    parameters = fields.raw("parameters")
    if name not in GENERATORS:
        fields.refuse_unknown("generator", "generator", name, GENERATORS)
    else:
        refuse_generator_parameters(fields, GENERATORS[name], parameters)
    return [Generated(generator=name, parameters=parameters_of(parameters))]


# --- policies -----------------------------------------------------------------------------------------------------


def _contenders(fields: Fields, how: Mapping[str, bool]) -> list[Contender]:
    """Read a policy with all combinations of what varies in it."""
    scheduler = fields.required("scheduler", TEXT)
    name = fields.optional("name", TEXT, scheduler)
    said = {key: fields.optional(key, FLAG, default) for key, default in how.items()}
    fixed = fields.raw("parameters")
    varied = _varied(fields, fixed)
    fields.close()
    if scheduler not in ALL_SCHEDULERS:
        fields.refuse_unknown("scheduler", "scheduler", scheduler, ALL_SCHEDULERS)
        return []
    found = []
    for choice in product(*([(key, value) for value in values] for key, values in varied.items())):
        parameters = parameters_of({**fixed, **dict(choice)})
        try:
            make_any_scheduler(scheduler, parameters)
        except DocumentError as error:
            for fault in error.faults:
                place = ("vary" if fault.path in varied else "parameters", *filter(None, [fault.path]))
                fields.faults.add((*fields.location, *place), fault.message)
        found.append(
            Contender(
                label=" ".join([name, *(f"{key}={value}" for key, value in choice)]),
                scheduler=scheduler,
                parameters=parameters,
                predict=said["predict"],
                charge_overhead=said["charge_overhead"],
            )
        )
    return found


def _varied(fields: Fields, fixed: Mapping[str, object]) -> dict[str, list[object]]:
    """Read what each parameter is tried with that varies."""
    varied: dict[str, list[object]] = {}
    for key, values in fields.raw("vary").items():
        if key in fixed:
            fields.refuse("vary", f"Expected {key} in parameters or in vary, got it in both")
        elif isinstance(values, list) and values:
            varied[key] = values
        else:
            fields.refuse("vary", f"Expected a list of at least one value for {key}, got {shown(values)}")
    return varied


# --- what is shown ------------------------------------------------------------------------------------------------


def _table(fields: Fields, contenders: Sequence[str]) -> Table:
    """Read what a table shows."""
    name = fields.required("name", _NAME_OF_FILE)
    by = fields.optional("by", one_of(["total", *GROUPS], "total"), "total")
    relative_to = fields.optional("relative_to", TEXT, "") or None
    if relative_to is not None and relative_to not in contenders:
        fields.refuse_unknown("relative_to", "policy", relative_to, contenders)
    table = Table(
        name=name,
        title=fields.optional("title", TEXT, name),
        figures=fields.required("figures", _NAMES),
        by=by,
        relative_to=relative_to,
    )
    _refuse_unknown_figures(fields, "figures", table.figures)
    of_machine = [figure for figure in table.figures if figure in MACHINE_FIGURES]
    if by != "total" and of_machine:
        fields.refuse("figures", f"Expected figures that each {by} has, got {', '.join(of_machine)}")
    fields.close()
    return table


def _plot(fields: Fields, workloads: Iterable[Workload]) -> Plot:
    """Read what a chart shows."""
    name = fields.required("name", _NAME_OF_FILE)
    over = fields.optional("over", one_of(["load", "malleable"], ""), "")
    plot = Plot(
        name=name,
        title=fields.optional("title", TEXT, name),
        figure=fields.required("figure", TEXT),
        over=over or None,
    )
    _refuse_unknown_figures(fields, "figure", [plot.figure])
    if over and not any(getattr(workload, over) is not None for workload in workloads):
        fields.refuse("over", f"Expected a workload with several values of {over}, got none")
    fields.close()
    return plot


def _published(fields: Fields, workloads: Iterable[Workload]) -> Published:
    """Read figures that somebody else has found."""
    workload = fields.required("workload", TEXT)
    names = dict.fromkeys(name for one in workloads for name in (one.name, one.label))
    if workload not in names:
        fields.refuse_unknown("workload", "workload", workload, names)
    table = fields.table("figures")
    figures = {name: table.optional(name, _ANY_NUMBER, 0.0) for name in fields.raw("figures") if name in FIGURES}
    _refuse_unknown_figures(fields, "figures", fields.raw("figures"))
    if not fields.raw("figures"):
        fields.refuse("figures", "Expected a table of at least one figure, got none")
    published = Published(
        source=fields.required("source", TEXT),
        workload=workload,
        policy=fields.required("policy", TEXT),
        figures=FrozenMap(figures),
    )
    fields.close()
    return published


def _refuse_unknown_figures(fields: Fields, key: str, names: Iterable[str]) -> None:
    for name in names:
        if name not in FIGURES:
            fields.refuse_unknown(key, "figure", name, FIGURES)
