"""The state of reading one instance: its faults, its names, and the requests read so far."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cpsched.domain import Amounts, Chunk, FrozenMap, Place, Placement, Request
from cpsched.errors import Fault, SyntaxFault
from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.instance_model import ChunkModel, PlacementModel
from cpsched.formats.notations import MAX_ARRAY, parse_place
from cpsched.formats.request_text import ParsedRequest, parse_request

__all__ = ["Reading", "frozen_amounts", "read_allocation"]


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
    #: The location in the document of each entry that is left of a section.
    positions: Mapping[str, list[int]]
    #: All countable resources.
    countable: Collection[str]
    #: The licences, which may be limited or pooled too.
    licenses: Mapping[str, int]
    has_epoch: bool
    #: Jobs whose running part is given in segments.
    segmented: Collection[Location]
    #: The number of further array elements that the document may have.
    elements_left: int = MAX_ARRAY
    _parsed: dict[str, ParsedRequest | SyntaxFault] = field(default_factory=dict)

    def location(self, section: str, index: int) -> Location:
        """Return the location of entry `index` of a section in the document."""
        return (section, self.positions[section][index])

    def check_known(self, location: Location, noun: str, name: str, known: Collection[str], section: str) -> bool:
        """Note a fault unless `name` is known, or the section that declares it was refused in part."""
        if name in known:
            return True
        if section not in self.incomplete:
            self.faults.add_unknown(location, noun, name, known)
        return False

    def check_resource(self, location: Location, name: str, *, also: Collection[str] = ()) -> None:
        """Note a fault unless `name` is a countable resource, or one of the names in `also`."""
        if not {"nodes", "licenses"} & set(self.incomplete):
            self.check_known(location, "resource", name, [*self.countable, *also], "nodes")

    def request(
        self, location: Location, written: str | list[ChunkModel], place: str | None, licenses: Mapping[str, int] | None
    ) -> tuple[Request, Amounts] | None:
        """Read the request at `location`, with the keys ``place`` and ``licenses`` of the job that it belongs to."""
        if isinstance(written, str):
            parsed = self._parse(written)
            if isinstance(parsed, SyntaxFault):
                self.faults.add_syntax(location, parsed)
                return None
        else:
            request = Request(chunks=tuple(map(_read_chunk, written)))
            parsed = ParsedRequest(request=request, licenses=Amounts(), has_place=False)
        if parsed.has_place and place is not None:
            self.faults.add(location, "Expected place once, got it in the text and as a key")
        for name in parsed.licenses:
            if licenses is not None and name in licenses:
                self.faults.add(location, f"Expected the licence {name} once, got it in the text and in licenses")
        request, asked = parsed.request, parsed.licenses
        if place is not None:
            request = Request(chunks=request.chunks, place=self.place((*location[:2], "place"), place))
        if licenses is not None:
            asked = Amounts({**asked, **frozen_amounts(licenses)})
        return request, asked

    def place(self, location: Location, text: str) -> Place:
        """Read a place; one with a fault counts as the default."""
        try:
            return parse_place(text)
        except SyntaxFault as error:
            self.faults.add_syntax(location, error)
            return Place()

    def _parse(self, text: str) -> ParsedRequest | SyntaxFault:
        """Read a request's text, each text once: jobs of one user are often alike."""
        if text not in self._parsed:
            try:
                self._parsed[text] = parse_request(text, countable=self.countable)
            except SyntaxFault as error:
                self._parsed[text] = error
        return self._parsed[text]


def _read_chunk(model: ChunkModel) -> Chunk:
    return Chunk(count=model.count, resources=frozen_amounts(model.resources), where=FrozenMap(model.where))


def read_allocation(reading: Reading, where: Location, models: Sequence[PlacementModel]) -> tuple[Placement, ...]:
    """Return the amounts held on each node, once for each kind of chunks."""
    seen: set[tuple[str, int | None]] = set()
    for index, model in enumerate(models):
        if (model.node, model.chunk) in seen:
            of_kind = (
                "" if model.chunk is None else f" for each kind of its chunks, got chunks of kind {model.chunk} on"
            )
            message = f"Expected every node once{of_kind or ', got'} {shown(model.node)} twice"
            reading.faults.add((*where, index, "node"), message)
        seen.add((model.node, model.chunk))
        if not any(model.resources.values()):
            reading.faults.add((*where, index, "resources"), "Expected at least one unit on the node, got none")
    return tuple(
        Placement(node=model.node, resources=frozen_amounts(model.resources), chunk=model.chunk, count=model.count)
        for model in models
    )
