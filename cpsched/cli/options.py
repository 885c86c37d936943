"""Types of arguments and options that several commands share; bad values are refused before any work is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["EXISTING_FILE", "OutputFile"]

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class OutputFile(click.ParamType[Path]):
    """A file to be written: its folder exists, it is no folder itself, and its name ends as it should."""

    name = "file"

    def __init__(self, *suffixes: str) -> None:
        self._suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        path = Path(value)
        if not path.name.endswith(self._suffixes):
            self.fail(f"Expected a name that ends in {' or '.join(self._suffixes)}, got {path.name!r}.", param, ctx)
        if path.is_dir():
            self.fail(f"{str(path)!r} is a folder.", param, ctx)
        if not path.parent.is_dir():
            self.fail(f"The folder {str(path.parent)!r} does not exist.", param, ctx)
        return path
