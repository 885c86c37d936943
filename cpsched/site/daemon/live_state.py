"""What is true now, for whoever reads the store beside the daemon: the window, and the living plan."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from cpsched.domain import Instance, Job, Plan
from cpsched.formats import instance_to_document, plan_to_document
from cpsched.site.bridge import LeftJob
from cpsched.site.daemon.forecasting import Forecaster
from cpsched.site.daemon.json_text import json_text
from cpsched.site.daemon.planning import plan_of_state
from cpsched.site.daemon.state import PlannedStart, State

T = TypeVar("T")


class _Texts(Generic[T]):
    """The entries of a list as JSON; those of objects that are still the same are not written anew. Mutable."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[T, str]] = {}

    def of(self, things: Mapping[str, T], write: Callable[[Sequence[T]], Sequence[Any]]) -> list[str]:
        """Return the entries of some things, by id, in their order."""
        known, nothing = self._known, (None, "")
        new = {name: one for name, one in things.items() if known.get(name, nothing)[0] is not one}
        if new:
            written = map(json_text, write(tuple(new.values())))
            known.update(zip(new, zip(new.values(), written, strict=True), strict=True))
        return [known[name][1] for name in things]

    def all_of(self, things: Mapping[str, T], write: Callable[[Sequence[T]], Sequence[Any]]) -> list[str]:
        """Return the entries of all things that there are: others are forgotten."""
        texts = self.of(things, write)
        if len(self._known) > len(things):
            self._known = {name: self._known[name] for name in things}
        return texts


class Presenter:
    """Writes the present as JSON. Mutable."""

    def __init__(self) -> None:
        self._jobs, self._planned = _Texts[Job](), _Texts[PlannedStart]()
        self._last = ""

    def entries(self, instance: Instance, jobs: Collection[str]) -> dict[str, str]:
        """Return the entries of some of an instance's jobs as JSON, by id."""
        some = {job.id: job for job in instance.jobs if job.id in jobs}
        return dict(zip(some, self._jobs.of(some, _writer(instance)), strict=True))

    def document(
        self, state: State, made: Plan | None, *, budget: float, forecaster: Forecaster | None = None
    ) -> bytes | None:
        """Return the present, gzipped; None: but for the time it is as it was last.

        Its keys: ``instance``; ``plan``, a plan document without the running jobs, or null; ``left``, the jobs that are
        not planned; ``budget`` (s) and ``dry_run``; ``forecasts`` of starts, by job, and in ``calibration`` what became
        of those before, or null. Raises `ValueError` if the state has no snapshot. `state`: with a
        snapshot. `made`: the last plan that was made, which gives the figures and the waiting room; None: none has been
        made yet.
        """
        if state.snapshot is None:
            raise ValueError("expected a state with a snapshot")
        instance = state.snapshot.instance
        head = replace(instance, now=0, jobs=())
        jobs = self._jobs.all_of({job.id: job for job in instance.jobs}, _writer(instance))
        parts = [
            f'"instance": {_with(instance_to_document(head), jobs)}',
            f'"plan": {self._plan(state, made or plan_of_state(state, head))}',
            f'"left": {json_text([_left_entry(one) for one in state.snapshot.left])}',
            f'"budget": {json_text(budget)}',
            f'"dry_run": {json_text(state.policy.is_dry_run)}',
            f'"forecasts": {json_text(_forecasts(forecaster))}',
            f'"calibration": {json_text(None if forecaster is None else forecaster.held)}',
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

        return _with(plan_to_document(head), self._planned.all_of(state.plan, write))


def _forecasts(forecaster: Forecaster | None) -> dict[str, dict[str, int | None]]:
    told = {} if forecaster is None else forecaster.told
    return {
        one.job: {"likely": one.likely, "by": one.by, "earliest": one.earliest, "latest": one.latest}
        for one in told.values()
    }


def _writer(instance: Instance) -> Callable[[Sequence[Job]], Sequence[Any]]:
    """Return a writer of the entries of jobs, as the document of their instance has them."""
    head = replace(instance, jobs=())
    return lambda jobs: instance_to_document(replace(head, jobs=tuple(jobs))).get("jobs", ())


def _with(document: dict[str, Any], jobs: Sequence[str]) -> str:
    """Return a document as JSON with entries of jobs that are JSON already."""
    document.pop("jobs", None)
    return f'{json_text(document)[:-1]},"jobs":[{",".join(jobs)}]}}'


def _left_entry(left: LeftJob) -> dict[str, str]:
    return {"id": left.id, "reason": left.reason}
