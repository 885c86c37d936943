"""The API keeps its contract: schemathesis makes requests of all kinds out of OpenAPI, and holds the answers to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given

from cpsched.site.serve import ServeSettings
from cpsched.site.serve.models import WhatIfModel
from tests.serve.in_thread import served
from tests.serve.serving import OPERATOR, TOKENS, asking, bearer, opened
from tests.sizes import examples

if TYPE_CHECKING:  # it takes a second to import, which each process would do that collects the tests
    from schemathesis import Case
    from schemathesis.specs.openapi.schemas import OpenApiSchema

#: All but the stream, which does not end.
OPERATIONS = [
    ("GET", "/v1/health"),
    ("GET", "/v1/state"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job_id}"),
    ("GET", "/v1/jobs/{job_id}/explanation"),
    ("GET", "/v1/nodes"),
    ("GET", "/v1/plan"),
    ("GET", "/v1/instance"),
    ("GET", "/v1/gantt"),
    ("GET", "/v1/metrics"),
    ("POST", "/v1/what-if"),
    ("POST", "/v1/plans"),
    ("GET", "/v1/plans/{plan_id}"),
    ("DELETE", "/v1/plans/{plan_id}"),
]


@pytest.fixture(scope="module")
def api() -> Iterator[OpenApiSchema]:
    """Load the schema of an application that no limit hinders."""
    import schemathesis
    from schemathesis.checks import load_all_checks

    load_all_checks()
    limits = ServeSettings(
        tokens=TOKENS, rate=1e6, burst=10**6, most_seconds=0.01, most_queued=2, most_question_bytes=2**22
    )
    with served(opened().source, settings=limits) as address:
        yield schemathesis.openapi.from_url(f"{address}v1/openapi.json")


def test_every_operation_is_tested(api: OpenApiSchema) -> None:
    """No operation is left out but the stream."""
    from schemathesis.core.result import Ok

    operations = [one.ok() for one in api.get_all_operations() if isinstance(one, Ok)]
    found = {(one.method.upper(), one.path) for one in operations}
    assert found == {*OPERATIONS, ("GET", "/v1/events")}


#: Operations with something that can be wrong.
ASKED = [one for one in OPERATIONS if one[0] == "POST" or "{" in one[1] or one[1] == "/v1/jobs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        *((method, path, "positive") for method, path in OPERATIONS),
        *((method, path, "negative") for method, path in ASKED),
    ],
)
def test_every_answer_is_as_openapi_says(api: OpenApiSchema, method: str, path: str, mode: str) -> None:
    """Status, type, headers and body are declared; what is wrong is refused; nothing is an error of the server."""
    from schemathesis import GenerationMode
    from schemathesis.checks import CHECKS

    # a request in the chunk syntax, a walltime or a host list is a text that OpenAPI cannot describe: most texts are
    # none of these
    not_asked: Any = [CHECKS.get_one("positive_data_acceptance")]

    @examples(150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=api[path][method].as_strategy(generation_mode=GenerationMode(mode)))
    def ask(case: Case[Any]) -> None:
        # a list of one in a query is written as what is in it, and that may be right
        assume(not any(isinstance(value, list) and len(value) == 1 for value in (case.query or {}).values()))
        case.call_and_validate(headers=bearer(OPERATOR), excluded_checks=not_asked)

    ask()


def test_the_examples_are_in_order() -> None:
    """What OpenAPI shows as an example is what the API takes."""
    from cpsched.formats import parse_instance

    with asking() as client:
        document = client.get("/v1/openapi.json").json()
    schemas = document["components"]["schemas"]
    for example in schemas["WhatIfModel"]["examples"]:
        WhatIfModel.model_validate(example)
    (body,) = document["paths"]["/v1/plans"]["post"]["requestBody"]["content"].values()
    assert parse_instance(body["example"]).jobs[0].user == "alice"
