"""Evolving jobs of which every plan has the chunk layers of the model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cpsched.domain import Arrangement, Job, NodeClass, Request


def has_layers_only(classes: Sequence[NodeClass], job: Job) -> bool:
    """Return whether every plan of an evolving job has it in layers, which give back first what came last.

    A packed job is one unit on one node: a step that takes more keeps the node, one that takes less takes no other.
    Otherwise let the job have one kind of chunks, of which a node holds at most one. The nodes of a step then contain
    those of the next one, or are contained in them, as their numbers say (EVO-4b). If the numbers never fall after they
    have risen, the nodes of the smallest step are those of all steps; each node that is given back before was there
    from the first step on, and each that is taken later stays to the last: these are the layers. Where the numbers fall
    after a rise, other nodes than those that came last could be given back.
    """
    requests = [step.request for step in job.steps]
    if requests[0].place.arrangement is Arrangement.PACK:
        return True
    if any(len(request.chunks) != 1 for request in requests):
        return False
    counts = [request.chunks[0].count for request in requests]
    has_risen = False
    for before, after in pairwise(counts):
        if has_risen and after < before:
            return False
        has_risen = has_risen or after > before
    return all(_is_one_on_each_node(classes, request) for request in requests)


def _is_one_on_each_node(classes: Sequence[NodeClass], request: Request) -> bool:
    """Return whether no node holds two chunks of a request of one kind."""
    (chunk,) = request.chunks
    return (
        chunk.count == 1
        or request.place.arrangement is Arrangement.SCATTER
        or all(
            any(2 * amount > node_class.resources.get(name, 0) for name, amount in chunk.resources.items())
            for node_class in classes
        )
    )
