"""The endpoints that answer questions: why not earlier, and what if."""

import json
from dataclasses import fields, replace
from typing import Any

from fastapi import APIRouter

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
from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import fold_hostlist
from cpsched.site.serve.access import Viewer
from cpsched.site.serve.models import (
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
async def what_if(parts: AllParts, viewer: Reader, question: WhatIfModel) -> SubmissionModel:
    """Return when a job would start that is submitted now, or that asks for something else; no other job moves."""
    try:
        match question:
            case WhatIfModel(submit=SubmitQuery() as job, instead=None):
                return await _submitted(parts, viewer, job)
            case WhatIfModel(submit=None, instead=InsteadQuery() as other):
                return await _changed(parts, viewer, other)
    except (DocumentError, SyntaxFault) as error:
        raise Problem(422, "What was asked is not in order", faults=faults_of(error)) from None
    raise _refused("Expected exactly one of submit and instead")


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
