"""The endpoints of submitted instances: send one, ask what became of it, cancel it."""

import asyncio
import io
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from cpsched.errors import DocumentError, Fault
from cpsched.formats import parse_instance, read_document
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.models import PlanJobModel, PlansQuery
from cpsched.site.serve.parts import Parts, viewer_of
from cpsched.site.serve.problems import BODY, Problem, faults_of, problem_responses
from cpsched.site.serve.reading import AllParts
from cpsched.site.serve.settings import ServeSettings
from cpsched.site.serve.submissions import Submitted

router = APIRouter(prefix="/v1")

#: An instance document.
_EXAMPLE = {
    "format": "cpsched-instance/1",
    "name": "two nodes",
    "now": 0,
    "cluster": {"nodes": [{"names": "n[1-2]", "resources": {"cores": 4}}]},
    "jobs": [{"id": "a", "user": "alice", "submit": 0, "walltime": 600, "request": "2:ncpus=4"}],
}

PlanId = Annotated[str, Path(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


def _holder(request: Request) -> Viewer:
    viewer = viewer_of(request)
    if not viewer.is_known:
        raise Problem(401, "A token is needed", headers={"WWW-Authenticate": "Bearer"})
    return viewer


Holder = Annotated[Viewer, Depends(_holder)]


@router.post(
    "/plans",
    status_code=202,
    summary="Have an instance planned",
    responses={
        **problem_responses(*BODY),
        202: {"description": "It is queued", "headers": {"Location": {"schema": {"type": "string"}}}},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "An instance document (docs/formats.md; cpsched schema instance)",
            "content": {"application/json": {"schema": {"type": "object"}, "example": _EXAMPLE}},
        }
    },
)
async def submit(
    parts: AllParts, viewer: Holder, request: Request, response: Response, query: Annotated[PlansQuery, Query()]
) -> PlanJobModel:
    """Queue an instance to be planned, in the order in which they come, each in a process of its own."""
    settings = parts.settings
    parts.submissions.check_room()
    if query.budget > settings.most_seconds:
        message = f"Expected a budget of at most {settings.most_seconds:g} s, got {query.budget:g}"
        raise Problem(422, message)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "Expected application/json")
    content = await request.body()
    try:
        document = await asyncio.to_thread(_checked, content, settings)
    except DocumentError as error:
        raise Problem(422, "The instance is not in order", faults=faults_of(error)) from None
    task = {
        "instance": document,
        "engine": query.engine,
        "budget": query.budget,
        "seed": query.seed,
        "workers": settings.workers,
    }
    one = parts.submissions.submit(viewer, task)
    parts.log.info("instance submitted", id=one.id, user=viewer.user, bytes=len(content))
    response.headers["Location"] = _location(one)
    return _model(parts, one)


def _checked(content: bytes, settings: ServeSettings) -> object:
    """Return a document that is an instance in order, and not too large."""
    document = read_document(io.BytesIO(content), "the instance")
    instance = parse_instance(document, source="the instance")
    jobs, nodes = sum(len(job.element_ids) for job in instance.jobs), len(instance.cluster.node_names)
    faults = [
        Fault(path, f"Expected at most {most:,} {path.rpartition('.')[2]}, got {found:,}")
        for path, found, most in (("jobs", jobs, settings.most_jobs), ("cluster.nodes", nodes, settings.most_nodes))
        if found > most
    ]
    if faults:
        raise DocumentError("the instance", faults)
    return document


def _location(one: Submitted) -> str:
    return f"/v1/plans/{one.id}"


def _model(parts: Parts, one: Submitted) -> PlanJobModel:
    return PlanJobModel(
        id=one.id,
        location=_location(one),
        state=one.state,
        engine=one.engine,
        budget=one.budget,
        submitted=one.submitted,
        position=parts.submissions.position(one),
        error=one.error,
        plan=one.plan,
    )


@router.get("/plans/{plan_id}", summary="What became of an instance", responses=problem_responses(404, 422))
async def look(parts: AllParts, viewer: Holder, plan_id: PlanId) -> PlanJobModel:
    """Return the state of a submitted instance and, when it is done, its plan."""
    return _model(parts, parts.submissions.find(viewer, plan_id))


@router.delete(
    "/plans/{plan_id}", status_code=204, summary="Cancel or forget an instance", responses=problem_responses(404, 422)
)
async def cancel(parts: AllParts, viewer: Holder, plan_id: PlanId) -> Response:
    """End the planning of a submitted instance, if it has not ended, and forget it."""
    await parts.submissions.cancel(parts.submissions.find(viewer, plan_id))
    return Response(status_code=204)
