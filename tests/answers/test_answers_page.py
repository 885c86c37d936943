"""The examples of docs/answers.md, run as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_readme import check_examples, folder

__all__ = ["folder"]


@pytest.mark.slow
def test_the_examples_of_the_page_work(folder: Path, repository: Path) -> None:
    """Run one after the other, the page's commands end well and print what it shows."""
    assert check_examples(repository / "docs" / "answers.md", folder) >= 2
