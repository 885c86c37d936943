"""The state of reading one instance: its faults, its names, and the requests read so far."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from cpsched.domain import MAX_ARRAY, Amounts, Chunk, Cluster, Place, Placement, Request
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats.faults import Faults, Location, first_few, path_of, shown
from cpsched.formats.hostlist import MAX_NODES, expand_hostlist, meant_range
from cpsched.formats.kinds import kind_of
from cpsched.formats.notations import format_place, parse_indices, parse_place
from cpsched.formats.request_text import ParsedRequest, parse_request


def frozen_amounts(amounts: Mapping[str, int] | None) -> Amounts:
    """Return amounts without those that are 0, since that is the same as not asking."""
    return Amounts({name: amount for name, amount in (amounts or {}).items() if amount})


@dataclass(kw_only=True)
class Reading:
    """Mutable: one instance on its way from document to domain values."""

    faults: Faults
    on_warning: Callable[[Fault], None]
    now: int
    #: Sections of which some part was refused for its shape: what refers to them cannot be checked.
    incomplete: Collection[str]
    #: By the location of a list: which of its entries are left; a list that is not here is whole.
    places: Mapping[Location, list[int]]
    #: All countable resources.
    countable: Collection[str]
    #: The licences, which may be limited or pooled too.
    licenses: Mapping[str, int]
    has_epoch: bool
    #: The number of further array elements that the document may have.
    elements_left: int = MAX_ARRAY
    #: Jobs whose running part is given in segments.
    segmented: set[Location] = field(default_factory=set)
    #: Once it has been read.
    cluster: Cluster = field(default_factory=lambda: Cluster(classes=()))
    #: Where each node was named first.
    _first_places: dict[str, Location] = field(default_factory=dict)
    _parsed: dict[str, ParsedRequest | SyntaxFault] = field(default_factory=dict)

    def location(self, at: Location, index: int) -> Location:
        """Return the location in the document of entry `index` of a list."""
        left = self.places.get(at)
        return (*at, index if left is None else left[index])

    def check_known(self, location: Location, noun: str, name: str, known: Collection[str], section: str) -> bool:
        """Note a fault unless `name` is known, or the section that declares it was refused in part."""
        if name in known:
            return True
        if section not in self.incomplete:
            self.faults.add_unknown(location, noun, name, known)
        return False

    def resource(self, location: Location, name: str, also: Collection[str]) -> str:
        """Return a name, with a fault noted unless it is a countable resource or one of the names in `also`."""
        if name not in self.countable and not {"nodes", "licenses"} & set(self.incomplete):
            more = [other for one in also for other in (self.licenses if one == "licenses" else [one])]
            self.check_known(location, "resource", name, [*self.countable, *more], "nodes")
        self.check_held(location, [name])
        return name

    def check_held(self, location: Location, names: Iterable[str]) -> None:
        """Note a fault for each name of a licence that does not come back: rules are about what jobs hold."""
        for name in names:
            if name in self.cluster.consumed:
                self.faults.add(location, f"Expected what comes back, got the consumed licence {shown(name)}")

    def new_nodes(self, location: Location, text: str) -> tuple[str, ...]:
        """Return the names of nodes that a host list declares: none was declared before."""
        limit = MAX_NODES - len(self._first_places)
        names = self.faults.parsed(location, partial(expand_hostlist, limit=limit), text, ())
        for name in names:
            if meant := meant_range(name):
                message = f"one node is called {shown(name)}; did you mean the nodes {meant}?"
                self.on_warning(self.faults.fault(location, message))
        twice: list[str] = []
        for name in names:
            if name in self._first_places:
                twice.append(name)
            else:
                self._first_places[name] = location
        if twice:
            earlier = path_of(self._first_places[twice[0]])
            self.faults.add(location, f"Expected every node once, got again: {first_few(twice)} (first in {earlier})")
        return names

    def node_list(self, location: Location, text: str, ends: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the nodes of the cluster that a host list names, or nodes and switches: the `ends` of links."""
        known, also = (self.cluster.class_of, "") if ends is None else (ends, " or switches")
        limit = MAX_NODES if "nodes" in self.incomplete else len(known)
        names = self.faults.parsed(location, partial(expand_hostlist, limit=limit), text, ())
        unknown = [name for name in names if name not in known]
        if unknown and "nodes" not in self.incomplete:
            meant = meant_range(unknown[0])
            hint = f", did you mean {meant}?" if meant else self.faults.suggestion(unknown[0], known)
            self.faults.add(location, f"Expected nodes{also} of the cluster, got also: {first_few(unknown)}{hint}")
        if len(set(names)) < len(names):
            self.faults.add(location, "Expected every node once")
        return names

    def indices(self, location: Location, text: str) -> tuple[int, ...] | None:
        """Return the indices of an array, or None for a text that has none."""
        indices = self.faults.parsed(location, partial(parse_indices, limit=self.elements_left), text, None)
        self.elements_left -= len(indices or ())
        return indices

    def request(
        self,
        location: Location,
        written: str | list[dict[str, Any]],
        place: str | None,
        licenses: Mapping[str, int] | None,
        *,
        otherwise: Place | None = None,
    ) -> tuple[Request, Amounts] | None:
        """Read the request at `location`, with the keys ``place`` and ``licenses`` of the job that it belongs to.

        `otherwise`: the place of one that says none.
        """
        if isinstance(written, str):
            parsed = self._parse(written)
            if isinstance(parsed, SyntaxFault):
                self.faults.add_syntax(location, parsed)
                return None
        else:
            request = Request(chunks=kind_of(tuple[Chunk, ...]).read(written, location, self))
            parsed = ParsedRequest(request=request, licenses=Amounts(), has_place=False)
        if parsed.has_place and place is not None:
            self.faults.add(location, "Expected place once, got it in the text and as a key")
        for name in parsed.licenses:
            if licenses is not None and name in licenses:
                self.faults.add(location, f"Expected the licence {name} once, got it in the text and in licenses")
        request, asked, where = parsed.request, parsed.licenses, location
        if place is not None:
            key = location[:-1] if "alternatives" in location else location[:2]
            where = (*key, "place")
            found = self.faults.parsed(where, parse_place, place, Place())
            request = Request(chunks=request.chunks, place=found)
        elif otherwise is not None and not parsed.has_place:
            request = Request(chunks=request.chunks, place=otherwise)
        if request.place.within is not None:
            self.check_known(where, "level of the topology", request.place.within, self.cluster.topology, "licenses")
            self._check_parts(where, request)
        if licenses is not None:
            asked = Amounts({**asked, **frozen_amounts(licenses)})
        return request, asked

    def _check_parts(self, where: Location, request: Request) -> None:
        """Note where a request cannot be in several groups as its place says."""
        place, counts = request.place, [chunk.count for chunk in request.chunks]
        if (place.segment or place.spread) and (place.is_packed or len(counts) > 1):
            message = f"Expected one kind of chunks, not packed, in several groups of {place.within}"
            self.faults.add(where, f"{message}, got {format_place(place)} of {len(counts)} kinds")
        elif place.segment and counts[0] % place.segment:
            self.faults.add(where, f"Expected segments of {place.segment} chunks each, got {counts[0]} chunks")

    def _parse(self, text: str) -> ParsedRequest | SyntaxFault:
        """Read a request's text, each text once: jobs of one user are often alike."""
        if text not in self._parsed:
            try:
                self._parsed[text] = parse_request(text, countable=self.countable)
            except SyntaxFault as error:
                self._parsed[text] = error
        return self._parsed[text]


def cycle_of(after: Mapping[str, Iterable[str]]) -> list[str] | None:
    """Return a cycle of names each of which comes after the next one, from the first of them in `after`; None: none."""
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        # graphlib lists a cycle from predecessor to successor, the first name again at its end
        cycle = error.args[1][:0:-1]
        place = {name: number for number, name in enumerate(after)}
        start = cycle.index(min(cycle, key=place.__getitem__))
        return [*cycle[start:], *cycle[:start]]
    return None


def read_allocation(
    reading: Reading, where: Location, placements: Sequence[Mapping[str, Any]]
) -> tuple[Placement, ...]:
    """Return the amounts held on each node, once for each kind of chunks."""
    seen: set[tuple[str, int | None]] = set()
    read = []
    for index, held in enumerate(placements):
        node, chunk, resources = held["node"], held.get("chunk"), frozen_amounts(held["resources"])
        if (node, chunk) in seen:
            of_kind = "" if chunk is None else f" for each kind of its chunks, got chunks of kind {chunk} on"
            message = f"Expected every node once{of_kind or ', got'} {shown(node)} twice"
            reading.faults.add((*where, index, "node"), message)
        seen.add((node, chunk))
        if not resources:
            reading.faults.add((*where, index, "resources"), "Expected at least one unit on the node, got none")
        read.append(Placement(node=node, resources=resources, chunk=chunk, count=held.get("count")))
    return tuple(read)
