"""The jobs that a policy did not serve. They rank before every other figure: who leaves jobs unstarted never wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

#: What `unserved_text` counts, as headings have it.
UNSERVED = "unfinished / killed / lost / starved"
#: The figures of each: a job without an end never ran or waits again, one that is lost ran on a node that failed.
_PARTS = (("waiting", "refused"), ("killed",), ("restarts",), ("starved",))


def unserved_counts(cells: Iterable[Mapping[str, float | None]]) -> tuple[float, float, float, float]:
    """Return how many jobs are unfinished, killed, lost to a failing node and starved, over all cells.

    `cells`: the figures of each, by name; a figure that is missing, as in old files, counts as 0.
    """
    found = list(cells)
    first, second, third, fourth = (sum(one.get(name) or 0 for one in found for name in part) for part in _PARTS)
    return first, second, third, fourth


def unserved_rank(cells: Sequence[Mapping[str, float | None]]) -> tuple[float, float]:
    """Return the key by which policies rank before any figure: jobs that did not complete, then jobs that starve; the
    mean of each over the cells.

    Lost runs are shown and do not rank: a job that lost its node runs again, and a node fails under any policy.
    """
    unfinished, killed, _, starved = unserved_counts(cells)
    count = max(1, len(cells))
    return (unfinished + killed) / count, starved / count


def unserved_text(cells: Iterable[Mapping[str, float | None]]) -> str:
    """Return the counts of `UNSERVED` in its order: ``12 / 0 / 0 / 3``."""
    return " / ".join(f"{count:,.0f}" for count in unserved_counts(cells))
