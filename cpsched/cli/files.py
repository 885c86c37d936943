"""Standard input read like a file."""

from __future__ import annotations

import sys
from typing import Any


def load_document_or_stdin(source: str) -> tuple[dict[str, Any], str]:
    """Load the raw document of a file, or of standard input where `source` is ``-``; plain or gzip.

    Raises `DocumentError` if it is no JSON object.

    Returns the document, and the name under which faults are reported.
    """
    from cpsched.formats import load_document, read_document

    if source != "-":
        return load_document(source), source
    name = "<stdin>"
    return read_document(sys.stdin.buffer, name), name
