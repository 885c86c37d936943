"""The page about the API: its OpenAPI document as plain HTML, without scripts and without anything from elsewhere."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>cpsched: HTTP API</title>
<link rel="icon" type="image/svg+xml" href="icon.svg"><link rel="stylesheet" href="page.css"></head>
<body class="reference"><h1>The HTTP API</h1>"""


def reference_page(document: Mapping[str, Any]) -> str:
    """Return the page about an OpenAPI document."""
    return "\n".join(_lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield _HEAD
    yield f"<p>{escape(document['info'].get('description', ''))}</p>"
    yield '<p>As data: <a href="v1/openapi.json">openapi.json</a></p>'
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield from _operation(f"{method.upper()} {path}", operation)
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        yield f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>'
        needed = schema.get("required", ())
        yield from _table((key, key in needed, value) for key, value in schema.get("properties", {}).items())


def _operation(title: str, operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a request asks for and what it is answered."""
    yield f"<h2><code>{escape(title)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
    if not any(needed == {} for needed in operation.get("security", [{}])):
        yield "<p>Needs a token.</p>"
    parameters = operation.get("parameters", ())
    yield from _table(
        (one["name"], one.get("required", False), {**one["schema"], "description": one.get("description", "")})
        for one in parameters
    )
    if (body := operation.get("requestBody")) is not None:
        yield f"<p>Body: {_content(body)}. {escape(body.get('description', ''))}</p>"
    yield "<ul>"
    for status, answer in operation["responses"].items():
        yield f"<li><code>{escape(status)}</code> {escape(answer.get('description', ''))} {_content(answer)}</li>"
    yield "</ul>"


def _content(holder: Mapping[str, Any]) -> str:
    kinds = holder.get("content", {}).items()
    return ", ".join(f"<code>{escape(media)}</code> {_kind(one.get('schema', {}))}" for media, one in kinds)


def _table(rows: Iterator[tuple[str, bool, Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a table of keys or parameters: the name, whether it is needed, and its schema."""
    lines = [
        f"<tr><td><code>{escape(name)}</code>{' (needed)' if is_needed else ''}</td><td>{_kind(schema)}</td>"
        f"<td>{escape(schema.get('description', ''))}</td></tr>"
        for name, is_needed, schema in rows
    ]
    yield from ("<table>", *lines, "</table>") if lines else ()


def _kind(schema: Mapping[str, Any]) -> str:
    """Say which values a schema admits."""
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(_kind(one) for one in schema[several])
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "enum" in schema or "const" in schema:
        return escape(", ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")])))
    of = f" of {_kind(schema['items'])}" if schema.get("items") else ""
    bounds = "".join(f", {word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema)
    return f"{escape(str(schema.get('type', 'any')))}{of}{escape(bounds)}"


#: Bounds of a value, and how they are said.
_BOUNDS = {"minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above", "maxLength": "of length up to"}
