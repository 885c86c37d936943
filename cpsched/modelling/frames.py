"""The jobs of a model as a pandas table, one row each, and back."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from cpsched.arguments import at_the_door
from cpsched.modelling.model import plain
from cpsched.text import did_you_mean


def jobs_frame(jobs: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return a row for each entry of ``jobs``, with the columns that any of them has."""
    return pd.DataFrame(jobs).convert_dtypes()


@at_the_door
def rows_of(jobs: pd.DataFrame, columns: Sequence[str], *, epoch: str | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as keywords of `Model.add_job`, without the cells that are missing.

    A whole number is an integer, though pandas makes floats of a column in which some are missing. Raises `ValueError`
    if it has another column, or a timestamp and no epoch.

    `jobs`: the table.
    `columns`: the columns that it may have.
    `epoch`: the moment of second 0, in ISO 8601.
    """
    for column in map(str, jobs.columns):
        if column not in columns:
            raise ValueError(f"jobs: add_job has no keyword for column {column!r}{did_you_mean(column, columns)}")
    for row in jobs.to_dict("records"):
        # lists and dicts are never missing
        there = {key: cell for key, cell in row.items() if not (pd.api.types.is_scalar(cell) and pd.isna(cell))}
        yield {str(key): _plain(cell, epoch) for key, cell in there.items()}


def _plain(cell: object, epoch: str | None) -> object:
    """Return a cell as a document has it: whole seconds for timestamps and timedeltas, an integer for a whole float."""
    if isinstance(cell, pd.Timestamp):
        if epoch is None:
            raise ValueError(
                f"jobs: the timestamp {cell} has no epoch to count from; give epoch='1970-01-01T00:00:00Z'"
            )
        zero = pd.Timestamp(epoch)
        cell = (cell.tz_localize(zero.tz) if cell.tz is None else cell) - zero
    if isinstance(cell, pd.Timedelta):
        cell = cell.total_seconds()
    cell = plain(cell)
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell
