"""The jobs of a model as a pandas table, one row each, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from cpsched.arguments import at_the_door
from cpsched.modelling.plain import plain


def jobs_frame(jobs: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return a row for each entry of ``jobs``, with the columns that any of them has."""
    return pd.DataFrame(jobs).convert_dtypes()


@at_the_door
def rows_of(jobs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as entries of ``jobs``, without the cells that are missing.

    A whole number is an integer, though pandas makes floats of a column in which some are missing.
    """
    for row in jobs.to_dict("records"):
        yield {str(key): _whole(plain(cell)) for key, cell in row.items() if not _is_missing(cell)}


def _is_missing(cell: object) -> bool:
    """Tell whether a cell of the table says nothing: lists and dicts are never missing."""
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))


def _whole(cell: object) -> object:
    """Return an integer for a float that is whole."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
