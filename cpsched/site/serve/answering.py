"""Questions about the plan, answered one by one in a thread of their own."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from cpsched.answers import Answers
from cpsched.errors import CpschedError, DocumentError
from cpsched.portfolio import WindowPlanner
from cpsched.site.serve.problems import Problem
from cpsched.site.serve.view import View

T = TypeVar("T")

#: For how many times as long as its booking took an older view is asked.
_AGES = 3.0


@dataclass(frozen=True, slots=True)
class _Booked:
    view: View
    answers: Answers
    #: When it was booked, and how long that took, in seconds.
    at: float
    took: float


class Answering:
    """Keeps the plan booked. Mutable: `Answers` takes jobs away for a question, so that one thread has it alone.

    Booking a plan of 10,000 jobs takes seconds. So an older view is asked as long as it is younger than a few times
    what that took; who asks is told which view it was. `most`: the most questions that wait.
    """

    def __init__(self, most: int) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="answers")
        self._most = most
        self.num_waiting = 0
        self._booked: _Booked | None = None

    async def ask(self, view: View, job: str | None, question: Callable[[View, Answers], T]) -> T:
        """Return the answer to a question about a view, or about a slightly older one.

        Raises `Problem` if too many questions wait, or the view cannot be asked about.

        `view`: the newest one.
        `job`: the job that the question is about, which the view has; None: about none.
        `question`: called with the view that is asked about.
        """
        if self.num_waiting >= self._most:
            raise Problem(429, "Too many questions wait for an answer", headers={"Retry-After": "2"})
        self.num_waiting += 1
        asked = asyncio.get_running_loop().run_in_executor(self._thread, self._answer, view, job, question)
        asked.add_done_callback(lambda _: self._done())
        return await asked

    def _done(self) -> None:
        self.num_waiting -= 1

    def _answer(self, view: View, job: str | None, question: Callable[[View, Answers], T]) -> T:
        """Answer a question; called in the thread."""
        booked = self._booked
        if booked is None or (booked.view is not view and not _is_recent(booked, view, job)):
            began = time.monotonic()
            answers = _answers_of(view)
            at = time.monotonic()
            booked = self._booked = _Booked(view, answers, at, at - began)
        return question(booked.view, booked.answers)

    def close(self) -> None:
        """End the thread after the question that it has; those that wait are not answered."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _is_recent(booked: _Booked, view: View, job: str | None) -> bool:
    """Tell whether an older view may be asked in place of the newest: it was made lately, and has the job as it is."""
    if time.monotonic() - booked.at > _AGES * booked.took:
        return False
    return job is None or (job in booked.view.entries and booked.view.entries[job] == view.entries[job])


def _answers_of(view: View) -> Answers:
    """Return the answers about a view, whose plan is brought up to date where time has overtaken it."""
    try:
        return Answers(view.instance, view.plan)
    except DocumentError:
        followed = WindowPlanner(name="planner", budget=0.0).follow(view.instance, view.plan)
        return Answers(view.instance, followed)
    except CpschedError as error:
        raise Problem(503, f"The plan cannot be asked about: {error}", headers={"Retry-After": "30"}) from error
