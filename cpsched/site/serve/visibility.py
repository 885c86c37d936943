"""A view as one reader sees it: all of it, or with the jobs of others under other names, or without them."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from cpsched.answers import Explanation, JobState
from cpsched.site.serve.access import Viewer, Visibility
from cpsched.site.serve.models import CycleModel, MoveModel
from cpsched.site.serve.view import JobRow, View

#: Of this process: another name of a job tells nothing about it, and is the same as long as the server runs.
_SALT = secrets.token_bytes(32)
_NAME_DIGITS = 12


def _other_name(job: str) -> str:
    """Return the name under which others see a job."""
    return f"other-{hmac.new(_SALT, job.encode(), hashlib.sha256).hexdigest()[:_NAME_DIGITS]}"


class Sight:
    """The part of a view that one reader may see.

    `view`: all that is known.
    `viewer`: the reader.
    `visibility`: what the site lets users see of the jobs of others.
    """

    def __init__(self, view: View, viewer: Viewer, visibility: Visibility) -> None:
        self.view = view
        self.sees_all = viewer.sees_all(visibility)
        self._user, self._visibility = viewer.user, visibility

    def _is_own(self, row: JobRow) -> bool:
        return self._user is not None and row.user == self._user

    @cached_property
    def rows(self) -> tuple[JobRow, ...]:
        """The jobs that it may see, as it may see them."""
        if self.sees_all:
            return self.view.rows
        rows = self.view.rows
        if self._visibility is Visibility.OWN:
            rows = tuple(row for row in rows if self._is_own(row))
        return tuple(
            replace(row, moved=self.moves(row.moved), detail=None if row.status is JobState.RUNNING else row.detail)
            if self._is_own(row)
            else replace(
                row, id=_other_name(row.id), user=None, group=None, project=None, moved=(), num_moves=0, detail=None
            )
            for row in rows
        )

    def moves(self, moves: Sequence[MoveModel]) -> tuple[MoveModel, ...]:
        """Return how a job's planned start moved, without the reasons where these may name the jobs of others."""
        return tuple(moves) if self.sees_all else tuple(move.model_copy(update={"reason": ""}) for move in moves)

    @property
    def cycle(self) -> CycleModel | None:
        """The last cycle, without the reason for which it planned where that may name the jobs of others."""
        cycle = self.view.cycle
        hidden = {} if self.sees_all else {"why": ""}
        return cycle and cycle.model_copy(update={"lag": round(self.view.lag, 3), **hidden})

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The texts in which each of the rows is searched."""
        return tuple(
            "\n".join(part for part in (row.id, row.user, row.group, row.project, row.queue) if part).casefold()
            for row in self.rows
        )

    @cached_property
    def row_of(self) -> dict[str, JobRow]:
        """The rows by the names under which it sees them."""
        return self.view.row_of if self.sees_all else {row.id: row for row in self.rows}

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset(row.id for row in self.view.rows if self._is_own(row))

    def may_ask(self, job: str) -> bool:
        """Tell whether it may ask why a job starts when it does."""
        return job in self.view.entries if self.sees_all else job in self._own

    def explanation(self, told: Explanation) -> Explanation:
        """Return an explanation without what it may not see of the jobs that are named."""
        if self.sees_all:
            return told
        blocked = []
        for one in told.blocked:
            holders = tuple(
                holder if holder.job in self._own else replace(holder, job=_other_name(holder.job), user=None)
                for holder in one.cause.holders
            )
            blocked.append(replace(one, cause=replace(one.cause, holders=holders)))
        if self.view.plan.attempts:  # their words may name jobs that are stopped, and for which
            told = replace(told, form=None, detail=None)
        return replace(told, blocked=tuple(blocked))
