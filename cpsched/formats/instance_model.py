"""The instance document as pydantic models: its keys, their types and bounds, key by key as in ``docs/formats.md``.

Rules about a single object are checked here; rules about several objects are checked in `instance_reader`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from cpsched.formats.fields import (
    Amount,
    AmountsField,
    Count,
    DocumentModel,
    Duration,
    ListOf,
    Name,
    Number,
    Omittable,
    Price,
    Priority,
    Text,
    Time,
    UnitSeconds,
    Weight,
    refusal,
)

__all__ = [
    "AccessModel",
    "ChunkModel",
    "ClusterModel",
    "ConsumerModel",
    "FreePoolModel",
    "InstanceModel",
    "JobModel",
    "LimitModel",
    "MalleableModel",
    "NodesModel",
    "OutageModel",
    "PlacementModel",
    "QueueModel",
    "RequestField",
    "ReservationModel",
    "RunningModel",
    "TermName",
    "TimesModel",
    "UsageModel",
]


def _text_or(other: str, text: str) -> Discriminator:
    return Discriminator(lambda value: text if isinstance(value, str) else other)


class AdmitModel(DocumentModel):
    """One condition of a node's guard; all of its parts must hold."""

    min: Omittable[AmountsField] = Field(None, description="What one chunk must at least ask for, by resource")
    max_walltime: Omittable[Duration] = Field(None, description="The longest walltime (s) that is let in")

    @model_validator(mode="after")
    def _has_a_part(self) -> Self:
        if self.min is None and self.max_walltime is None:
            raise refusal("Expected min or max_walltime, got neither")
        return self


class KeepFreeModel(DocumentModel):
    """The amount of a resource that chunks leave free unless they ask for another one."""

    resource: Name = Field(description="The resource that is kept free")
    items: Amount = Field(description="How much of it is kept free on the node")
    for_: Name = Field(alias="for", description="Chunks that ask for this resource may have all of it")


class NodesModel(DocumentModel):
    """Nodes that differ in nothing but their names."""

    names: Text = Field(description="A host list such as cn[001-616]", examples=["node[001-032]"])
    resources: AmountsField = Field(
        description="What one node has: cores, mem (MiB), gpus, mics and any name of the site"
    )
    properties: dict[Name, Text] = Field({}, description="Strings that a chunk may ask for (arch, rack, net, …)")
    priority: Priority = Field(0, description="The administrator's bias: higher is more expensive, used later")
    state: Literal["up", "drain", "down"] = Field("up", description="drain: running work ends, nothing new")
    admits: ListOf[AdmitModel] = Field([], description="The node's guard: one of these conditions must hold")
    keep_free: ListOf[KeepFreeModel] = Field([], description="What is kept free for the users of another resource")


class ClusterModel(DocumentModel):
    """The nodes, and the countable resources that belong to no node."""

    nodes: ListOf[NodesModel] = Field(
        min_length=1, description="Node classes, in the order in which nodes are numbered"
    )
    licenses: AmountsField = Field({}, description="Cluster-wide countable resources")
    states: dict[Text, Literal["up", "drain", "down"]] = Field(
        {}, description="States of single nodes, by host list", examples=[{"n7": "down", "n[1-3]": "drain"}]
    )


class MaxWaitModel(DocumentModel):
    """A wait beyond which no job of a queue shall starve."""

    seconds: Duration = Field(description="From submission to the latest start that costs nothing more")
    price: Price = Field(10, description="Added to the objective for each expected wait (s) beyond it")
    hard: bool = Field(False, description="Whether a job that can still start in time must")


QueueNodesField = Annotated[
    Annotated[Text, Tag("<hosts>")]
    | Annotated[dict[Name, Text], Field(min_length=1, description="Properties"), Tag("<properties>")],
    _text_or("<properties>", "<hosts>"),
]


class QueueModel(DocumentModel):
    """A queue."""

    expected_wait: Duration = Field(
        description="Seconds that its jobs may be expected to wait: the ewt of the objective"
    )
    priority: Priority = Field(0, description="Higher first")
    weight: Weight = Field(1, description="Multiplies what its jobs add to the objective")
    max_walltime: Omittable[Duration] = Field(None, description="The longest walltime (s) that is planned")
    max_wait: Omittable[MaxWaitModel] = Field(None, description="Against starvation")
    nodes: Omittable[QueueNodesField] = Field(None, description="The nodes that its jobs run on; left out: all")


class ChunkModel(DocumentModel):
    """Equal units, each of which is allocated on one node."""

    count: Count = Field(description="How many of them")
    resources: AmountsField = Field(description="What one unit takes; mem in MiB")
    where: dict[Name, Text] = Field({}, description="Properties that the node must have")

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not any(self.resources.values()):
            raise refusal("Expected at least one unit of a countable resource, got none")
        return self


RequestField = Annotated[
    Annotated[Text, Tag("<text>")] | Annotated[ListOf[ChunkModel], Field(min_length=1), Tag("<chunks>")],
    _text_or("<chunks>", "<text>"),
    Field(
        description="Chunks as text, [N:]res=value[:res=value…][+…][,place=…][,licence=N], or in parsed form",
        examples=["8:ncpus=2:mem=10g:ngpus=1"],
    ),
]


class StepModel(DocumentModel):
    """One step of an evolving job."""

    walltime: Duration = Field(description="Seconds")
    request: RequestField


class DependencyModel(DocumentModel):
    """A dependency of a job."""

    job: Name = Field(description="Id of a job, an array, or one of its elements")
    type: Literal["after", "afterok", "afterany", "afternotok"] = Field(description="after: started; else: ended")
    delay: Annotated[int, Field(ge=0, le=10**10)] = Field(0, description="Seconds in between")


class PromisedStartModel(DocumentModel):
    """The start that a job's user was told."""

    start: Time = Field(description="Only later starts cost")
    price: Price = Field(1, description="Added to the objective for each expected wait (s) of postponement")


class ArrayModel(DocumentModel):
    """Many like jobs in one entry."""

    indices: Text = Field(description="A list such as 0-9, 1,3,5-9 or 0-20:5", examples=["0-9999"])


def _is_share(value: float) -> float:
    if not 0 < value < 1:
        raise refusal(f"Expected a share of the cores between 0 and 1 (the full share, 1, is not named), got {value:g}")
    return value


class MalleableModel(DocumentModel):
    """On which shares of its cores a job can run."""

    shares: ListOf[
        Annotated[
            float,
            AfterValidator(_is_share),
            Field(json_schema_extra={"exclusiveMinimum": 0, "exclusiveMaximum": 1}),
        ]
    ] = Field(min_length=1, description="Below 1; the full share is always possible")
    model: Literal["ideal", "worst"] = Field("ideal", description="How the runtime stretches on a share")
    stretch: dict[Name, Annotated[Number, Field(ge=1)]] = Field(
        {}, description="Runtime factor by share, over the model"
    )


class PlacementModel(DocumentModel):
    """The amounts that a running job holds on one node."""

    node: Name
    chunk: Omittable[Annotated[int, Field(ge=0, lt=10**6)]] = Field(
        None, description="The kind of chunks that stand there (index in the request of the step)"
    )
    count: Omittable[Count] = Field(None, description="How many of them")
    resources: AmountsField

    @model_validator(mode="after")
    def _counts_a_chunk(self) -> Self:
        if (self.chunk is None) != (self.count is None):
            raise refusal("Expected chunk and count together, or neither")
        return self


class SegmentModel(DocumentModel):
    """A time during which the allocation does not change."""

    start: Time
    end: Time
    allocation: ListOf[PlacementModel] = Field(min_length=1)


class RunningModel(DocumentModel):
    """A job that has started: fixed."""

    start: Time = Field(description="When it started, not after now")
    allocation: Omittable[Annotated[ListOf[PlacementModel], Field(min_length=1)]] = Field(
        None, description="What it holds until start + walltime"
    )
    segments: Omittable[Annotated[ListOf[SegmentModel], Field(min_length=1)]] = Field(
        None, description="In place of allocation, where that has changed"
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.allocation is None) == (self.segments is None):
            raise refusal("Expected either allocation or segments")
        return self


class JobModel(DocumentModel):
    """A job: rigid, evolving (steps), malleable, or an array of like jobs."""

    id: Name = Field(description="Unique")
    user: Omittable[Name] = None
    group: Omittable[Name] = None
    queue: Omittable[Name] = Field(None, description="One of the declared queues")
    project: Omittable[Name] = None
    submit: Time = Field(description="When it arrived; waiting is counted from here")
    walltime: Omittable[Duration] = Field(None, description="The requested duration (s)")
    request: Omittable[RequestField] = None
    place: Omittable[Text] = Field(
        None, description="free, pack or scatter, then :excl or :shared", examples=["scatter:excl"]
    )
    licenses: Omittable[AmountsField] = Field(None, description="Held for the job's whole life")
    priority: Omittable[Priority] = Field(None, description="Higher first; default: the queue's")
    weight: Omittable[Weight] = Field(
        None, description="Multiplies what the job adds to the objective; default: the queue's"
    )
    not_before: Omittable[Time] = Field(None, description="Earliest start")
    start_at: Omittable[Time] = Field(None, description="The only start allowed")
    deadline: Omittable[Time] = Field(None, description="Latest end")
    after: ListOf[DependencyModel] = Field([], description="What it waits for")
    told: Omittable[PromisedStartModel] = Field(None, description="The start that its user was told")
    array: Omittable[ArrayModel] = None
    steps: Omittable[Annotated[ListOf[StepModel], Field(min_length=1)]] = Field(
        None, description="An evolving job, in place of walltime and request"
    )
    expand_limit: Annotated[Number, Field(ge=1)] | None = Field(
        1, description="How many times its walltime a step may be held; null: no limit"
    )
    malleable: Omittable[MalleableModel] = None
    running: Omittable[RunningModel] = None
    expected: Omittable[Duration] = Field(None, description="How long it is expected to run (s), at most walltime")
    runtime: Omittable[Duration] = Field(None, description="How long it really runs (s): for simulators only")
    reservation: Omittable[Name] = Field(None, description="Run inside that reservation")

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        given = self.model_fields_set
        if self.steps is None and not {"walltime", "request"} <= given:
            lacking = " and ".join(sorted({"walltime", "request"} - given))
            raise refusal(f"Expected walltime and request, or steps; got no {lacking}")
        if self.steps is not None and given & {"walltime", "request"}:
            raise refusal("Expected either steps, or walltime and request, got both")
        if self.steps is not None and self.malleable is not None:
            raise refusal("Expected a malleable or an evolving job, got both malleable and steps")
        if self.expected is not None and (self.steps is not None or self.malleable is not None):
            raise refusal("Expected no expected in an evolving or malleable job: a plan chooses how long it takes")
        if self.steps is None and "expand_limit" in given:
            raise refusal("Expected expand_limit only together with steps")
        if self.array is not None and self.running is not None:
            raise refusal("Expected no running in an array: elements that run are entries of their own")
        if self.told is not None and self.running is not None:
            raise refusal("Expected no told in a running job: its start is a fact")
        return self


class ConsumerModel(DocumentModel):
    """A user, a group, or each of them by itself."""

    user: Omittable[Name] = None
    group: Omittable[Name] = None
    each: Omittable[Literal["user", "group"]] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise refusal("Expected exactly one of user, group and each")
        return self


class TimesModel(DocumentModel):
    """A time from … until, the minutes that a cron expression matches, or where both hold."""

    from_: Omittable[Time] = Field(None, alias="from")
    until: Omittable[Time] = None
    cron: Omittable[Text] = Field(None, description="Five fields", examples=["* 8-17 * * mon-fri"])

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.from_ is None and self.until is None and self.cron is None:
            raise refusal("Expected at least one of from, until and cron, got none")
        if self.from_ is not None and self.until is not None and self.from_ >= self.until:
            raise refusal(f"Expected from < until, got {self.from_} and {self.until}")
        return self


ValidityField = Annotated[
    Annotated[Literal["always"], Tag("<always>")] | Annotated[TimesModel, Tag("<times>")],
    _text_or("<times>", "<always>"),
]


class LimitModel(DocumentModel):
    """A limit on the use of a resource by users or groups."""

    consumer: ConsumerModel
    resource: Name = Field(
        description="A countable resource, a licence, jobs, arrayjobs, or * for all without own limit"
    )
    items: Omittable[Text] = Field(None, description="min/max%: the larger of the two", examples=["30/45%"])
    duration: Omittable[Duration] = Field(None, description="The longest use by one request (s)")
    area: Omittable[UnitSeconds] = Field(None, description="Resource x walltime")
    area_scope: Literal["request", "outstanding"] = Field("request", description="What the area adds up")
    validity: ValidityField = "always"
    soft: bool = Field(False, description="May be exceeded if no other job needs the resource")

    @model_validator(mode="after")
    def _has_a_bound(self) -> Self:
        if self.items is None and self.duration is None and self.area is None:
            raise refusal("Expected items, duration or area, got no bound")
        return self


class AccessModel(DocumentModel):
    """The jobs to which a free pool is open."""

    users: ListOf[Name] = Field([], description="Each of them is let in")
    groups: ListOf[Name] = Field([], description="The users of each of them are let in")
    asks_for: ListOf[Name] = Field([], description="Resources; a job that asks for one of them has access")
    max: Omittable[AmountsField] = Field(None, description="Job totals; with max_walltime, where both hold")
    max_walltime: Omittable[Duration] = None


class OtherwiseModel(DocumentModel):
    """The rule for jobs without access."""

    max_walltime: Duration = Field(description="The others may use the pool up to this walltime (s)")


class FreePoolModel(DocumentModel):
    """The amount that all jobs without access leave free together."""

    resource: Name
    items: Text = Field(description="min/max%: the larger of the two", examples=["10/20%"])
    open_to: AccessModel = AccessModel()
    validity: ValidityField = "always"
    nodes: Omittable[Text] = Field(None, description="A host list; left out: the whole cluster")
    otherwise: Omittable[OtherwiseModel] = None


class ReservationModel(DocumentModel):
    """A slice of the cluster, set aside for a time or for recurring times."""

    id: Name
    start: Omittable[Time] = None
    end: Omittable[Time] = None
    validity: Omittable[TimesModel] = Field(None, description="In place of start and end, with cron: recurring times")
    request: Omittable[RequestField] = None
    nodes: Omittable[Text] = Field(None, description="In place of request, a host list: these nodes as a whole")
    allocation: Omittable[Annotated[ListOf[PlacementModel], Field(min_length=1)]] = Field(
        None, description="What it has got already, and keeps"
    )
    place: Omittable[Text] = None
    licenses: Omittable[AmountsField] = None
    users: ListOf[Name] = Field([], description="The users who may use it")
    kind: Literal["users", "downtime"] = Field("users", description="A downtime is a reservation that no job may use")

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        given = self.model_fields_set
        if given & {"start", "end", "validity"} not in ({"start", "end"}, {"validity"}):
            raise refusal("Expected either start and end, or validity")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise refusal(f"Expected start < end, got {self.start} and {self.end}")
        if self.validity is not None and self.validity.cron is None:
            raise refusal("Expected cron in the validity of a reservation, or start and end in its place")
        if (self.request is None) == (self.nodes is None):
            raise refusal("Expected either request or nodes")
        if self.nodes is not None and given & {"place", "allocation"}:
            raise refusal("Expected place and allocation only together with request")
        if self.nodes is not None and self.kind == "downtime" and self.licenses is not None:
            raise refusal("Expected no licenses in a downtime of nodes")
        return self


class UsageModel(DocumentModel):
    """The area that a user or group has already used, for area limits."""

    consumer: ConsumerModel
    resource: Name
    area: UnitSeconds = Field(description="Resource x seconds")

    @model_validator(mode="after")
    def _names_somebody(self) -> Self:
        if self.consumer.each is not None:
            raise refusal("Expected a user or a group by name, got each")
        return self


class OutageModel(DocumentModel):
    """Nodes that will fail, and return."""

    nodes: Text = Field(description="A host list", examples=["cn[1-4]"])
    start: Time = Field(description="What runs on one of them then is cut short")
    end: Time = Field(description="When they are up again")

    @model_validator(mode="after")
    def _has_duration(self) -> Self:
        if self.start >= self.end:
            raise refusal(f"Expected start < end, got {self.start} and {self.end}")
        return self


TermName = Literal["weighted_wait", "wait", "slowdown", "completion", "makespan", "tardiness", "waste"]
ObjectiveField = Annotated[
    Annotated[TermName, Tag("<name>")] | Annotated[dict[TermName, Weight], Field(min_length=1), Tag("<weights>")],
    _text_or("<weights>", "<name>"),
]


class InstanceModel(DocumentModel):
    """One scheduling window: the machine, what runs, what waits, and the rules."""

    format: Literal["cpsched-instance/1"]
    name: Name
    epoch: Omittable[Text] = Field(
        None, description="Second 0: ISO-8601 with offset", examples=["2014-03-31T18:00:00+02:00"]
    )
    time_zone: Omittable[Text] = Field(
        None, description="IANA name of the zone in which calendars are read", examples=["Europe/Berlin"]
    )
    now: Time = Field(0, description="The current time, in seconds since the epoch")
    cluster: ClusterModel
    queues: dict[Name, QueueModel] = Field({}, description="By name")
    jobs: ListOf[JobModel] = Field([], description="Running and waiting")
    limits: ListOf[LimitModel] = Field(
        [], description="What consumers may use at a time, for how long, how much in all"
    )
    free_pools: ListOf[FreePoolModel] = Field([], description="What is left free for some")
    reservations: ListOf[ReservationModel] = Field([], description="Slices of the cluster that are set aside")
    usage: ListOf[UsageModel] = Field([], description="What consumers have used up, for area limits")
    objective: ObjectiveField = Field("weighted_wait", description="What is to be small: a term, or weights of terms")
    priorities: Omittable[Literal["strict"]] = Field(
        None, description="strict: no job is later because of one of a lower priority; default: the objective alone"
    )
    outages: ListOf[OutageModel] = Field([], description="What will happen to nodes: for simulators only")
