"""The answers of the API as pydantic models: what OpenAPI says of them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from cpsched.arguments import SEED
from cpsched.formats import fold_hostlist

JobStatus = Literal["running", "planned", "waiting_room"]
SortKey = Literal["id", "user", "queue", "status", "submitted", "start", "end", "walltime", "moves"]
#: Characters of a request, which is answered while others wait, and of a host list.
_REQUEST = 1024


class _Strict(BaseModel):
    """A document that a client sends: no unknown keys, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Noun(BaseModel):
    """A noun of the program, taken field by field."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


def _folded(nodes: object) -> object:
    return fold_hostlist(nodes) if isinstance(nodes, tuple) else nodes


HostList = Annotated[str, BeforeValidator(_folded)]


class HeldModel(_Noun):
    """What became of the last forecasts of starts."""

    starts: int = Field(description="How many of their jobs started, at most 1,000")
    within: int = Field(description="How many of these started within the interval of 80 %")
    ends: int = Field(0, description="How many jobs ended for which less than the walltime was enough, at most 1,000")
    in_time: int = Field(0, description="How many of these ended within what was enough")


class TrialModel(_Noun):
    """An engine on the site's past, relative to the usual one."""

    wins: bool = Field(description="Whether it is better in each replica, and nowhere much worse")
    ratio: float = Field(description="Its weighted queue time; the geometric mean of the replicas that it played")


class ChoiceModel(_Noun):
    """The engine that was chosen by the site's past."""

    engine: str
    usual: str = Field(description="That of the site's file, which stays where no other one wins")
    since: int = Field(description="Since when it is in use")
    jobs: int = Field(description="How many jobs of the past were planned again, at the most")
    trials: dict[str, TrialModel] = Field(description="By engine")


class CycleModel(_Noun):
    """The last cycle of the daemon."""

    at: int = Field(description="The second on the instance's clock")
    seconds: float = Field(description="What it took")
    budget: float = Field(description="What it might take, in seconds")
    lag: float = Field(0.0, description="Seconds since it was written")
    orders: int = Field(description="How many orders it gave")
    why: str = Field(description="Why it planned; empty: it did not, or the reader may not see it")
    dry_run: bool = Field(description="Whether the daemon gives no orders")
    cycles: int = Field(description="How many of the last cycles are counted below, at most 100")
    fallbacks: int = Field(description="Of how many of them the engine failed, so that a fallback planned")
    forecasts: HeldModel | None = Field(description="null: the daemon forecasts no starts")
    choice: ChoiceModel | None = Field(None, description="null: the engine is that of the site's file")


class ObjectiveModel(BaseModel):
    """The value of the last plan that was made."""

    name: str
    value: float
    bound: float | None = Field(description="A proven bound below the value of every plan; null: none is known")
    gap: float | None = Field(description="The distance of value and bound as a share of the value")
    honest_gap: float | None = Field(description="The same as a share of what a plan can change")
    suffered: float = Field(description="The part of the value that no plan can change")
    planner: float = Field(description="The value of the planner's plan, the fallback")
    engine: str
    stopped: str
    elapsed: float
    budget: float


class HealthModel(BaseModel):
    """Whether all is well."""

    status: Literal["ok", "starting", "stale"] = Field(
        description="starting: nothing is known yet; stale: the daemon has written nothing for too long"
    )
    source: Literal["store", "instance"]
    gap: float | None
    cycle: CycleModel | None = Field(description="null: the source has no daemon")


class CountsModel(BaseModel):
    """How many jobs there are."""

    running: int
    waiting: int = Field(description="planned and not_planned together")
    planned: int
    not_planned: int


class ClusterModel(BaseModel):
    """The machine in figures."""

    nodes: int
    states: dict[str, int] = Field(description="How many nodes are up, drain, down")
    resources: dict[str, int] = Field(description="What all nodes have together")
    used: dict[str, int] = Field(description="What running jobs have of it now")
    licenses: dict[str, int]


class SourceModel(BaseModel):
    """Where the state comes from."""

    kind: Literal["store", "instance"]
    name: str


class ViewerModel(BaseModel):
    """Who asks, and what it may do."""

    user: str | None
    operator: bool
    visibility: Literal["all", "anonymous", "own"] = Field(description="What it sees of the jobs of others")
    may_submit: bool = Field(description="Whether it may have instances planned (POST /v1/plans)")
    sees_all: bool = Field(description="Whether it sees everything, the plan and the instance as a whole too")


class StateModel(BaseModel):
    """The state in figures."""

    version: str = Field(description="Another one whenever something has changed")
    name: str = Field(description="Of the instance")
    now: int = Field(description="The second on the instance's clock")
    epoch: str | None = Field(description="Second 0 in ISO 8601; null: times have no date")
    time_zone: str | None = Field(description="An IANA name; null: the offset of epoch")
    utc_offset: int | None = Field(description="Seconds by which the site's clocks are ahead of UTC now")
    source: SourceModel
    cluster: ClusterModel
    counts: CountsModel
    objective: ObjectiveModel
    cycle: CycleModel | None
    viewer: ViewerModel


class MoveModel(_Noun):
    """A planned start as a user was told it, or a stop."""

    at: int = Field(description="Since when")
    start: int | None = Field(description="null: it was taken back, or the running job stopped")
    reason: str = Field(description="Empty where it may name jobs that the reader may not see")


class ForecastModel(_Noun):
    """When a waiting job will start; null: never."""

    likely: int | None = Field(description="As many starts are earlier as later")
    by: int | None = Field(description="It starts by then with a chance of 80 %")
    earliest: int | None = Field(description="It starts between these with a chance of 80 %")
    latest: int | None
    enough: int | None = Field(None, description="Seconds within which 95 % of like jobs end; null: the walltime")

    def as_document(self) -> dict[str, int | None]:
        """Return the figures that users are told."""
        return self.model_dump()


class JobModel(_Noun):
    """A job; times are seconds on the instance's clock."""

    id: str
    user: str | None
    group: str | None
    project: str | None
    queue: str | None
    status: JobStatus
    submitted: int | None
    start: int | None = Field(description="When it started, or is to start; null: it has no start")
    end: int | None = Field(description="When it ends at the latest")
    nodes: str = Field(description="A host list; empty: it has no start")
    request: str = Field(description="In the chunk syntax")
    walltime: int | None
    moved: list[MoveModel] = Field(description="How its planned start was told and moved, the newest last")
    num_moves: int = Field(description="How often it moved; of more than eight moves only the newest are in lists")
    forecast: ForecastModel | None = Field(description="When it will start; null: it runs, or no forecast is made")
    reason: str | None = Field(description="Why it has no start, or is stopped, as in plans; or not_planned, or left")
    detail: str | None = Field(description="The same in words")


class JobsModel(BaseModel):
    """A part of the list of jobs."""

    version: str
    now: int
    total: int = Field(description="Of the jobs that were asked for, on all pages")
    offset: int
    jobs: list[JobModel]


class JobsQuery(_Strict):
    """The part of the list of jobs that is asked for."""

    model_config = ConfigDict(extra="forbid", strict=False)
    status: JobStatus | None = Field(None, description="Only these; left out: all")
    search: str = Field("", max_length=256, description="In id, user, group, project, queue, without regard to case")
    node: str = Field("", max_length=256, description="Only jobs that have this node; empty: all")
    sort: SortKey = Field("start", description="Jobs without the value come last")
    descending: bool = Field(False, description="The other way round")
    offset: int = Field(0, ge=0, le=10**7)
    limit: int = Field(100, ge=1, le=1000)


class NodeClassModel(BaseModel):
    """Nodes that differ in nothing but their names, and their states."""

    names: str = Field(description="A host list")
    resources: dict[str, int] = Field(description="What each of them has")
    properties: dict[str, str]


class NodeModel(BaseModel):
    """A node now."""

    name: str
    node_class: int = Field(description="Its place in classes")
    groups: list[str | None] = Field(description="Its group at each of the levels")
    state: Literal["up", "drain", "down"]
    used: dict[str, int] = Field(description="What running jobs have of it")
    shares: dict[str, float] = Field(description="The same as shares of what it has")
    jobs: int = Field(description="How many run there")


class NodesModel(BaseModel):
    """The map of the cluster."""

    version: str
    now: int
    classes: list[NodeClassModel]
    levels: list[str] = Field(description="Of the topology, the widest groups first")
    nodes: list[NodeModel]


class HolderModel(_Noun):
    """Another job in the way."""

    job: str
    user: str | None
    is_running: bool
    start: int | None
    end: int | None
    nodes: HostList


class CauseModel(_Noun):
    """One cause for which a job cannot start."""

    kind: str = Field(description="As in docs/answers.md")
    detail: str
    resources: list[str]
    nodes: HostList
    rule: str | None
    holders: list[HolderModel]


class BlockedModel(_Noun):
    """An interval at each second of which it cannot start for the same cause."""

    start: int
    end: int
    cause: CauseModel


class ChangeModel(_Noun):
    """A change with which it could start earlier; it was tried."""

    kind: str
    detail: str
    start: int
    amount: int | None


class ExplanationModel(_Noun):
    """Why a job starts when the plan says, and not earlier."""

    version: str
    now: int
    job: str
    state: JobStatus
    start: int | None
    end: int | None
    reason: str | None
    detail: str | None
    form: str | None
    blocked: list[BlockedModel]
    is_whole: bool = Field(description="Whether no second up to the start is left out")
    free_start: int | None = Field(description="The first second at which it could start beside all others")
    changes: list[ChangeModel]
    summary: str = Field(description="In one sentence")
    words: list[str] = Field(description="All of it, line by line")


class SubmitQuery(_Strict):
    """A job that does not exist yet."""

    request: str = Field(max_length=_REQUEST, description="In the chunk syntax: 8:ncpus=2:mem=4g,place=scatter")
    walltime: str = Field(max_length=32, description="7200, 2h, 1d12h, 1:30:00")
    user: str | None = Field(None, max_length=256)
    group: str | None = Field(None, max_length=256)
    queue: str | None = Field(None, max_length=256)
    project: str | None = Field(None, max_length=256)


class InsteadQuery(_Strict):
    """A waiting job that asks for something else."""

    job: str = Field(max_length=600)
    request: str | None = Field(None, max_length=_REQUEST, description="Left out: as it is")
    walltime: str | None = Field(None, max_length=32, description="Left out: as it is")


class WhatIfModel(_Strict):
    """One question: exactly one of the two."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"submit": {"request": "8:ncpus=2:mem=4g,place=scatter", "walltime": "2h"}},
                {"instead": {"job": "214", "walltime": "10m"}},
            ]
        }
    )
    submit: SubmitQuery | None = Field(None, description="When would this job start, beside the plan as it is?")
    instead: InsteadQuery | None = Field(None, description="When would this job start if it asked for something else?")


class SubmissionModel(BaseModel):
    """When and where a job would start."""

    kind: Literal["submit", "instead"]
    version: str
    now: int
    job: str
    start: int | None = Field(description="null: it would have no start")
    end: int | None
    wait: int | None = Field(description="Seconds from now to the start")
    nodes: str
    detail: str = Field(description="Why it would have no start")
    before: int | None = Field(description="Of a waiting job: its start in the plan as it is")
    words: list[str]


class PlanJobModel(BaseModel):
    """A submitted instance and what became of it."""

    id: str
    location: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    engine: str
    budget: float
    submitted: float = Field(description="Seconds of Unix time")
    position: int | None = Field(description="How many wait before it; null: it does not wait")
    error: str | None
    plan: dict[str, Any] | None = Field(description="The plan document")


class PlansQuery(_Strict):
    """How an instance is to be planned."""

    model_config = ConfigDict(extra="forbid", strict=False)
    budget: float = Field(10.0, ge=0, le=3600, allow_inf_nan=False, description="Seconds; the server allows less")
    engine: Literal["portfolio", "planner", "cp", "search"] = Field("portfolio", description="As in cpsched solve")
    seed: int = Field(0, ge=SEED.least, le=SEED.most)
