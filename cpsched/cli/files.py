"""Standard input read like a file, and text files that are never left half-written."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Any

from cpsched.errors import DocumentError, Fault

__all__ = ["load_document_or_stdin", "write_text"]


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
    from cpsched.formats import load_document, read_document

    if source != "-":
        return load_document(source), source
    name = "<stdin>"
    if sys.stdin is None:
        raise DocumentError(name, [Fault("file", "Expected an instance on standard input, which is closed")])
    return read_document(sys.stdin.buffer, name), name


def write_text(text: str, path: Path) -> None:
    """Write a text file by renaming a temporary one beside it, so that it is never half-written."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
