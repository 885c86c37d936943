"""What is true now, for whoever reads the store beside the daemon: the window, and the living plan."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from cpsched.bridge import LeftJob
from cpsched.daemon.planning import plan_of_state
from cpsched.daemon.state import PlannedStart, State
from cpsched.domain import Job, Plan
from cpsched.formats import instance_to_document, plan_to_document

__all__ = ["Presenter"]

T = TypeVar("T")


class _Texts(Generic[T]):
    """The entries of a list as JSON; those of objects that are still the same are not written anew. Mutable."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[T, str]] = {}

    def joined(self, things: Mapping[str, T], write: Callable[[Sequence[T]], Sequence[Any]]) -> str:
        """Return the entries of some things, by id, with commas between them."""
        new = {name: one for name, one in things.items() if name not in self._known or self._known[name][0] is not one}
        written = dict(zip(new, write(tuple(new.values())), strict=True))
        self._known = {
            name: (one, json.dumps(written[name])) if name in written else self._known[name]
            for name, one in things.items()
        }
        return ", ".join(text for _, text in self._known.values())


class Presenter:
    """Writes the present as JSON. Mutable."""

    def __init__(self) -> None:
        self._jobs, self._planned = _Texts[Job](), _Texts[PlannedStart]()
        self._last = ""

    def document(self, state: State, made: Plan | None, *, budget: float) -> bytes | None:
        """Return the present, gzipped; None: but for the time it is as it was last.

        Its keys: ``instance``; ``plan``, a plan document without the running jobs, or null; ``left``, the jobs that are
        not planned; ``budget`` (s) and ``dry_run``.

        Parameters
        ----------
        state
            With a snapshot.
        made
            The last plan that was made, which gives the figures and the waiting room; None: none has been made yet.

        Raises
        ------
        ValueError
            If the state has no snapshot.
        """
        if state.snapshot is None:
            raise ValueError("expected a state with a snapshot")
        instance = state.snapshot.instance
        head = replace(instance, now=0, jobs=())
        jobs = self._jobs.joined(
            {job.id: job for job in instance.jobs},
            lambda new: instance_to_document(replace(head, jobs=tuple(new))).get("jobs", ()),
        )
        parts = [
            f'"instance": {_with(instance_to_document(head), jobs)}',
            f'"plan": {self._plan(state, made or plan_of_state(state, head))}',
            f'"left": {json.dumps([_left_entry(one) for one in state.snapshot.left])}',
            f'"budget": {json.dumps(budget)}',
            f'"dry_run": {json.dumps(state.policy.is_dry_run)}',
        ]
        text = f"{{{', '.join(parts)}}}"
        if text == self._last:
            return None
        self._last = text
        return gzip.compress(text.encode(), compresslevel=1, mtime=0)

    def _plan(self, state: State, made: Plan | None) -> str:
        """Return the living plan, with the head of a plan document."""
        if made is None:
            return "null"
        head = replace(made, jobs=(), incumbents=(), work=(), events=())
        waiting = {job.id for job in head.waiting_room} - state.plan.keys()
        head = replace(head, waiting_room=tuple(job for job in head.waiting_room if job.id in waiting))

        def write(new: Sequence[PlannedStart]) -> Sequence[Any]:
            document = plan_to_document(replace(head, jobs=tuple(one.planned for one in new)))
            entries: Sequence[Any] = document["jobs"]
            return entries

        return _with(plan_to_document(head), self._planned.joined(state.plan, write))


def _with(document: dict[str, Any], jobs: str) -> str:
    """Return a document as JSON with entries of jobs that are JSON already."""
    document.pop("jobs", None)
    return f'{json.dumps(document)[:-1]}, "jobs": [{jobs}]}}'


def _left_entry(left: LeftJob) -> dict[str, str]:
    return {"id": left.id, "reason": left.reason}
