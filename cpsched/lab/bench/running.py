"""Running cells on Dask: finished cells are not run again, failures are recorded, cells of lost workers are run
anew. The result of a cell is a small file, named by the digest of the cell.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpsched.errors import DocumentError, Fault
from cpsched.formats import load_document, write_document
from cpsched.lab.bench.campaign import Cell

if TYPE_CHECKING:
    from distributed import Client


_FORMAT = "cpsched-cell/1"


class Store:
    """A folder of results. `folder`: is made if it does not exist. Raises `OSError` if it cannot be made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, digest: str) -> dict[str, Any] | None:
        """Return the result of a cell; None if it is not finished.

        Raises `DocumentError` if there is a file that is not a cell's result: it is not overwritten.
        """
        path = self._path(digest)
        if not path.exists():
            return None
        document = load_document(path)
        if document.get("format") != _FORMAT:
            raise DocumentError(str(path), [Fault("format", f"Expected {_FORMAT!r}, the result of a cell")])
        return document

    def write(self, digest: str, result: Mapping[str, Any]) -> None:
        """Store the result of a cell, whole or not at all. Raises `DocumentError` if it cannot be written."""
        write_document({"format": _FORMAT, **result}, self._path(digest))

    def _path(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"


def content_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes. Raises `OSError` if it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A cell without a result, and its error."""

    label: str
    #: The error in one line.
    error: str
    #: The error with its traceback.
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The progress of a campaign, in cells."""

    total: int
    #: Including the cells finished before.
    done: int
    failed: int
    running: int


def by_error(failures: Iterable[Failure]) -> dict[str, list[Failure]]:
    """Return the failures by their errors, in the order of their first cells: a fault of a log stops many cells."""
    found: dict[str, list[Failure]] = {}
    for failure in failures:
        found.setdefault(failure.error, []).append(failure)
    return found


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
    """Run the unfinished cells, and store each result at once.

    A cell whose worker is lost is run again by another one. Dask gives up after four times
    (``distributed.scheduler.allowed-failures``), so that a cell that kills its workers fails. Raises `DocumentError` if
    a result cannot be written.

    `cells`: by their digests. `client`: the Dask client that runs them. `work`: computes the result of a cell; the
    workers import and call it. `watch`: called at the beginning, and after each cell.

    Returns the failures in the order of the cells.
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
    # not pure: a result that the Dask scheduler remembers from an earlier run, perhaps an error, must not be used
    futures = {client.submit(work, cell, pure=False): digest for digest, cell in waiting.items()}
    left = len(futures)
    for future in as_completed(list(futures)):
        digest = futures.pop(future)
        left -= 1
        try:
            result = future.result()
        except Exception as error:  # any error: the other cells continue
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            failures[digest] = Failure(
                label=waiting[digest].label,
                error=f"{type(error).__name__}: {' '.join(lines)}",
                details="".join(traceback.format_exception(error)),
            )
        else:
            store.write(digest, result)
        future.release()
        report(left)
    return [failures[digest] for digest in waiting if digest in failures]
