"""The plan document as pydantic models: its keys, their types and bounds, key by key as in ``docs/formats.md``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from cpsched.formats.fields import (
    AmountsField,
    Count,
    DocumentModel,
    ListOf,
    Name,
    Number,
    Omittable,
    PlanTime,
    Text,
    Time,
    refusal,
)

__all__ = ["PlacementModel", "PlanModel", "PlannedJobModel", "SegmentModel"]

Words = Annotated[Text, StringConstraints(min_length=1)]


class PlacementModel(DocumentModel):
    """The amounts that a job holds on one node."""

    node: Name
    chunk: Omittable[Annotated[int, Field(ge=0, lt=10**6)]] = Field(None, description="Kind: index in the request")
    count: Omittable[Count] = Field(None, description="The number of chunks of that kind on the node")
    resources: AmountsField = Field(description="What they take together")

    @model_validator(mode="after")
    def _counts_a_chunk(self) -> Self:
        if (self.chunk is None) != (self.count is None):
            raise refusal("Expected chunk and count together, or neither (running jobs)")
        return self


class SegmentModel(DocumentModel):
    """A time during which the allocation does not change."""

    start: PlanTime
    end: PlanTime
    allocation: ListOf[PlacementModel] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_duration(self) -> Self:
        if self.start >= self.end:
            raise refusal(f"Expected start < end, got {self.start} and {self.end}")
        return self


class PlannedJobModel(DocumentModel):
    """A job with its time and its nodes."""

    id: Name
    start: PlanTime
    end: PlanTime
    segments: ListOf[SegmentModel] = Field(min_length=1, description="In time order, without holes")

    @model_validator(mode="after")
    def _has_no_holes(self) -> Self:
        ends = [self.start, *(segment.end for segment in self.segments)]
        starts = [*(segment.start for segment in self.segments), self.end]
        if starts != ends:
            raise refusal("Expected segments from start to end of the job, each beginning where the one before ends")
        return self


class WaitingJobModel(DocumentModel):
    """A job without a start, and why."""

    id: Name
    reason: Literal[
        "unsatisfiable",
        "unavailable",
        "walltime",
        "too_late",
        "not_mapped",
        "dependency",
        "limit",
        "free_pool",
        "reservation",
        "not_started",
    ]
    detail: Words = Field(description="The reason in words")


class ReservedModel(DocumentModel):
    """The nodes of a reservation at a time, or the reason for which it has none."""

    id: Name
    start: PlanTime
    end: PlanTime
    allocation: Omittable[Annotated[ListOf[PlacementModel], Field(min_length=1)]] = None
    reason: Omittable[Words] = Field(None, description="In place of allocation: why it could not be had, in words")

    @model_validator(mode="after")
    def _is_had_or_not(self) -> Self:
        if self.start >= self.end:
            raise refusal(f"Expected start < end, got {self.start} and {self.end}")
        if (self.allocation is None) == (self.reason is None):
            raise refusal("Expected either allocation or reason")
        return self


class ScoreModel(DocumentModel):
    """The plan's value and how far from the optimum it can be."""

    name: Name
    value: Number
    bound: Number | None = Field(description="A proven lower bound on the value, or null")
    gap: Number | None = Field(description="(value - bound) / abs(value), or null")
    proof: Omittable[Words] = Field(None, description="How the bound was proven, in words")
    planner: Number = Field(description="The value of the fallback's plan")
    suffered: Number = Field(description="The part of the value that no plan can change")


class EngineModel(DocumentModel):
    """The engine that made the plan, and the seconds that it took of its budget."""

    name: Name
    version: Name
    budget: Annotated[Number, Field(ge=0)]
    elapsed: Annotated[Number, Field(ge=0)]
    stopped: Name = Field(description="Why it stopped: done, optimal, budget, interrupted or fallback")


class IncumbentModel(DocumentModel):
    """A plan that was the best so far."""

    at: Annotated[Number, Field(ge=0)] = Field(description="Seconds since the engine began")
    value: Number
    by: Name
    planned: Omittable[Annotated[int, Field(ge=0, lt=2**31)]] = Field(
        None, description="How many jobs it has, with running ones"
    )


class EventModel(DocumentModel):
    """Something else that happened while the plan was made."""

    at: Annotated[Number, Field(ge=0)] = Field(description="Seconds since the engine began")
    by: Name = Field(description="The engine or solver that it is about")
    what: Words


class WorkModel(DocumentModel):
    """The work of one solver."""

    by: Name
    seconds: Annotated[Number, Field(ge=0)] = Field(description="Seconds for which it worked")
    what: Omittable[Words] = Field(None, description="What it did")


class PlanModel(DocumentModel):
    """When and where each job runs, which cannot, and how good that is."""

    format: Literal["cpsched-plan/1"]
    instance: Name = Field(description="Name of the instance")
    now: Time
    objective: ScoreModel
    engine: EngineModel
    jobs: ListOf[PlannedJobModel] = Field(description="Running and planned jobs")
    waiting_room: ListOf[WaitingJobModel] = Field([], description="Jobs without a start")
    reservations: ListOf[ReservedModel] = Field([], description="What each reservation got")
    incumbents: ListOf[IncumbentModel] = Field([], description="How the plan was found")
    events: ListOf[EventModel] = Field([], description="What else happened meanwhile")
    work: ListOf[WorkModel] = Field([], description="What each solver did, better plans or not")
    record: bool = Field(False, description="Whether this is a record of what happened: jobs took their real run times")
    attempts: ListOf[PlannedJobModel] = Field([], description="Of a record: runs that an outage cut short")

    @model_validator(mode="after")
    def _is_one_kind(self) -> Self:
        if self.attempts and not self.record:
            raise refusal("Expected attempts only in a record")
        if not self.record and any(job.reason == "not_started" for job in self.waiting_room):
            raise refusal("Expected a job that is not_started only in a record")
        return self
