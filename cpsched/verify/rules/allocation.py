"""Does a job get what it asks for, on nodes that may host it: request, place, properties, states, guards."""

from collections.abc import Iterator
from typing import NamedTuple

from cpsched.verify.case import Case, Violation
from cpsched.verify.model import Booking, Chunk, Job, NodeClass, Placement, Request, Segment, Slice, Step


class Site(NamedTuple):
    """A chunk of a job on a node, as a representative of all equal ones."""

    booking: Booking
    request: Request
    chunk: Chunk
    node: str
    node_class: NodeClass


def check_allocations(case: Case) -> Iterator[Violation]:
    """Every allocation of a planned job has the chunks of its request, in its arrangement, on nodes that admit them.

    What a suspended job has when it continues follows from what it had (`check_stops`).
    """
    rules = (check_properties, check_state, check_queue_nodes, check_guard, check_exclusive_guard)
    for booking in case.runs:
        if (booking.id, booking.start) in case.continuing:
            continue
        seen: set[tuple[int, int, int]] = set()
        for segment, request in case.requests_of(booking):
            yield from check_request(booking.id, booking.job, segment.allocation, request)
            yield from check_place(booking.id, segment.allocation, request)
            yield from check_within(case, booking.id, segment.allocation, request)
            for site in _sites(case, booking, segment, request, seen):
                for rule in rules:
                    yield from rule(site)


def check_slice(case: Case, slice_: Slice) -> Iterator[Violation]:
    """Check that a reservation gets its chunks as a job does; only a downtime may lie on nodes that are not up."""
    reservation, request = slice_.reservation, slice_.reservation.request
    if request is None:
        yield from _check_named(case, slice_)
        return
    job = Job(reservation.id, slice_.start, (Step(slice_.end - slice_.start, request),))
    segment = Segment(slice_.start, slice_.end, slice_.allocation)
    booking = Booking(reservation.id, job, slice_.start, slice_.end, (segment,))
    yield from check_request(reservation.id, job, slice_.allocation, request)
    yield from check_place(reservation.id, slice_.allocation, request)
    for site in _sites(case, booking, segment, request, set()):
        yield from check_properties(site)
        if not reservation.is_downtime:
            yield from check_state(site)


def _check_named(case: Case, slice_: Slice) -> Iterator[Violation]:
    """Check that a reservation of named nodes has all of each of them, and that they are up if it is no downtime."""
    name, nodes = slice_.reservation.id, case.instance.nodes
    got = [placement.node for placement in slice_.allocation]
    if sorted(got) != sorted(slice_.reservation.nodes):
        listed = ", ".join(slice_.reservation.nodes[:5])
        yield Violation("request", name, f"expected its {len(slice_.reservation.nodes)} nodes ({listed}), each once")
    for placement in slice_.allocation:
        has = {one: amount for one, amount in nodes[placement.node].resources.items() if amount}
        if placement.resources != has or placement.chunk is not None:
            message = f"expected all of {placement.node}, {has}, without chunk and count, got {placement.resources}"
            yield Violation("request", name, message)
        if nodes[placement.node].state != "up" and not slice_.reservation.is_downtime:
            yield Violation("state", name, f"is on {placement.node}, which is {nodes[placement.node].state}")


def _sites(
    case: Case, booking: Booking, segment: Segment, request: Request, seen: set[tuple[int, int, int]]
) -> Iterator[Site]:
    """Yield one site for each kind of chunk on each class of nodes."""
    for placement in segment.allocation:
        if placement.chunk is None or placement.chunk >= len(request.chunks):
            continue
        node_class = case.instance.nodes[placement.node]
        key = (id(request), placement.chunk, id(node_class))
        if key not in seen:
            seen.add(key)
            yield Site(booking, request, request.chunks[placement.chunk], placement.node, node_class)


def check_request(name: str, job: Job, allocation: tuple[Placement, ...], request: Request) -> Iterator[Violation]:
    """Each kind has as many chunks as the request, and `resources` is the sum of their amounts."""
    placed = [0] * len(request.chunks)
    expected_of: dict[tuple[int, int], dict[str, int]] = {}
    ignored = {"cores"} if job.malleable is not None and not job.is_evolving else set()
    for placement in allocation:
        kind, count = placement.chunk, placement.count
        if kind is None or count is None or kind >= len(request.chunks):
            message = (
                f"expected chunk (below {len(request.chunks)}) and count on {placement.node}, got {kind} and {count}"
            )
            yield Violation("request", name, message)
            continue
        placed[kind] += count
        expected = expected_of.get((kind, count))
        if expected is None:
            expected = {one: count * amount for one, amount in request.chunks[kind].resources.items()}
            expected_of[kind, count] = expected
        if placement.resources == expected:
            continue
        for one in sorted({*expected, *placement.resources} - ignored):
            should, got = expected.get(one, 0), placement.resources.get(one, 0)
            if got != should:
                message = f"{count} x chunk {kind} on {placement.node}: expected {should} {one}, got {got}"
                yield Violation("request", name, message)
    for kind, (count, chunk) in enumerate(zip(placed, request.chunks, strict=True)):
        if count != chunk.count:
            yield Violation("request", name, f"expected {chunk.count} chunks of kind {kind}, got {count}")


def check_place(name: str, allocation: tuple[Placement, ...], request: Request) -> Iterator[Violation]:
    """``pack`` has all chunks on one node, ``scatter`` at most one chunk, of any kind, per node."""
    if request.arrangement == "pack":
        nodes = {placement.node for placement in allocation}
        if len(nodes) > 1:
            yield Violation("place", name, f"expected all chunks on one node (pack), got {len(nodes)} nodes")
    if request.arrangement == "scatter":
        chunks: dict[str, int] = {}
        for placement in allocation:
            chunks[placement.node] = chunks.get(placement.node, 0) + (placement.count or 0)
        for node, count in chunks.items():
            if count > 1:
                yield Violation("place", name, f"expected one chunk per node (scatter), got {count} on {node}")


def check_within(case: Case, name: str, allocation: tuple[Placement, ...], request: Request) -> Iterator[Violation]:
    """Check that chunks are in one group of the level that the request names; or in each of several groups whole
    segments, or no more than are to be there.
    """
    if request.within is None:
        return
    counts: dict[str, int] = {}
    for placement in allocation:
        group = case.instance.topology[request.within].get(placement.node)
        if group is None:
            yield Violation("place", name, f"expected a node in some {request.within}, got {placement.node}")
            return
        counts[group] = counts.get(group, 0) + (placement.count or 0)
    if request.segment is None and request.spread is None and len(counts) != 1:
        yield Violation(
            "place", name, f"expected all chunks within one {request.within}, got {', '.join(sorted(counts))}"
        )
    for group, count in counts.items():
        if request.segment is not None and count % request.segment:
            asked = f"segments of {request.segment} chunks within one {request.within}"
            yield Violation("place", name, f"expected {asked}, got {count} chunks in {group}")
        if request.spread is not None and count > request.spread:
            asked = f"at most {request.spread} chunks within one {request.within}"
            yield Violation("place", name, f"expected {asked}, got {count} in {group}")


def check_properties(site: Site) -> Iterator[Violation]:
    """Check that the node of a chunk has every property that the chunk asks for."""
    for key, value in site.chunk.where.items():
        got = site.node_class.properties.get(key)
        if got != value:
            message = f"asks for {key}={value}, but {site.node} has " + (f"{key}={got}" if got is not None else "none")
            yield Violation("where", site.booking.id, message)


def check_state(site: Site) -> Iterator[Violation]:
    """No new job is on a node that is drained or down."""
    if site.node_class.state != "up":
        yield Violation("state", site.booking.id, f"is on {site.node}, which is {site.node_class.state}")


def check_queue_nodes(site: Site) -> Iterator[Violation]:
    """Check that no job is on a node that its queue does not have."""
    queue = site.booking.job.queue
    if queue in site.node_class.closed_to:
        yield Violation("queue", site.booking.id, f"is on {site.node}, expected one of the nodes of its queue {queue}")


def check_guard(site: Site) -> Iterator[Violation]:
    """Check that a chunk meets one condition of its node's guard."""
    if not site.node_class.admits_chunk(site.chunk, site.booking.job.walltime):
        message = f"a chunk of {dict(site.chunk.resources)} meets no condition of the guard of {site.node}"
        yield Violation("guard", site.booking.id, message)


def check_exclusive_guard(site: Site) -> Iterator[Violation]:
    """Check that no job has a node exclusively if its chunk does not ask for the resource of the node's `keep_free`."""
    for entry in site.node_class.keep_free:
        if site.request.exclusive and entry.beneficiary not in site.chunk.resources:
            message = f"has {site.node} exclusively without asking for {entry.beneficiary}, for which it keeps free"
            yield Violation("keep_free", site.booking.id, message)
