"""The page that describes the two documents: its examples are an instance and a plan that keeps every rule."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cpsched.formats import parse_instance, parse_plan
from cpsched.verify import verify


def test_the_plan_of_the_page_keeps_every_rule(repository: Path) -> None:
    """The page's instance is accepted without a warning, and its plan breaks no rule of it."""
    page = (repository / "docs" / "formats.md").read_text()
    instance, plan = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL))
    warnings: list[object] = []
    parse_instance(instance, on_warning=warnings.append)
    parse_plan(plan)
    assert (list(verify(instance, plan)), warnings) == ([], [])
