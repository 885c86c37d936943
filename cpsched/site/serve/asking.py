"""The endpoints that answer questions: why not earlier, and what if."""

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import fields, replace
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from cpsched.answers import (
    Answers,
    Explanation,
    JobState,
    Submission,
    explanation_lines,
    first_line,
    parse_submission,
    parse_walltime,
    submission_lines,
    under_free_id,
)
from cpsched.errors import DocumentError, EngineError, Fault, SyntaxFault
from cpsched.formats import fold_hostlist, instance_to_document, plan_to_document
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.models import (
    ChangesQuery,
    ComparisonModel,
    ExplanationModel,
    InsteadQuery,
    SubmissionModel,
    SubmitQuery,
    WhatIfModel,
)
from cpsched.site.serve.parts import Parts
from cpsched.site.serve.problems import BODY, Problem, faults_of, problem_responses
from cpsched.site.serve.reading import AllParts, JobId, Reader
from cpsched.site.serve.view import View

router = APIRouter(prefix="/v1")
T = TypeVar("T")

_NO_JOB = "There is no job of this id, or it may not be asked about"


@router.get("/jobs/{job_id}/explanation", summary="Why not earlier?", responses=problem_responses(404, 422, 503))
async def explanation(parts: AllParts, viewer: Reader, job_id: JobId, at: int | None = None) -> ExplanationModel:
    """Return why a job does not start earlier; with `at`, why not at that second of the instance's clock."""
    view, sight = parts.view, parts.sight(viewer)
    if not sight.may_ask(job_id):
        raise Problem(404, _NO_JOB)

    def ask(asked: View, answers: Answers) -> ExplanationModel:
        return _explanation_model(asked, sight.explanation(answers.explain(job_id, at)))

    return await parts.answering.ask(view, job_id, ask)


def _explanation_model(view: View, told: Explanation) -> ExplanationModel:
    row = view.row_of[told.job]
    known = {field.name: getattr(told, field.name) for field in fields(told)}
    if told.reason is None:
        known |= {"reason": row.reason, "detail": row.detail}
    return ExplanationModel(
        version=view.version,
        now=view.instance.now,
        summary=first_line(view.instance, told),
        words=list(explanation_lines(view.instance, told)),
        **known,
    )


@router.post("/what-if", summary="What if?", responses=problem_responses(404, *BODY, 503))
async def what_if(
    parts: AllParts, viewer: Reader, request: Request, question: WhatIfModel
) -> SubmissionModel | ComparisonModel:
    """Return when a job would start that is submitted now, or that asks for something else; or what a change would do.

    The first two move no other job. A change is planned again: each job keeps its place where it still can; only
    readers that see everything ask for it.
    """
    if sum(part is not None for part in (question.submit, question.instead, question.changes)) != 1:
        raise _refused("Expected exactly one of submit, instead and changes")
    try:
        if question.submit is not None:
            return await _submitted(parts, viewer, question.submit)
        if question.instead is not None:
            return await _changed(parts, viewer, question.instead)
        if question.changes is not None:
            return await _while_present(request, _compared(parts, viewer, question.changes))
    except (DocumentError, SyntaxFault) as error:
        raise Problem(422, "What was asked is not in order", faults=faults_of(error)) from None
    raise ValueError("expected a question")


def _refused(message: str, path: str = "") -> Problem:
    return Problem(422, message, faults=[Fault(path, message)])


async def _submitted(parts: Parts, viewer: Viewer, asked: SubmitQuery) -> SubmissionModel:
    """Return when a new job would start."""
    entry = asked.model_dump(exclude_none=True)
    if asked.user is None:
        entry |= {} if viewer.user is None else {"user": viewer.user}
    elif not (
        viewer.is_operator or asked.user == viewer.user or (viewer.user is None and parts.sight(viewer).sees_all)
    ):
        # what a user's limits leave is that user's business
        raise Problem(403, "Expected the holder of the token as the user of the job, got another one")
    entry["walltime"] = _seconds(asked.walltime)

    def ask(view: View, answers: Answers) -> SubmissionModel:
        job = parse_submission(json.dumps(entry), view.instance, source="submit")
        return _submission_model(view, answers.submit(under_free_id(job, view.instance.members())), "submit", None)

    return await parts.answering.ask(parts.view, None, ask)


async def _changed(parts: Parts, viewer: Viewer, asked: InsteadQuery) -> SubmissionModel:
    """Return when a waiting job would start if it asked for something else."""
    view, sight = parts.view, parts.sight(viewer)
    if not sight.may_ask(asked.job):
        raise Problem(404, _NO_JOB)
    row, job = view.row_of[asked.job], view.entries[asked.job]
    if row.status is JobState.RUNNING:
        raise _refused("Expected a job that waits, got one that runs", "instead.job")
    if job.changes:
        raise _refused(
            "Expected a job that does not change while it runs, got an evolving or malleable one", "instead.job"
        )
    seconds = job.walltime if asked.walltime is None else _seconds(asked.walltime)

    def ask(view: View, answers: Answers) -> SubmissionModel:
        changed = replace(job, steps=(replace(job.steps[0], walltime=seconds),))
        if asked.request is not None:
            entry = {"request": asked.request, "walltime": seconds}
            read = parse_submission(json.dumps(entry), view.instance, source="instead")
            changed = replace(changed, steps=read.steps, licenses=read.licenses)
        before = view.planned.get(job.id)
        return _submission_model(view, answers.instead(changed), "instead", None if before is None else before.start)

    return await parts.answering.ask(view, job.id, ask)


def _seconds(text: str) -> int:
    seconds = parse_walltime(text)
    if seconds is None or seconds <= 0:
        raise _refused("Expected a walltime such as 7200, 2h, 1d12h or 1:30:00", "walltime")
    return seconds


def _submission_model(view: View, found: Submission, kind: Any, before: int | None) -> SubmissionModel:
    planned = found.planned
    return SubmissionModel(
        kind=kind,
        version=view.version,
        now=view.instance.now,
        job=found.job.id,
        start=None if planned is None else planned.start,
        end=None if planned is None else planned.end,
        wait=None if planned is None else planned.start - view.instance.now,
        nodes="" if planned is None else fold_hostlist(planned.nodes),
        detail=found.detail,
        before=before,
        words=list(submission_lines(view.instance, found)),
    )


async def _compared(parts: Parts, viewer: Viewer, asked: ChangesQuery) -> ComparisonModel:
    """Return which jobs would start earlier or later after a change of the instance."""
    view = parts.whole_sight(viewer)
    if asked.budget > 0 and not viewer.is_known:
        raise Problem(401, "A token is needed for a budget", headers={"WWW-Authenticate": "Bearer"})
    if asked.budget > parts.settings.most_seconds:
        raise _refused(f"Expected a budget of at most {parts.settings.most_seconds:g} s", "changes.budget")
    if parts.children.num_waiting >= parts.settings.most_queued:
        raise Problem(429, "Too many wait for a process that plans", headers={"Retry-After": "10"})
    if any(_is_array(text) for text in asked.add):
        raise _refused("Expected single jobs, got an array", "changes.add")
    task = {
        "kind": "what_if",
        "instance": await parts.made(view, "instance document", lambda one: instance_to_document(one.instance)),
        "plan": await parts.made(view, "plan document", lambda one: plan_to_document(one.plan)),
        "add": asked.add,
        "drop": asked.drop,
        "drain": asked.drain,
        "walltime": {job: _seconds(text) for job, text in asked.walltime.items()},
        "limit": [json.dumps(one) for one in asked.limit],
        "budget": asked.budget,
    }
    try:
        outcome = await parts.children.run(task, budget=asked.budget)
    except EngineError as error:
        parts.log.error("what-if failed", error=str(error))
        raise Problem(503, "The change could not be planned", headers={"Retry-After": "30"}) from None
    if "error" in outcome:
        raise Problem(422, outcome["error"], faults=[Fault(*fault) for fault in outcome["faults"]])
    return ComparisonModel(kind="changes", version=view.version, now=view.instance.now, **outcome)


async def _while_present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the outcome of some work; it is cancelled when the sender of the request, which was read, has gone."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Problem(408, "The client has gone")
    finally:
        for one in (task, gone):
            one.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    """Return when the sender of a request has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _is_array(text: str) -> bool:
    """Tell whether a job that is to be added is an array: a short text could be a million jobs."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and "array" in entry
