"""From what an engine decides to what documents state: how many chunks of a job are on which node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cpsched.domain import Amounts, Chunk, Placement, PlannedJob, Segment


def placements(
    chunks: Sequence[Chunk] | Mapping[int, Chunk], units: Iterable[tuple[str, int, int]]
) -> tuple[Placement, ...]:
    """Return an allocation, which has one entry for each node and kind of chunks.

    `chunks`: the chunks by kind. `units`: (node, kind, how many chunks of it).
    """
    counts: dict[tuple[str, int], int] = {}
    for node, kind, count in units:
        counts[node, kind] = counts.get((node, kind), 0) + count
    taken: dict[tuple[int, int], Amounts] = {}  # most nodes hold the same: one value serves them all
    found = []
    for (node, kind), count in counts.items():
        if (kind, count) not in taken:
            taken[kind, count] = chunks[kind].taken(count)
        found.append(Placement(node=node, chunk=kind, count=count, resources=taken[kind, count]))
    return tuple(found)


def in_segments(job_id: str, segments: Iterable[Segment], alternative: int = 0) -> PlannedJob:
    """Return the planned job of some segments, one after the other, by one of the job's alternatives."""
    held = tuple(segments)
    return PlannedJob(id=job_id, start=held[0].start, end=held[-1].end, segments=held, alternative=alternative)
