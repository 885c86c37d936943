"""Standard input read like a file, and text files that are whole or absent."""

from __future__ import annotations

import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

from cpsched.errors import DocumentError

__all__ = ["load_document_or_stdin", "write_text"]

#: One byte more than the largest document (``docs/formats.md``), so that a larger one is seen to be too large.
_ENOUGH_BYTES = 256 * 2**20 + 1


def load_document_or_stdin(source: str) -> tuple[dict[str, Any], str]:
    """Load the raw document of a file, or of standard input where `source` is ``-``; plain or gzip.

    Returns
    -------
    document, name
        The name is what faults are reported under.

    Raises
    ------
    DocumentError
        If it is no JSON object.
    """
    from cpsched.formats import load_document

    if source != "-":
        return load_document(source), source
    name = "<stdin>"
    with tempfile.NamedTemporaryFile(prefix="cpsched-stdin-", suffix=".json") as spool:
        spool.write(sys.stdin.buffer.read(_ENOUGH_BYTES))
        spool.flush()
        try:
            return load_document(spool.name), name
        except DocumentError as error:
            raise DocumentError(name, error.faults) from error


def write_text(text: str, path: Path) -> None:
    """Write a text file by way of a temporary one beside it, so that nobody ever sees half of it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
