"""The endpoints that only read: health, state, jobs, the plan, the nodes, events as they happen, and metrics."""

import json
from collections import Counter
from dataclasses import asdict, replace
from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from cpsched.domain import Plan
from cpsched.formats import fold_hostlist, instance_to_document, plan_to_document
from cpsched.metrics import honest_gap
from cpsched.report import gantt_html, groups_of_nodes, utc_offset
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.models import (
    ClusterModel,
    CountsModel,
    HealthModel,
    JobModel,
    JobsModel,
    JobsQuery,
    NodeClassModel,
    NodeModel,
    NodesModel,
    ObjectiveModel,
    SourceModel,
    StateModel,
    ViewerModel,
)
from cpsched.site.serve.parts import Parts, parts_of, viewer_of
from cpsched.site.serve.problems import Problem, problem_responses
from cpsched.site.serve.view import JobRow, View
from cpsched.site.serve.visibility import Sight

#: Seconds without a word of the daemon, beyond its budget, after which it is stale: two periods and a half.
_SILENCE = 75.0

router = APIRouter(prefix="/v1")

AllParts = Annotated[Parts, Depends(parts_of)]
Reader = Annotated[Viewer, Depends(viewer_of)]
JobId = Annotated[str, Path(min_length=1, max_length=600, description="As in /v1/jobs")]


_UNWELL = {"model": HealthModel, "description": "Nothing is known yet, or the daemon has written nothing for too long"}


@router.get("/health", summary="Whether all is well", responses={**problem_responses(), 503: _UNWELL})
def health(parts: AllParts, viewer: Reader, response: Response) -> HealthModel:
    """Tell whether the server knows something, and whether the daemon works; 503 where it does not."""
    view = parts.newest
    if view is None:
        response.status_code = 503
        return HealthModel(status="starting", source=parts.opened.source.kind, gap=None, cycle=None)
    cycle = parts.sight(viewer).cycle
    is_stale = cycle is not None and cycle.lag > cycle.budget + _SILENCE
    if is_stale:
        response.status_code = 503
    return HealthModel(status="stale" if is_stale else "ok", source=view.kind, gap=view.made.objective.gap, cycle=cycle)


@router.get("/state", summary="The state in figures", responses=problem_responses(503))
def state(parts: AllParts, viewer: Reader) -> StateModel:
    """Return the cluster, the counts of jobs, the value of the plan, the last cycle, and what the reader may do."""
    view = parts.view
    instance = view.instance
    return StateModel(
        version=view.version,
        name=instance.name,
        now=instance.now,
        epoch=None if instance.epoch is None else instance.epoch.isoformat(),
        time_zone=instance.time_zone,
        utc_offset=utc_offset(instance),
        source=SourceModel(kind=view.kind, name=parts.opened.name),
        cluster=_cluster(view),
        counts=CountsModel(**view.counts),
        objective=_objective(view.made),
        cycle=parts.sight(viewer).cycle,
        viewer=ViewerModel(
            user=viewer.user,
            operator=viewer.is_operator,
            visibility="all" if viewer.is_operator else parts.opened.visibility.value,
            may_submit=viewer.is_known,
            sees_all=viewer.sees_all(parts.opened.visibility),
        ),
    )


def _cluster(view: View) -> ClusterModel:
    cluster = view.instance.cluster
    states = dict.fromkeys(("up", "drain", "down"), 0)
    used = Counter(dict.fromkeys(cluster.totals, 0))
    for one in cluster.classes:
        states[str(one.state)] += len(one.names)
    for amounts in view.used.values():
        used.update(amounts)
    return ClusterModel(
        nodes=len(cluster.node_names),
        states=states,
        resources=dict(cluster.totals),
        used=used,
        licenses=dict(cluster.licenses),
    )


def _objective(plan: Plan) -> ObjectiveModel:
    score, engine = plan.objective, plan.engine
    figures = asdict(engine) | asdict(score) | {"engine": engine.name, "gap": score.gap}
    return ObjectiveModel(honest_gap=honest_gap(score), **figures)


@router.get("/jobs", summary="The jobs, page by page", responses=problem_responses(422, 503))
def jobs(parts: AllParts, viewer: Reader, query: Annotated[JobsQuery, Query()]) -> JobsModel:
    """Return a page of the jobs that the reader may see."""
    view = parts.view
    found = _found(parts.sight(viewer), query)
    page = found[query.offset : query.offset + query.limit]
    return JobsModel(
        version=view.version,
        now=view.instance.now,
        total=len(found),
        offset=query.offset,
        jobs=[JobModel.model_validate(row) for row in page],
    )


def _found(sight: Sight, query: JobsQuery) -> list[JobRow]:
    """Return the rows that are asked for, in the order that is asked for; ties in the order of the instance."""
    word, node = query.search.casefold(), query.node
    rows = [
        row
        for row, text in zip(sight.rows, sight.folded, strict=True)
        if (query.status is None or row.status == query.status) and word in text and (not node or row.has(node))
    ]
    value = attrgetter("num_moves" if query.sort == "moves" else query.sort)
    known = sorted((row for row in rows if value(row) is not None), key=value, reverse=query.descending)
    return [*known, *(row for row in rows if value(row) is None)]


@router.get("/jobs/{job_id}", summary="One job", responses=problem_responses(404, 422, 503))
def job(parts: AllParts, viewer: Reader, job_id: JobId) -> JobModel:
    """Return a job with all moves of its planned start."""
    sight = parts.sight(viewer)
    row = sight.row_of.get(job_id)
    if row is None:
        raise Problem(404, "There is no job of this id, or it may not be seen")
    if sight.may_ask(job_id) and (moves := parts.opened.source.history(job_id)):
        row = replace(row, moved=sight.moves(moves), num_moves=len(moves) - 1)
    return JobModel.model_validate(row)


@router.get("/nodes", summary="The map of the cluster", responses=problem_responses(503))
async def nodes(parts: AllParts) -> Response:
    """Return the classes of nodes, and each node with its state and what is used of it now."""
    view = parts.view
    return Response(await parts.made(view, "nodes", _nodes), media_type="application/json")


def _nodes(view: View) -> bytes:
    cluster = view.instance.cluster
    levels = groups_of_nodes(cluster)
    classes = [
        NodeClassModel(names=fold_hostlist(one.names), resources=dict(one.resources), properties=dict(one.properties))
        for one in cluster.classes
    ]
    listed = [
        NodeModel(
            name=name,
            node_class=index,
            groups=[group_of.get(name) for group_of in levels.values()],
            state=one.state.value,
            used=(used := dict(view.used.get(name, ()))),
            shares={
                resource: round(used.get(resource, 0) / amount, 4)
                for resource, amount in one.resources.items()
                if amount
            },
            jobs=view.num_running.get(name, 0),
        )
        for index, one in enumerate(cluster.classes)
        for name in one.names
    ]
    model = NodesModel(version=view.version, now=view.instance.now, classes=classes, levels=list(levels), nodes=listed)
    return model.model_dump_json().encode()


def _no_model(media: str, description: str, *statuses: int) -> dict[str, Any]:
    """Return OpenAPI's description of an endpoint whose answer is a document, a page or a text."""
    schema = {"schema": {"type": "object"}} if media == "application/json" else {}
    found = {200: {"content": {media: schema}, "description": description}}
    return {"response_class": Response, "responses": {**problem_responses(*statuses), **found}}


_DOCUMENT = _no_model("application/json", "As docs/formats.md has it", 503)


@router.get("/plan", summary="The plan document", **_DOCUMENT)
async def plan(parts: AllParts, viewer: Reader) -> Response:
    """Return the plan, for readers that see everything."""
    view = parts.whole_sight(viewer)
    document = await parts.made(view, "plan", lambda one: json.dumps(plan_to_document(one.plan)))
    return Response(document, media_type="application/json")


@router.get("/instance", summary="The instance document", **_DOCUMENT)
async def instance(parts: AllParts, viewer: Reader) -> Response:
    """Return the instance, for readers that see everything."""
    view = parts.whole_sight(viewer)
    document = await parts.made(view, "instance", lambda one: json.dumps(instance_to_document(one.instance)))
    return Response(document, media_type="application/json")


@router.get("/gantt", summary="The plan as a page", **_no_model("text/html", "An interactive page", 503))
async def gantt(parts: AllParts, viewer: Reader) -> Response:
    """Return the plan as one interactive page, for readers that see everything."""
    view = parts.whole_sight(viewer)
    page = await parts.made(view, "gantt", lambda one: gantt_html(one.instance, one.plan))
    # the page has a policy of its own, which admits its one script and its one style by their hashes
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": "frame-ancestors 'none'"})


@router.get("/events", summary="What changes, as it changes", **_no_model("text/event-stream", "Does not end"))
async def events(parts: AllParts, viewer: Reader) -> StreamingResponse:
    """Stream server-sent events: `state`, first as it is and then when it is another one; `heartbeat` when nothing
    happens.
    """
    stream = parts.streams.open(viewer.key)
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get("/metrics", summary="Figures for Prometheus", **_no_model("text/plain", "Prometheus's format"))
async def metrics(parts: AllParts) -> Response:
    """Return figures of the server, and of what it serves."""
    return Response(_metrics_text(parts), media_type="text/plain; version=0.0.4; charset=utf-8")


def _metrics_text(parts: Parts) -> bytes:
    registry = CollectorRegistry()

    def gauge(name: str, words: str, value: float) -> None:
        Gauge(f"cpsched_serve_{name}", words, registry=registry).set(value)

    view = parts.newest
    gauge("ready", "1 if something is known", float(view is not None))
    gauge("event_streams", "Open event streams", parts.streams.num_open)
    gauge("questions_waiting", "Questions that wait for an answer", parts.answering.num_waiting)
    gauge("plans_queued", "Submitted instances that wait", parts.submissions.num_queued)
    if view is not None:
        jobs = Gauge("cpsched_serve_jobs", "Jobs, by state", ["state"], registry=registry)
        for state, count in view.counts.items():
            jobs.labels(state).set(count)
        gauge("plan_value", "The objective of the last plan", view.made.objective.value)
        if view.made.objective.gap is not None:
            gauge("plan_gap", "The gap of the last plan", view.made.objective.gap)
        if view.cycle is not None:
            gauge("cycle_seconds", "Seconds of the last cycle", view.cycle.seconds)
            gauge("cycle_lag_seconds", "Seconds since the last cycle", view.lag)
            gauge("cycle_fallbacks", "Fallbacks in the last 100 cycles", view.cycle.fallbacks)
    return generate_latest(registry)
