"""Errors as RFC 9457 has them: ``application/problem+json``, the same for all endpoints."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from cpsched.errors import DocumentError, Fault, SyntaxFault
from cpsched.formats import shown

_MEDIA_TYPE = "application/problem+json"


class FaultModel(BaseModel):
    """One thing that is wrong with what was sent."""

    path: str = Field(description="Where, in the document's own words; empty: in the whole of it")
    message: str = Field(description="What was expected, and what was got")


class ProblemModel(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field("about:blank", description="Always about:blank: the status says what kind it is")
    title: str = Field(description="The name of the status")
    status: int
    detail: str = Field(description="What is wrong, in a sentence")
    faults: list[FaultModel] = Field([], description="All that is wrong with what was sent")


class Problem(Exception):  # noqa: N818  an answer, as HTTPException is
    """An answer that is an error.

    `status`: of HTTP.
    `detail`: what is wrong, in a sentence.
    `faults`: all that is wrong with what was sent.
    `headers`: of the answer.
    """

    def __init__(
        self, status: int, detail: str, *, faults: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.faults, self.headers = status, detail, tuple(faults), dict(headers or {})

    def body(self) -> bytes:
        """Return the body of the answer."""
        document = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "faults": [{"path": fault.path, "message": fault.message} for fault in self.faults],
        }
        return json.dumps(document).encode()


def faults_of(error: DocumentError | SyntaxFault) -> tuple[Fault, ...]:
    """Return everything that is wrong with a text or a document."""
    return error.faults if isinstance(error, DocumentError) else (Fault("", str(error)),)


#: What may be wrong with a body.
BODY = (400, 408, 413, 415, 422)
_WORDS = {
    400: "The request cannot be read",
    401: "A token is needed, and there is none, or it is unknown",
    403: "The holder of the token may not do or see that",
    404: "There is no such thing, or it may not be seen",
    408: "The body did not come in time",
    413: "The request is too large",
    415: "Expected application/json",
    422: "What was sent is not in order; all faults are listed",
    429: "Too many requests, or too much is waiting: try again after some seconds (Retry-After)",
    503: "Nothing is known yet",
}
_RETRY = {"Retry-After": {"description": "Seconds", "schema": {"type": "integer"}}}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of an endpoint as OpenAPI has them, with those that every endpoint has."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({401, 403, 429, *statuses}):
        example = json.loads(Problem(status, _WORDS[status]).body())
        found[status] = {
            "description": _WORDS[status],
            "content": {_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}, "example": example}},
        }
        if status in (429, 503):
            found[status]["headers"] = _RETRY
    return found


def say_problems(app: FastAPI) -> None:
    """Make all errors of an application problems."""

    @app.exception_handler(Problem)
    async def of_ours(request: Request, error: Problem) -> Response:
        return Response(error.body(), error.status, error.headers, _MEDIA_TYPE)

    @app.exception_handler(HTTPException)
    async def of_routing(request: Request, error: HTTPException) -> Response:
        return await of_ours(request, Problem(error.status_code, str(error.detail), headers=error.headers))

    @app.exception_handler(RequestValidationError)
    async def of_validation(request: Request, error: RequestValidationError) -> Response:
        faults = [
            Fault(".".join(map(str, one["loc"][1:])), f"{one['msg']}, got {shown(one.get('input'))}")
            for one in error.errors()
        ]
        return await of_ours(request, Problem(422, _WORDS[422], faults=faults))

    @app.exception_handler(Exception)
    async def of_bugs(request: Request, error: Exception) -> Response:
        return await of_ours(request, Problem(500, "An error of cpsched: its log says more"))
