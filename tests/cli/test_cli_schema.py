"""``cpsched schema``."""

from __future__ import annotations

import json

import pytest

from cpsched.cli.exits import ExitCode
from cpsched.formats import instance_schema, plan_schema
from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "schema"), [((), instance_schema), (("instance",), instance_schema), (("plan",), plan_schema)]
)
def test_the_schema_of_each_document_is_printed(run: Run, arguments: tuple[str, ...], schema: object) -> None:
    """Stdout is the JSON Schema that `cpsched.formats` gives, of the instance where nothing else is asked for."""
    shown = run("schema", *arguments)
    assert shown.exit_code == ExitCode.FINE
    assert callable(schema)
    assert json.loads(shown.stdout) == schema()


def test_an_unknown_document_is_a_fault_of_usage(run: Run) -> None:
    """There is no third document."""
    assert run("schema", "plane").exit_code == ExitCode.BAD_INPUT
