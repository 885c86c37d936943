"""The campaign file as pydantic models: its tables with their keys, types and bounds, as in ``docs/campaigns.md``.

Rules about a single table are checked here. Rules that need a second table, a file, a scheduler or a generator are
checked in `reading`.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from cpsched.arguments import SEED
from cpsched.formats import DocumentModel, Omittable, refusal, shown
from cpsched.lab.sim import Prediction

T = TypeVar("T")

#: Names that files are called by.
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise refusal(f"Expected a text of one line, got {shown(text)}")
    return text


def _file_name(text: str) -> str:
    if not _FILE_NAME.fullmatch(text):
        raise refusal(f"Expected a name of letters, digits, dots, dashes and underscores, got {shown(text)}")
    return text


def _different(values: list[T]) -> list[T]:
    for value, count in Counter(values).items():
        if count > 1:
            raise refusal(f"Expected values that differ, got {shown(value)} {count} times")
    return values


def _prediction(value: object) -> Prediction | Literal[False]:
    if isinstance(value, bool):
        return Prediction.ORDER if value else False
    for prediction in Prediction:
        if value == prediction:
            return prediction
    raise refusal(f'Expected true, false, "order" or "all", got {shown(value)}')


def _is_list(value: object) -> str:
    return "<list>" if isinstance(value, list) else "<one>"


def _is_number(value: object) -> str:
    return "<number>" if isinstance(value, int) else "<name>"


OneLine = Annotated[str, AfterValidator(_one_line)]
FileName = Annotated[str, AfterValidator(_file_name)]
Different = Annotated[list[T], Field(min_length=1), AfterValidator(_different)]
#: One value, or a list of different ones.
OneOrMore = Annotated[
    Annotated[T, Tag("<one>")] | Annotated[Different[T], Tag("<list>")],
    Discriminator(_is_list),
]
OneOrSome = Annotated[
    Annotated[T, Tag("<one>")] | Annotated[Annotated[list[T], Field(min_length=1)], Tag("<list>")],
    Discriminator(_is_list),
]
#: A number in a log in Standard Workload Format, a name in others; -1 is unknown in all.
NumberOrName = Annotated[
    Annotated[int, Field(ge=-1), Tag("<number>")] | Annotated[OneLine, Tag("<name>")],
    Discriminator(_is_number),
]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[Finite, Field(ge=0, le=1)]
Cut = Annotated[Finite, Field(ge=0, lt=1)]
#: The use of predicted runtimes; false: none.
Predict = Annotated[Prediction | Literal[False], BeforeValidator(_prediction)]


class SimulationModel(DocumentModel):
    """The settings of all simulations of a campaign."""

    warm_up: Cut = Field(0.0, description="Share of the jobs, the first ones, that do not count")
    cool_down: Cut = Field(0.0, description="Share of the jobs, the last ones, that do not count")
    predict: Predict = Field(False, description="The use of predicted runtimes; true: the order of the queue")
    charge_overhead: bool = Field(False, description="Whether the simulated clock runs while a scheduler decides")

    @model_validator(mode="after")
    def _leaves_jobs(self) -> Self:
        if self.warm_up + self.cool_down >= 1:
            raise refusal(f"Expected warm_up + cool_down < 1, got {self.warm_up + self.cool_down:g}")
        return self


class SelectionModel(DocumentModel):
    """The selection of a log's jobs."""

    statuses: Omittable[Different[Annotated[int, Field(ge=-1)]]] = Field(None, description="Of field 11 of the SWF")
    queues: Omittable[Different[NumberOrName]] = Field(None, description="Numbers in SWF, names in other logs")
    partitions: Omittable[Different[NumberOrName]] = Field(None, description="Numbers in SWF, names in other logs")
    submitted: Omittable[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]] = Field(
        None, description="[from, until) in seconds on the clock of the log"
    )
    first: int = Field(0, ge=0, description="Index of the first job among those that the other filters let through")
    jobs: Omittable[Annotated[int, Field(ge=1)]] = Field(None, description="The largest number of jobs")

    @model_validator(mode="after")
    def _range_rises(self) -> Self:
        if self.submitted is not None and self.submitted[0] >= self.submitted[1]:
            raise refusal(f"Expected submitted = [from, until] with from < until, got {self.submitted}")
        return self


class WorkloadModel(DocumentModel):
    """The keys of workloads of all sources."""

    name: OneLine = Field(description="Its name in tables and charts")
    load: Omittable[OneOrMore[Annotated[Finite, Field(gt=0)]]] = Field(None, description="Offered load")
    malleable: Omittable[OneOrMore[Share]] = Field(None, description="Share of the jobs that are malleable")
    model: Omittable[OneOrMore[Literal["ideal", "worst"]]] = Field(
        None, description="The runtime model of malleable jobs on fewer cores"
    )
    moved: Omittable[Annotated[int, Field(ge=1)]] = Field(
        None, description="Seconds by which each submission is moved at random, for each seed anew"
    )
    resampled: Omittable[Literal["users", "weeks"]] = Field(
        None, description="What is drawn with replacement, for each seed anew"
    )
    walltimes: Omittable[OneOrMore[OneLine]] = Field(
        None, description="What jobs ask for: accurate, modal, or f=NUMBER, as in cpsched generate"
    )
    failures: Omittable[OneOrMore[OneLine]] = Field(
        None, description="mtbf=SECONDS mttr=SECONDS shape=NUMBER group=NODES, for each seed anew"
    )
    optional: bool = Field(False, description="Whether it is left out where its file is not found")


class InstanceFileModel(WorkloadModel):
    """A workload that is an instance document, or several."""

    instance: OneOrMore[OneLine] = Field(description="A file, or several, whose figures are averaged")


class LogFileModel(WorkloadModel):
    """A workload that is a part of a log."""

    log: OneLine = Field(description="A log of any kind that cpsched simulate reads")
    cluster: Omittable[OneLine] = Field(None, description="The machine; default: the machine in the log's header")
    selection: Omittable[OneOrSome[SelectionModel]] = Field(
        None, description="The jobs to take, or several windows, whose figures are averaged; default: all"
    )
    cores_per_chunk: Omittable[Annotated[int, Field(ge=1)]] = Field(None, description="Cores of a chunk (SWF only)")
    memory_field: Literal["kb-per-processor", "bytes-per-job"] = Field(
        "kb-per-processor", description="Meaning and unit of field 10 (SWF only)"
    )
    dependencies: bool = Field(False, description="Whether jobs wait for their preceding jobs (SWF only)")
    feedback: bool = Field(False, description="Whether users submit jobs after the ends of earlier ones")


class GeneratedModel(WorkloadModel):
    """A workload that a generator makes, another one for each seed."""

    generator: OneLine = Field(description="As in cpsched generate")
    parameters: dict[str, Any] = Field({}, description="Of the generator, without its seed")


class PolicyModel(DocumentModel):
    """A scheduler with its parameters, or several that differ in what varies."""

    scheduler: OneLine = Field(description="As in cpsched simulate --list-policies")
    name: Omittable[OneLine] = Field(None, description="Default: the scheduler with its parameters")
    parameters: dict[str, Any] = Field({}, description="Of the scheduler")
    vary: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field({}, description="Values of its parameters")
    predict: Omittable[Predict] = Field(None, description="Default: as in [simulation]")
    charge_overhead: Omittable[bool] = Field(None, description="Default: as in [simulation]")


class Titled(DocumentModel):
    """What tables and charts share."""

    name: FileName = Field(description="Of its files")
    title: Omittable[OneLine] = Field(None, description="Default: its name")

    @property
    def heading(self) -> str:
        """The title, or else the name."""
        return self.title or self.name


class Table(Titled):
    """A table: a row for each policy, a column for each figure, also divided by those of one policy (BRIDI-23)."""

    figures: Different[OneLine] = Field(description="Its columns")
    by: Literal["total", "queue", "size", "user", "class"] = Field(
        "total", description="The groups of jobs that have rows of their own"
    )
    relative_to: Omittable[OneLine] = Field(None, description="The policy by whose figures all others are divided")
    won: Omittable[OneLine] = Field(None, description="A figure: in which share of the cells a policy has the least")
    hindsight: Omittable[Different[OneLine]] = Field(
        None, description="Policies: one more row is that of them which has the least of the figure won in the mean"
    )


class Plot(Titled):
    """A chart of one figure for each workload."""

    figure: OneLine = Field(description="What is drawn")
    over: Omittable[Literal["load", "malleable"]] = Field(None, description="The axis of the chart; default: bars")


class Published(DocumentModel):
    """Published figures."""

    source: OneLine = Field(description="The source: authors and place")
    workload: OneLine = Field(description="The name or the label of a workload")
    policy: OneLine = Field(description="One of the campaign's, or another one")
    figures: dict[str, Finite] = Field(min_length=1, description="By their names")


class CampaignModel(DocumentModel):
    """The whole file; its lists of tables are checked table by table, each by the model above."""

    name: FileName = Field(description="The name of the folder with the results")
    seeds: Different[Annotated[int, Field(ge=SEED.least, le=SEED.most)]] = Field(
        [0], description="One cell for each, of random workloads"
    )
    page: Omittable[OneLine] = Field(None, description="A page with places for the tables")
    simulation: dict[str, Any] = Field({}, description="Settings of all simulations")
    workload: list[Any] = Field([], description="What is simulated")
    policy: list[Any] = Field([], description="The schedulers that are compared")
    table: list[Any] = Field([], description="Tables of the results")
    plot: list[Any] = Field([], description="Charts of the results")
    published: list[Any] = Field([], description="Figures of others")
