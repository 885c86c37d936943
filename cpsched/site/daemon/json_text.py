"""Values as the text of JSON."""

import json
from typing import Any

import msgspec


def json_text(value: Any) -> str:
    """Return a value of JSON as its text."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a pair of UTF-16, which is no text of UTF-8 but by its escape
        return json.dumps(value)
