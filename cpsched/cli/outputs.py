"""What commands print with ``--json``: the formats, as JSON Schemas, and the one way in which they are printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cpsched.cli.options import STDOUT
from cpsched.cli.screen import echo_json
from cpsched.text import printable

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_BOOLEAN: Schema = {"type": "boolean"}
#: A part that is described elsewhere: in the formats of documents, or by its own keys.
_OPEN: Schema = {"type": "object"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(**properties: Schema) -> Schema:
    """Return an object that has all of these keys, and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_PATH = _or_null({**_TEXT, "description": "a file that was written; null: none was asked for"})
_FAULTS = _list(_object(path=_TEXT, message=_TEXT, entry=_TEXT))
_VIOLATIONS = _list(_object(rule=_TEXT, subject=_TEXT, message=_TEXT))
_WAITING = _list({**_OPEN, "description": "as in the waiting room of a plan"})
_COUNTS: Schema = {"type": "object", "additionalProperties": _INTEGER}

_PLANNING: dict[str, Schema] = {
    "instance": _TEXT,
    "engine": {**_OPEN, "description": "as in a plan"},
    "objective": {**_OPEN, "description": "as in a plan, and the honest gap"},
    "summary": {**_OPEN, "description": "the figures that are printed"},
    "incumbents": _list(_OPEN),
    "events": _list(_OPEN),
    "waiting_room": _WAITING,
    "reservations": _list(_OPEN),
    "judgement": {
        **_or_null(_object(violations=_INTEGER, rules=_list(_TEXT))),
        "description": "the verifier's, of this plan: the number of violations, and the rules to which it was held",
    },
    "warnings": _FAULTS,
    "plan": _PATH,
    "instance_output": _PATH,
    "gantt": _PATH,
}
_START, _COMPARED = _or_null(_INTEGER), _object(jobs=_INTEGER, seconds=_INTEGER)
_FORECAST = _object(job=_TEXT, likely=_START, by=_START, earliest=_START, latest=_START, enough=_START)
_MEAN = _object(mean=_NUMBER, half_width=_or_null(_NUMBER), count=_INTEGER)
_TAKEN: dict[str, Schema] = {"output": _TEXT, "running": _INTEGER, "waiting": _INTEGER, "left_out": _FAULTS}

#: The outputs by their names: mostly the command, whose key ``format`` is ``cpsched-NAME/1``.
OUTPUTS: Mapping[str, dict[str, Schema]] = {
    "solve": _PLANNING,
    "replan": _PLANNING,
    "verify": {"instance": _TEXT, "plan": _TEXT, "warnings": _FAULTS, "violations": _VIOLATIONS},
    "show": {
        "instance": _TEXT,
        "now": _INTEGER,
        "objective": {**_OPEN, "description": "as in a plan"},
        "summary": {**_OPEN, "description": "the figures that are printed"},
        "jobs": _list(
            _object(
                id=_TEXT,
                user=_or_null(_TEXT),
                queue=_or_null(_TEXT),
                submit=_INTEGER,
                start=_INTEGER,
                end=_INTEGER,
                is_running=_BOOLEAN,
                nodes=_list(_TEXT),
            )
        ),
        "waiting_room": _WAITING,
    },
    "report": {"output": _TEXT, "title": _TEXT},
    "explain": {
        "job": _TEXT,
        "state": {"enum": ["running", "planned", "waiting_room"]},
        "start": _START,
        "end": _START,
        "reason": _or_null(_TEXT),
        "detail": _or_null(_TEXT),
        "form": _or_null(_TEXT),
        "blocked": _list(_object(start=_INTEGER, end=_INTEGER, cause=_OPEN)),
        "is_whole": _BOOLEAN,
        "free_start": _START,
        "changes": _list(_OPEN),
        "chain": _list(_OPEN),
        "forecast": _or_null(_FORECAST),
        "moved": _list(_object(at=_INTEGER, start=_START, reason=_TEXT)),
    },
    "whatif": {
        "objective": _TEXT,
        "value_before": _NUMBER,
        "value_after": _NUMBER,
        "later": _COMPARED,
        "earlier": _COMPARED,
        "jobs": _list(
            _object(
                job=_TEXT,
                user=_or_null(_TEXT),
                before=_START,
                after=_START,
                is_new=_BOOLEAN,
                is_gone=_BOOLEAN,
                seconds=_START,
            )
        ),
        "plan": _PATH,
    },
    "whatif-submit": {
        "job": _TEXT,
        "start": _START,
        "end": _START,
        "wait": _START,
        "nodes": _list(_TEXT),
        "detail": _or_null(_TEXT),
    },
    "forecast": {
        "instance": _TEXT,
        "now": _INTEGER,
        "futures": _INTEGER,
        "learnt": _INTEGER,
        "arrivals": _INTEGER,
        "jobs": _list(_FORECAST),
    },
    "snapshot": _TAKEN,
    "convert": _TAKEN | {"adjusted": _FAULTS, "too_large": _FAULTS, "kept_out": _COUNTS},
    "generate": {"output": _TEXT, "jobs": _INTEGER, "load": _or_null(_NUMBER)}
    | dict.fromkeys(("malleable", "moldable", "failures"), _START),
    "simulate": {
        "workload": _TEXT,
        "predict": _or_null(_TEXT),
        "charge_overhead": _BOOLEAN,
        "feedback": _BOOLEAN,
        "notes": _COUNTS,
        "policies": _list(
            _object(
                label=_TEXT,
                policy=_TEXT,
                parameters=_OPEN,
                interrupted=_BOOLEAN,
                seconds=_NUMBER,
                folder=_PATH,
                violations=_or_null(_VIOLATIONS),
                unkept=_list(_TEXT),
                rules=_list(_object(since=_INTEGER, rule=_TEXT, jobs=_INTEGER, ratio=_NUMBER)),
                as_easy=_or_null(_object(since=_INTEGER, until=_INTEGER, seconds=_INTEGER)),
                summary={**_OPEN, "description": "the figures of summary.json"},
            )
        ),
    },
    "replay": {
        "history": _TEXT,
        "begin": _INTEGER,
        "end": _INTEGER,
        "jobs": {**_INTEGER, "description": "those that count"},
        "replicas": _INTEGER,
        "fidelity": _or_null(
            _object(
                jobs=_INTEGER,
                wait=_NUMBER,
                simulated_wait=_NUMBER,
                within_minute=_NUMBER,
                within_hour=_NUMBER,
                correlation=_or_null(_NUMBER),
            )
        ),
        "replays": _list(_object(label=_TEXT, summary={**_OPEN, "description": "as in summary.json"})),
        "differences": _list(_object(label=_TEXT, figure=_TEXT, unchanged=_MEAN, changed=_MEAN, difference=_MEAN)),
        "notes": _COUNTS,
        "output": _PATH,
    },
    "replay-choose": {
        "usual": _TEXT,
        "engine": _TEXT,
        "jobs": _INTEGER,
        "begin": _INTEGER,
        "end": _INTEGER,
        "trials": _list(
            _object(engine=_TEXT, replicas=_INTEGER, wins=_BOOLEAN, ratio=_NUMBER, slowdown=_NUMBER, longest=_NUMBER)
        ),
    },
    "bench": {
        "campaign": _TEXT,
        "folder": _TEXT,
        "cells": _INTEGER,
        "earlier": _INTEGER,
        "failed": _list(_object(cell=_TEXT, error=_TEXT)),
        "written": _list(_TEXT),
    },
    "daemon-check": {
        "manager": _TEXT,
        "dry_run": _BOOLEAN,
        "checks": _list(_object(what=_TEXT, is_fine=_BOOLEAN, said=_TEXT)),
    },
    "daemon-once": {
        "now": _INTEGER,
        "running": _INTEGER,
        "waiting": _INTEGER,
        "planned": _INTEGER,
        "horizon": _INTEGER,
        "to_start": _INTEGER,
        "orders": _INTEGER,
    },
    "daemon-hand-back": {"orders": _INTEGER, "left": _list(_TEXT)},
    "serve-check": {"source": _TEXT, "kind": _TEXT, "jobs": _INTEGER, "tokens": _INTEGER, "address": _TEXT},
    "warmup": {"seconds": _NUMBER},
    "schema": {"name": _TEXT, "schema": {**_OPEN, "description": "the JSON Schema"}},
    "completion": {"shell": {"enum": ["bash", "zsh", "fish"]}, "script": _TEXT},
    "example": {"examples": _list(_object(name=_TEXT, what=_TEXT, bytes=_INTEGER)), "written": _PATH},
}


def put_document(document: Mapping[str, Any], path: Path) -> None:
    """Write a document to a file, whole or not at all, or to standard output. Raises `DocumentError` if it fails."""
    from cpsched.formats import document_text, write_document

    if path == STDOUT:
        click.echo(document_text(document), nl=False)
    else:
        write_document(document, path)


def echo_written(what: str, path: Path) -> None:
    """Say what was written, and where: on stderr if it went to stdout."""
    click.echo(f"{what} in {'standard output' if path == STDOUT else printable(str(path))}", err=path == STDOUT)


def output_schema(name: str) -> Schema:
    """Return the JSON Schema of an output. `name`: a key of `OUTPUTS`."""
    title = f"cpsched-{name}/1"
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return about | _object(format={"const": title}, **OUTPUTS[name])


def echo_output(name: str, content: Mapping[str, Any]) -> None:
    """Print an output by its name in `OUTPUTS`, with the values of all its keys, as one JSON object."""
    echo_json({"format": f"cpsched-{name}/1", **content})
