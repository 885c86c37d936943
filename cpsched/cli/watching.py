"""What commands that ask about a plan read: two files, or what a daemon has in its store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from cpsched.domain import Instance, Plan
    from cpsched.site.serve import ForecastModel, MoveModel, Source

NO_PLAN_YET = "The store has no plan yet: the daemon has not ended a cycle."


class _Files:
    """The two documents; mutable."""

    def __init__(self, instance: Path, plan: Path) -> None:
        self.name = str(plan)
        self._paths = instance, plan
        self._seen: list[tuple[int, int, int]] | None = None
        self._found: tuple[Instance, Plan] | None = None

    def read(self) -> tuple[Instance, Plan] | None:
        """Return the instance and the plan if they are new since the last reading, else None.

        Raises `DocumentError`, `OSError`, `StoreError` if they cannot be read.
        """
        from cpsched.formats import check_belongs, read_instance, read_plan

        stats = [path.stat() for path in self._paths]
        marks = [(stat.st_ino, stat.st_mtime_ns, stat.st_size) for stat in stats]
        if marks == self._seen:
            return None
        instance, plan = self._paths
        made_for, found = read_instance(instance), read_plan(plan)
        check_belongs(found, made_for, str(plan))
        self._seen, last = marks, self._found
        self._found = made_for, found
        return None if self._found == last else self._found

    def close(self) -> None:
        """Do nothing: files are open while they are read."""


class _Store:
    """The store of a daemon."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = name
        self._source = source

    def read(self) -> tuple[Instance, Plan] | None:
        """Return the state of the last cycle, if it is new."""
        view = self._source.read()
        return None if view is None else (view.instance, view.plan)

    def close(self) -> None:
        """Give back the connections to the store."""
        self._source.close()


#: A plan that may be made anew while it is looked at.
Watched = _Files | _Store


def open_watched(instance: str | Path, plan: Path | None) -> Watched:
    """Return the two files; without a plan, the store of a daemon.

    Raises `DocumentError` if it is the site's file of a daemon, and not in order; or an instance, which has no plan;
    `StoreError` if it is a store that cannot be opened.
    """
    from cpsched.errors import DocumentError, Fault

    if plan is not None:
        return _Files(instance if isinstance(instance, Path) else Path(instance), plan)
    is_read = isinstance(instance, Path)  # from standard input
    instance = str(instance)
    if is_read or ("://" not in instance and instance.endswith((".json", ".json.gz"))):
        raise DocumentError(instance, [Fault("", "Expected a PLAN beside an instance; solve makes one")])
    from cpsched.site.serve import open_source

    opened = open_source(instance)
    return _Store(opened.name, opened.source)


class Looked(NamedTuple):
    """A window, its plan, and what a daemon has forecast and told of its jobs."""

    instance: Instance
    plan: Plan | None
    #: None: it is none of a daemon.
    forecasts: Mapping[str, ForecastModel] | None = None
    #: How the planned start of the job that is asked about was told and moved, and its stops.
    moves: Sequence[MoveModel] = ()


def look(instance: Path, plan: Path | None = None, *, job: str | None = None) -> Looked:
    """Read a window once, with a plan if there is one: from files, or a daemon's site file or SQLite file.

    `job`: the job that is asked about; None: all are.

    Raises `DocumentError` if a file is not in order; `StoreError` if the store cannot be read.
    """
    from cpsched.formats import read_instance, read_plan

    if plan is not None:
        return Looked(read_instance(instance), read_plan(plan))
    if instance.name.endswith((".json", ".json.gz")):
        return Looked(read_instance(instance), None)
    from cpsched.site.daemon import store_url  # loads a database

    if store_url(os.fspath(instance)) is None:
        return Looked(read_instance(instance), None)
    from cpsched.site.serve import open_source

    with closing(open_source(os.fspath(instance)).source) as source:
        view = source.read()
        moves = () if job is None else source.history(job)
    if view is None:
        raise click.UsageError(NO_PLAN_YET)
    return Looked(view.instance, view.plan, view.forecasts, moves)
