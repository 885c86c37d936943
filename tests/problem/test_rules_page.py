"""The examples of ``docs/rules.md`` are true: each window is planned, and its starts are those of the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cpsched.formats import parse_instance
from cpsched.portfolio import solve

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
EXAMPLES = re.findall(r"```json\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
BASE: dict[str, Any] = json.loads(EXAMPLES[0][0])


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
@pytest.mark.parametrize("engine", ["planner", "conservative"])
def test_an_example_is_true(number: int, engine: str) -> None:
    """The starts, and the reasons of jobs that wait, are those of the page; the verifier has passed the plan."""
    text, expected = EXAMPLES[number]
    document = BASE | json.loads(text)
    plan = solve(parse_instance(document, source="docs/rules.md"), engine=engine, budget=0)
    found = {job.id: str(job.start) for job in plan.jobs} | {job.id: str(job.reason) for job in plan.waiting_room}
    assert ", ".join(f"{entry['id']} {found[entry['id']]}" for entry in document["jobs"]) == expected.strip()


def test_the_page_has_examples() -> None:
    """The pattern finds the examples: no fewer than the page has windows."""
    assert len(EXAMPLES) == PAGE.read_text().count("```json")
