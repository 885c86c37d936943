"""The chunk syntax: worked examples, faults with their caret, and writing as the inverse of reading."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpsched.domain import Amounts, Arrangement, Chunk, FrozenMap, Place, Request
from cpsched.errors import SyntaxFault
from cpsched.formats import format_request, parse_request
from tests.formats.format_documents import requests

COUNTABLE = ("cores", "mem", "gpus", "mics", "fpga")


def test_a_request_with_everything() -> None:
    """Counts, aliases, sizes, properties, place and licences come out as formats.md says (OCCS-17)."""
    parsed = parse_request("5:ncpus=16:mem=12g:net=IB+mics=1:mem=1500k,place=scatter:excl,sw=3", countable=COUNTABLE)
    assert parsed.request == Request(
        chunks=(
            Chunk(count=5, resources=Amounts({"cores": 16, "mem": 12288}), where=FrozenMap({"net": "IB"})),
            Chunk(count=1, resources=Amounts({"mics": 1, "mem": 2})),
        ),
        place=Place(arrangement=Arrangement.SCATTER, exclusive=True),
    )
    assert parsed.licenses == {"sw": 3}
    assert parsed.has_place


@pytest.mark.parametrize(
    ("size", "mebibytes"),
    [("100", 100), ("1k", 1), ("1025kb", 2), ("10g", 10240), ("10GB", 10240), ("2t", 2097152), ("3m", 3)],
)
def test_sizes_are_in_mebibytes_rounded_up(size: str, mebibytes: int) -> None:
    """Base 1024, an optional b, either case; a plain number is MiB."""
    parsed = parse_request(f"ncpus=1:mem={size}", countable=COUNTABLE)
    assert parsed.request.chunks[0].resources["mem"] == mebibytes


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("free", Place()),
        ("excl", Place(exclusive=True)),
        ("exclusive", Place(exclusive=True)),
        ("shared", Place()),
        ("pack:shared", Place(arrangement=Arrangement.PACK)),
    ],
)
def test_either_part_of_a_place_may_stand_alone(place: str, expected: Place) -> None:
    """Arrangement and sharing have their defaults."""
    assert parse_request(f"ncpus=1,place={place}", countable=COUNTABLE).request.place == expected


def test_a_resource_of_zero_is_not_asked_for() -> None:
    """``gpus=0`` leaves no trace in the chunk."""
    assert dict(parse_request("ncpus=1:ngpus=0", countable=COUNTABLE).request.chunks[0].resources) == {"cores": 1}


@pytest.mark.parametrize(
    ("text", "caret", "message"),
    [
        ("", 0, "Expected a name, got the end"),
        ("8:", 2, "Expected a name"),
        ("0:ncpus=1", 0, "Expected 1 to 1000000 chunks, got 0"),
        ("1000001:ncpus=1", 0, "Expected 1 to 1000000"),
        ("8:ncpus", 7, "Expected '='"),
        ("8:ncpus=", 8, "Expected a value"),
        ("8:ncpus=x", 8, "Expected an integer for cores, got 'x'"),
        ("8:ncpus=-1", 8, "Expected an integer for cores"),
        ("8:ncpus=2g", 8, "Expected an integer for cores"),
        ("8:ncpus=2147483648", 8, "Expected at most 2147483647"),
        ("mem=4194304t", 4, "Expected at most 2147483647 of mem"),
        ("ncpus=1:cores=2", 8, "Expected cores once"),
        ("rack=8", 0, "Expected at least one unit"),
        ("ncpus=0", 0, "Expected at least one unit"),
        ("ncpus=1+", 8, "Expected a name"),
        ("ncpus=1,place=spread", 14, "Expected free, pack, scatter"),
        ("ncpus=1,place=pack:alone", 19, "Expected excl"),
        ("ncpus=1,place=free,place=free", 19, "Expected place once"),
        ("ncpus=1,lic=1,lic=2", 14, "Expected lic once"),
        ("ncpus=1,lic=two", 12, "Expected an integer for lic"),
        ("ncpus=1,lic=1:x=2", 13, "Expected ':', '+', ',' or the end"),
        ("ncpus=1 ", 6, "Expected an integer"),
    ],
)
def test_faults_point_at_their_place(text: str, caret: int, message: str) -> None:
    """What is wrong with a request is said with the place in the text."""
    with pytest.raises(SyntaxFault, match="Expected") as caught:
        parse_request(text, countable=COUNTABLE)
    assert message in caught.value.message
    assert caught.value.span[0] == caret


def test_requests_are_written_short() -> None:
    """Aliases and the largest unit without remainder; the default place is left out."""
    text = "8:ncpus=2:mem=10g:rack=8+1:ngpus=1:mem=1500m,place=free:excl"
    assert format_request(parse_request(text, countable=COUNTABLE).request) == text


@given(requests)
def test_writing_is_the_inverse_of_reading(request: Request) -> None:
    """A text that can be written, and names no property like a resource, is read as the same request."""
    try:
        text = format_request(request)
    except ValueError:
        return
    if not any({"ncpus", "cores"} & chunk.where.keys() for chunk in request.chunks):
        assert parse_request(text, countable=COUNTABLE).request == request


@given(st.text(st.sampled_from("1ncpus=:+,place gkb0"), max_size=30) | st.text(max_size=30))
def test_any_text_is_a_request_or_a_fault(text: str) -> None:
    """Nothing but a SyntaxFault leaves the parser."""
    with contextlib.suppress(SyntaxFault):
        assert parse_request(text, countable=COUNTABLE).request.chunks
