"""Saved answers of a resource manager in JSON: what each file of a directory is, its contents tell."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cpsched.errors import DocumentError, Fault
from cpsched.formats import shown

Answer = Mapping[str, Any]
_MOST_BYTES = 512 * 2**20


def read_answers(
    path: Path, kinds_of: Callable[[Answer], Iterable[str]], needed: Mapping[str, str]
) -> dict[str, Answer]:
    """Return the first answer of each kind, by kind; an empty file is none.

    `kinds_of`: returns the kinds of an answer.
    `needed`: the commands of the kinds that must be there.
    Raises `DocumentError` if one of these is not there, or a file is no JSON object.
    """
    found: dict[str, Answer] = {}
    try:
        for file in sorted(path.glob("*.json")):
            if file.stat().st_size > _MOST_BYTES:
                raise DocumentError(str(file), [Fault("", f"Expected at most {_MOST_BYTES} bytes, got more")])
            text = file.read_text(encoding="utf-8", errors="replace")
            answer = parse_object(text, str(file)) if text.strip() else {}
            for kind in kinds_of(answer):
                found.setdefault(kind, answer)
    except OSError as error:
        raise DocumentError(str(path), [Fault("", f"Expected a directory, got: {error.strerror}")]) from None
    faults = [
        Fault("", f"Expected an answer of {command}, got none") for kind, command in needed.items() if kind not in found
    ]
    if faults:
        raise DocumentError(str(path), faults)
    return found


def parse_object(text: str, source: str) -> Answer:
    """Parse the text of one answer. Raises `DocumentError` if it is no JSON object."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(source, [Fault("", f"Expected JSON, got: {error}")]) from None
    if not isinstance(answer, dict):
        raise DocumentError(source, [Fault("", f"Expected a JSON object, got {shown(answer)}")])
    return answer
