"""Some dozens of the changed files that ``scripts/fuzz_documents`` tries by the thousand; the judge sees faults."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.judges import documents
from tests.judges.documents import Sources, judge_document, sources_of


@pytest.fixture(scope="module")
def sources(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Return small files of each kind."""
    names = ("instances/tiny-bridi.json", "instances/tiny-order.json", "tests/cases/tab.acct", "campaigns/quick.toml")
    return sources_of([repository / name for name in names], tmp_path_factory.mktemp("sources"))


@pytest.mark.slow
def test_changed_files_are_read_or_refused(sources: Sources, tmp_path: Path) -> None:
    """Each ends with a documented exit code; some are fine and some are refused, of each kind."""
    answers = [judge_document(seed, sources, tmp_path) for seed in range(30)]
    assert [failure for answer in answers for failure in answer.failures] == []
    assert {answer.kind for answer in answers} == {"instance", "plan", "log", "campaign", "checkpoint"}
    assert {code for answer in answers for code in answer.codes} >= {0, 1, 2}


def _raise() -> None:
    raise KeyError("lost")


def _hang() -> None:
    signal.pause()


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(_raise, "KeyError: 'lost'"), (_hang, "ended by more than 1 s"), (_crash, "ended by SIGKILL")],
)
def test_the_judge_sees_faults(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[], None], expected: str
) -> None:
    """A traceback, a hang and a crash of a command are failures."""

    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def faulty(words: tuple[str, ...]) -> None:
        fault()

    monkeypatch.setattr(documents, "SECONDS", 1)
    monkeypatch.setattr(documents, "main", faulty)
    (failure, *_) = judge_document(0, sources, tmp_path).failures
    assert expected in failure
