"""What all pages are made of: assets, embedded data, and the policy that admits nothing else."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib import resources
from string import Template

from cpsched.text import printable


def asset(name: str) -> str:
    """Read a file from this module's folder."""
    return resources.files("cpsched.report").joinpath(name).read_text(encoding="utf-8")


def as_html(text: str) -> str:
    """Return a text as HTML that shows it as it is."""
    return html.escape(printable(text))


def source_of(text: str) -> str:
    """Return the word of a content security policy for exactly this script or style."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def embedded(document: object) -> str:
    """Write JSON that is safe inside a script element: ASCII only, without the characters of markup."""
    text = json.dumps(_drawn(document), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def filled(name: str, parts: Mapping[str, str]) -> str:
    """Return a page from this module's folder with its marks replaced; inserted text is never searched for marks."""
    return Template(asset(name)).substitute(parts)


def _drawn(value: object) -> object:
    """Return a document with all of its texts as they may be drawn."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {key: _drawn(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_drawn(inner) for inner in value]
    return value
