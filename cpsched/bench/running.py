"""Running cells on Dask: what is finished is not run again, what fails is noted, what a lost worker had is run anew."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpsched.bench.campaign import Cell
from cpsched.bench.store import Store

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Failure", "Tally", "open_cells", "run_cells"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A cell that has no result, and why."""

    label: str
    #: The error in one line.
    error: str
    #: With its traceback.
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How far a campaign is, in cells."""

    total: int
    #: With those that were finished before.
    done: int
    failed: int
    running: int


def open_cells(cells: Mapping[str, Cell], store: Store) -> dict[str, Cell]:
    """Return the cells, by their digests, that have no result yet."""
    return {digest: cell for digest, cell in cells.items() if store.read(digest) is None}


def run_cells(
    cells: Mapping[str, Cell],
    store: Store,
    client: Client,
    *,
    work: Callable[[Cell], dict[str, Any]],
    watch: Callable[[Tally], None] | None = None,
) -> list[Failure]:
    """Run the cells that are not finished, and keep each result as soon as it is there.

    A cell whose worker is lost is run again by another one; Dask gives up where that has happened four times
    (``distributed.scheduler.allowed-failures``), so that a cell that kills its workers fails.

    Parameters
    ----------
    cells
        By their digests.
    store
        Where results are, and will be.
    client
        Who runs them.
    work
        Makes the result of a cell; is run by the workers, which import it.
    watch
        Called at the beginning, and after each cell.

    Returns
    -------
    list of Failure
        In the order of the cells.

    Raises
    ------
    DocumentError
        If a result cannot be written.
    """
    from distributed import as_completed

    waiting = open_cells(cells, store)
    failures: dict[str, Failure] = {}

    def report(left: int) -> None:
        if watch is not None:
            done = len(cells) - left - len(failures)
            threads = sum(client.nthreads().values()) if left else 0
            watch(Tally(total=len(cells), done=done, failed=len(failures), running=min(left, threads)))

    report(len(waiting))
    # not pure: what a scheduler still remembers of an earlier run, perhaps an error, is not the answer
    futures = {client.submit(work, cell, pure=False): digest for digest, cell in waiting.items()}
    left = len(futures)
    for future in as_completed(list(futures)):
        digest = futures.pop(future)
        left -= 1
        try:
            result = future.result()
        except Exception as error:  # whatever it is: the others go on
            failures[digest] = _failure(waiting[digest], error)
        else:
            store.write(digest, result)
        future.release()
        report(left)
    return [failures[digest] for digest in waiting if digest in failures]


def _failure(cell: Cell, error: Exception) -> Failure:
    """Put an error of a cell into words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Failure(
        label=cell.label,
        error=f"{type(error).__name__}: {' '.join(lines)}",
        details="".join(traceback.format_exception(error)),
    )
