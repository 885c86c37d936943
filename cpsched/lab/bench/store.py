"""The results of cells as files: one small document each, named by the digest of the cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpsched.errors import DocumentError, Fault
from cpsched.formats import load_document, write_document

_FORMAT = "cpsched-cell/1"


class Store:
    """A folder of results. `folder`: is made if it does not exist. Raises `OSError` if it cannot be made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, digest: str) -> dict[str, Any] | None:
        """Return the result of a cell; None if it is not finished.

        Raises `DocumentError` if there is a file that is not a cell's result: it may belong to somebody, and is not
        overwritten.
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
