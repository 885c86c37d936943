"""The thread that answers: for a while an older view is asked, but not about a job that is new; few may wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cpsched.answers import Answers
from cpsched.portfolio import solve
from cpsched.site.serve import answering as module
from cpsched.site.serve.answering import Answering
from cpsched.site.serve.problems import Problem
from cpsched.site.serve.view import View
from tests.bridge.small_world import job, site


def view_of(version: str, *names: str, walltime: int = 100) -> View:
    """Make a view of a site with these jobs."""
    window = site(*(job(name, walltime=walltime) for name in names))
    plan = solve(window, engine="planner", budget=0)
    return View(version=version, instance=window, plan=plan, made=plan, kind="store")


def asked(view: View, answers: Answers) -> str:
    """Return the version of the view that is asked about."""
    return view.version


@contextmanager
def answering(most: int = 8) -> Iterator[Answering]:
    """Give a thread that answers."""
    thread = Answering(most)
    try:
        yield thread
    finally:
        thread.close()


@pytest.mark.parametrize(("ages", "expected"), [(0.0, "2"), (1e9, "1")])
def test_an_older_view_is_asked_for_a_while(monkeypatch: pytest.MonkeyPatch, ages: float, expected: str) -> None:
    """Some multiple of the time that booking took an older view answers, after that the newest one."""
    monkeypatch.setattr(module, "_AGES", ages)

    async def ask() -> str:
        with answering() as thread:
            assert await thread.ask(view_of("1", "a", "b"), "a", asked) == "1"
            return await thread.ask(view_of("2", "a", "b"), "a", asked)

    assert asyncio.run(ask()) == expected


def test_a_job_that_is_new_or_another_is_asked_of_the_newest_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older view that does not have the job as it is now is not asked about it."""
    monkeypatch.setattr(module, "_AGES", 1e9)

    async def ask() -> list[str]:
        with answering() as thread:
            first = view_of("1", "a")
            return [
                await thread.ask(first, "a", asked),
                await thread.ask(view_of("2", "a", "b"), "a", asked),
                await thread.ask(view_of("3", "a", "b"), "b", asked),
                await thread.ask(view_of("4", "a", "b", walltime=7), "b", asked),
            ]

    assert asyncio.run(ask()) == ["1", "1", "3", "4"]


def test_questions_that_wait_are_bounded() -> None:
    """One too many is refused; one that is given up makes room."""
    may_end = threading.Event()

    def slow(view: View, answers: Answers) -> str:
        may_end.wait(20)
        return view.version

    async def ask() -> None:
        view = view_of("1", "a")
        with answering(most=2) as thread:
            first, second = (asyncio.create_task(thread.ask(view, "a", slow)) for _ in range(2))
            await asyncio.sleep(0.05)
            with pytest.raises(Problem, match="Too many questions") as refused:
                await thread.ask(view, "a", asked)
            assert refused.value.status == 429
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            third = asyncio.create_task(thread.ask(view, "a", asked))
            await asyncio.sleep(0)
            may_end.set()
            assert [await first, await third] == ["1", "1"]
            assert thread.num_waiting == 0

    asyncio.run(ask())


def test_a_plan_that_is_none_any_more_is_brought_up_to_date() -> None:
    """Where the plan's jobs do not fit beside each other, each keeps its place as far as it can."""
    view = view_of("1", "a", "b", "c")
    starts = {one.id: one.start for one in view.plan.jobs}
    assert sorted(starts.values()) == [0, 0, 100]
    broken = tuple(replace(one, segments=view.plan.jobs[0].segments, start=0, end=100) for one in view.plan.jobs)
    told = replace(view, plan=replace(view.plan, jobs=broken))

    def explained(view: View, answers: Answers) -> list[int | None]:
        return [answers.explain(name).start for name in "abc"]

    async def ask() -> list[int | None]:
        with answering() as thread:
            return await thread.ask(told, None, explained)

    assert {*asyncio.run(ask())} == {0, 100}
