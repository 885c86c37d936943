"""Runs for tests: from rows, and drawn at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from cpsched.metrics import Ending, Runs


class Row(NamedTuple):
    """One job of `Runs`; what a test does not care about has a value that disturbs nothing."""

    submit: int
    start: int = -1
    end: int = -1
    cores: int = 1
    ending: Ending = Ending.COMPLETED
    user: str | None = None
    queue: str | None = None
    walltime: int = 100
    runtime: int = -1
    expected_wait: int = 1800
    attempts: int = 1
    max_wait: int = -1
    first_start: int = -1
    lost: int = 0
    gpus: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it ran to its end."""
        return self.ending in (Ending.COMPLETED, Ending.KILLED)


def runs_of(*rows: Row) -> Runs:
    """Make the runs of these rows; the ids are their numbers."""

    def column(values: list[int]) -> np.typing.NDArray[np.int64]:
        return np.array(values, dtype=np.int64)

    return Runs(
        ids=tuple(str(number) for number in range(len(rows))),
        users=tuple(row.user for row in rows),
        groups=(None,) * len(rows),
        queues=tuple(row.queue for row in rows),
        submit=column([row.submit for row in rows]),
        walltime=column([row.walltime for row in rows]),
        runtime=column([row.runtime for row in rows]),
        start=column([row.start for row in rows]),
        end=column([row.end for row in rows]),
        cores=column([row.cores for row in rows]),
        nodes=column([int(row.start >= 0) for row in rows]),
        asked={"gpus": column([row.gpus for row in rows]), "cores": column([row.cores for row in rows])},
        expected_wait=column([row.expected_wait for row in rows]),
        max_wait=column([row.max_wait for row in rows]),
        attempts=column([row.attempts for row in rows]),
        first_start=column([row.first_start for row in rows]),
        lost=column([row.lost for row in rows]),
        ending=np.array([row.ending for row in rows], dtype=np.int8),
    )


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Draw one job; times are close together, so that jobs meet at the same second."""
    submit = draw(st.integers(0, 12))
    ending = draw(st.sampled_from((Ending.COMPLETED,) * 4 + tuple(Ending)))
    attempts = draw(st.integers(1, 3)) if ending >= Ending.COMPLETED else 0
    if ending is Ending.WAITING:
        attempts = draw(st.integers(0, 2))
    start = submit + draw(st.integers(0, 12)) if attempts else -1
    return Row(
        submit=submit,
        start=start,
        end=start + draw(st.integers(0, 12)) if attempts else -1,
        cores=draw(st.sampled_from((1, 2, 3, 8, 9, 64, 65))),
        ending=ending,
        user=draw(st.sampled_from((None, "ada", "bob"))),
        queue=draw(st.sampled_from((None, "debug", "long"))),
        walltime=draw(st.integers(1, 15)),
        runtime=draw(st.integers(-1, 15)),
        expected_wait=draw(st.integers(1, 10)),
        attempts=attempts,
        max_wait=draw(st.sampled_from((-1, 0, 3, 8))),
        first_start=draw(st.integers(submit, start)) if attempts else -1,
        lost=draw(st.integers(0, 5)) if attempts > 1 else 0,
        gpus=draw(st.integers(0, 2)),
    )


many_rows = st.lists(rows(), min_size=1, max_size=12)
