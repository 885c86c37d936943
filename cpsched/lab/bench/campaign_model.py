"""The campaign file as nouns: its tables with their keys, types and bounds, as in ``docs/campaigns.md``.

Rules about a single table are checked here. Rules that need more than it are checked in `reading`.
"""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from cpsched.arguments import Seed
from cpsched.domain import Bounds, Check, Entries, FrozenMap, Key, Several
from cpsched.formats import FORMS, Form, shown

T = TypeVar("T")

#: Names that files are called by.
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _no_line(text: str) -> str | None:
    is_line = text.strip() and text.isprintable()
    return None if is_line else f"Expected a text of one line, got {shown(text)}"


def _no_file_name(text: str) -> str | None:
    said = f"Expected a name of letters, digits, dots, dashes and underscores, got {shown(text)}"
    return None if _FILE_NAME.fullmatch(text) else said


def _repeated(values: Any) -> str | None:
    for value, count in Counter(values if isinstance(values, list) else ()).items():
        if count > 1:
            return f"Expected values that differ, got {shown(value)} {count} times"
    return None


def _no_prediction(value: object) -> str | None:
    is_one = isinstance(value, bool) or value in ("order", "all")
    return None if is_one else f'Expected true, false, "order" or "all", got {shown(value)}'


OneLine = Annotated[str, Check(_no_line)]
FileName = Annotated[str, Check(_no_file_name)]
Different = Annotated[tuple[T, ...], Entries(1), Check(_repeated)]
#: One value, or a list of different ones.
OneOrMore = Annotated[tuple[T, ...], Entries(1), Several(), Check(_repeated)]
#: A number in a log in Standard Workload Format, a name in others; -1 is unknown in all.
NumberOrName = Annotated[int, Bounds(-1)] | OneLine
Share = Annotated[float, Bounds(0, 1)]
Cut = Annotated[float, Bounds(0, below=1)]
#: The use of predicted runtimes: false, true, or a word of `cpsched.lab.sim.Prediction`.
Predict = Annotated[Any, Check(_no_prediction)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationModel:
    """The settings of all simulations of a campaign."""

    warm_up: Annotated[Cut, Key("Share of the jobs, the first ones, that do not count")] = 0.0
    cool_down: Annotated[Cut, Key("Share of the jobs, the last ones, that do not count")] = 0.0
    predict: Annotated[Predict, Key('The use of predicted runtimes: true or "order" of the queue, "all", or false')] = (
        False
    )
    charge_overhead: Annotated[bool, Key("Whether the simulated clock runs while a scheduler decides")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionModel:
    """The selection of a log's jobs."""

    statuses: Annotated[Different[Annotated[int, Bounds(-1)]] | None, Key("Of field 11 of the SWF")] = None
    queues: Annotated[Different[NumberOrName] | None, Key("Numbers in SWF, names in other logs")] = None
    partitions: Annotated[Different[NumberOrName] | None, Key("Numbers in SWF, names in other logs")] = None
    submitted: Annotated[
        tuple[Annotated[int, Bounds(0)], ...] | None,
        Entries(2),
        Check(lambda both: None if len(both) == 2 else f"Expected at most 2 entries, got {len(both)}"),
        Key("[from, until) in seconds on the clock of the log"),
    ] = None
    first: Annotated[int, Bounds(0), Key("Index of the first job among those that the other filters let through")] = 0
    jobs: Annotated[int | None, Bounds(1), Key("The largest number of jobs")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadModel:
    """The keys of workloads of all sources."""

    name: Annotated[OneLine, Key("Its name in tables and charts")]
    load: Annotated[OneOrMore[Annotated[float, Bounds(above=0)]], Key("Offered load")] = ()
    malleable: Annotated[OneOrMore[Share], Key("Share of the jobs that are malleable")] = ()
    model: Annotated[
        OneOrMore[Literal["ideal", "worst"]], Key("The runtime model of malleable jobs on fewer cores")
    ] = ()
    moved: Annotated[
        int | None, Bounds(1), Key("Seconds by which each submission is moved at random, for each seed anew")
    ] = None
    resampled: Annotated[
        Literal["users", "weeks"] | None, Key("What is drawn with replacement, for each seed anew")
    ] = None
    walltimes: Annotated[
        OneOrMore[OneLine], Key("What jobs ask for: accurate, modal, or f=NUMBER, as in cpsched generate")
    ] = ()
    failures: Annotated[
        OneOrMore[OneLine], Key("mtbf=SECONDS mttr=SECONDS shape=NUMBER group=NODES, for each seed anew")
    ] = ()
    optional: Annotated[bool, Key("Whether it is left out where its file is not found")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceFileModel(WorkloadModel):
    """A workload that is an instance document, or several."""

    instance: Annotated[OneOrMore[OneLine], Key("A file, or several, whose figures are averaged")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFileModel(WorkloadModel):
    """A workload that is a part of a log."""

    log: Annotated[OneLine, Key("A log of any kind that cpsched simulate reads")]
    cluster: Annotated[OneLine | None, Key("The machine; default: the machine in the log's header")] = None
    selection: Annotated[
        tuple[SelectionModel, ...],
        Entries(1),
        Several(),
        Key("The jobs to take, or several windows, whose figures are averaged; default: all"),
    ] = ()
    cores_per_chunk: Annotated[int | None, Bounds(1), Key("Cores of a chunk (SWF only)")] = None
    memory_field: Annotated[
        Literal["kb-per-processor", "bytes-per-job"], Key("Meaning and unit of field 10 (SWF only)")
    ] = "kb-per-processor"
    dependencies: Annotated[bool, Key("Whether jobs wait for their preceding jobs (SWF only)")] = False
    feedback: Annotated[bool, Key("Whether users submit jobs after the ends of earlier ones")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedModel(WorkloadModel):
    """A workload that a generator makes, another one for each seed."""

    generator: Annotated[OneLine, Key("As in cpsched generate")]
    parameters: Annotated[FrozenMap[str, Any], Key("Of the generator, without its seed")] = FrozenMap()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyModel:
    """A scheduler with its parameters, or several that differ in what varies."""

    scheduler: Annotated[OneLine, Key("As in cpsched simulate --list-policies")]
    name: Annotated[OneLine | None, Key("Default: the scheduler with its parameters")] = None
    parameters: Annotated[FrozenMap[str, Any], Key("Of the scheduler")] = FrozenMap()
    vary: Annotated[FrozenMap[str, Annotated[tuple[Any, ...], Entries(1)]], Key("Values of its parameters")] = (
        FrozenMap()
    )
    predict: Annotated[Predict | None, Key("Default: as in [simulation]")] = None
    charge_overhead: Annotated[bool | None, Key("Default: as in [simulation]")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Titled:
    """What tables and charts share."""

    name: Annotated[FileName, Key("Of its files")]
    title: Annotated[OneLine | None, Key("Default: its name")] = None

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Titled):
    """A table: a row for each policy, a column for each figure, also divided by those of one policy (BRIDI-23)."""

    figures: Annotated[Different[OneLine], Key("Its columns")]
    by: Annotated[
        Literal["total", "queue", "size", "user", "class", "day"], Key("The groups of jobs that have rows of their own")
    ] = "total"
    relative_to: Annotated[OneLine | None, Key("The policy by whose figures all others are divided")] = None
    won: Annotated[OneLine | None, Key("A figure: in which share of the cells a policy has the least")] = None
    hindsight: Annotated[
        Different[OneLine] | None,
        Key("Policies: one more row is that of them which has the least of the figure won in the mean"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot(Titled):
    """A chart of one figure for each workload."""

    figure: Annotated[OneLine, Key("What is drawn")]
    over: Annotated[Literal["load", "malleable"] | None, Key("The axis of the chart; default: bars")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Published figures."""

    source: Annotated[OneLine, Key("The source: authors and place")]
    workload: Annotated[OneLine, Key("The name or the label of a workload")]
    policy: Annotated[OneLine, Key("One of the campaign's, or another one")]
    figures: Annotated[FrozenMap[str, float], Entries(1), Key("By their names")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignModel:
    """The whole file; its lists of tables are checked table by table, each by the model above."""

    name: Annotated[FileName, Key("The name of the folder with the results")]
    seeds: Annotated[Different[Seed], Key("One cell for each, of random workloads")] = (0,)
    page: Annotated[OneLine | None, Key("A page with places for the tables")] = None
    simulation: Annotated[FrozenMap[str, Any], Key("Settings of all simulations")] = FrozenMap()
    workload: Annotated[tuple[Any, ...], Key("What is simulated")] = ()
    policy: Annotated[tuple[Any, ...], Key("The schedulers that are compared")] = ()
    table: Annotated[tuple[Any, ...], Key("Tables of the results")] = ()
    plot: Annotated[tuple[Any, ...], Key("Charts of the results")] = ()
    published: Annotated[tuple[Any, ...], Key("Figures of others")] = ()


def _rule_of_simulations(table: Any) -> str | None:
    gone = table.get("warm_up", 0) + table.get("cool_down", 0)
    return f"Expected warm_up + cool_down < 1, got {gone:g}" if gone >= 1 else None


def _rule_of_selections(table: Any) -> str | None:
    since, until = table.get("submitted", (0, 1))
    is_right = since < until
    return None if is_right else f"Expected submitted = [from, until] with from < until, got {[since, until]}"


FORMS[SimulationModel] = Form(rule=_rule_of_simulations)
FORMS[SelectionModel] = Form(rule=_rule_of_selections)
