"""A noun with annotated fields is all that its document needs: it is checked, written, read and described from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest

from cpsched.domain import Bounds, Duration, Entries, FrozenMap, Has, Key, Name
from cpsched.formats.faults import Faults
from cpsched.formats.kinds import FORMS, Form, kind_of


class Colour(StrEnum):
    """An enumeration of the documents here."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A noun in a noun."""

    length: Duration
    share: Annotated[float, Bounds(above=0, most=1)] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A noun.

    Of which only the first sentence is in its description.
    """

    id: Annotated[Name, Key("Unique")]
    of: Annotated[Colour | None, Key("Its colour", name="colour")] = None
    parts: Annotated[tuple[Part, ...], Entries(1)] = ()
    has: Annotated[Has, Key(name="amounts")] = FrozenMap()
    most: Annotated[int | None, Bounds(0, below=9), Key(inside="items")] = None
    limit: Annotated[int | None, Bounds(0, 9), Key(is_nullable=True)] = 1
    #: Of this there is nothing in documents.
    secret: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What is left, told from a part by its kind."""

    kind: Annotated[Literal["rest"], Key(is_needed=True)] = "rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """A noun with entries of two nouns."""

    entries: tuple[Part | Rest, ...] = ()


FORMS[Thing] = Form(
    without=("secret",),
    rule=lambda thing: "Expected no limit without parts" if "limit" in thing and "parts" not in thing else None,
)

WHOLE = Thing(
    id="a",
    of=Colour.BLUE,
    parts=(Part(length=5), Part(length=7, share=0.5)),
    has=FrozenMap({"cores": 0}),
    most=3,
    limit=None,
)
WRITTEN = {
    "id": "a",
    "colour": "blue",
    "parts": [{"length": 5}, {"length": 7, "share": 0.5}],
    "amounts": {"cores": 0},
    "most": {"items": 3},
    "limit": None,
}


@pytest.mark.parametrize(("thing", "document"), [(Thing(id="a"), {"id": "a"}), (WHOLE, WRITTEN)])
def test_what_is_written_is_read(thing: Thing, document: dict[str, Any]) -> None:
    """Defaults are left out, names of keys are those of the annotations, and the way back leads to the same noun."""
    kind = kind_of(Thing)
    assert kind.write(thing, None) == document
    assert kind.accepts(document)
    assert kind.read(document, (), None) == thing


def test_entries_of_several_nouns_are_told_by_their_kind() -> None:
    """Each is read and written as what it is, and one of no kind as the first noun."""
    kind, document = kind_of(Mixture), {"entries": [{"length": 5}, {"kind": "rest"}]}
    mixture = Mixture(entries=(Part(length=5), Rest()))
    assert kind.accepts(document)
    assert not kind.accepts({"entries": [{"kind": "other"}]})
    assert kind.read(document, (), None) == mixture
    assert kind.write(mixture, None) == document


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({"id": ""}, ["id: Expected at least 1 characters, got 0"]),
        ({"colour": "BLUE"}, ["colour: Expected 'red' or 'blue', got \"BLUE\", did you mean blue?"]),
        ({"colour": None}, ["colour: Expected 'red' or 'blue', got null"]),
        ({"parts": []}, ["parts: Expected at least 1 entries, got 0"]),
        (
            {"parts": [{"length": 0, "shrae": 1}, {"share": 0}]},
            [
                "parts[0].length: Expected an integer > 0 (seconds), got 0",
                "parts[0].shrae: unknown key, did you mean share?",
                "parts[1].share: Expected a number > 0.0, got 0",
                "parts[1].length: Expected this key, got nothing",
            ],
        ),
        ({"most": {"items": 9}}, ["most.items: Expected an integer < 9, got 9"]),
        ({"most": 3}, ["most: Expected an object, got 3"]),
        ({"amounts": {"a\n": True}}, [r"amounts.a\n: Expected a text without control characters, got", "amounts.a"]),
        ({"secret": 5}, ["secret: unknown key"]),
        ({"limit": 3}, ["document: Expected no limit without parts"]),
    ],
)
def test_what_is_wrong_is_said_all_at_once(change: dict[str, Any], faults: list[str]) -> None:
    """Each fault has its path, in the order of the document; rules count where all keys are right by themselves."""
    kind, document = kind_of(Thing), {"id": "a"} | change
    assert not kind.accepts(document)
    found = Faults(document, kind.all_keys)
    kind.explain(document, (), found)
    said = [found.fault(*one) for one in found.ordered()]
    assert len(said) == len(faults)
    assert all(f"{one.path}: {one.message}".startswith(words) for one, words in zip(said, faults, strict=True))


def test_the_schema_says_the_same() -> None:
    """Keys, bounds, defaults and descriptions are those of the annotations."""
    named: dict[str, Any] = {}
    assert kind_of(Thing).schema(named) == {"$ref": "#/$defs/Thing"}
    thing = named["Thing"]
    assert (thing["description"], thing["required"], thing["additionalProperties"]) == ("A noun.", ["id"], False)
    assert list(thing["properties"]) == ["id", "colour", "parts", "amounts", "most", "limit"]
    assert thing["properties"]["colour"]["enum"] == ["red", "blue"]
    assert named["Part"]["properties"]["share"] == {"type": "number", "maximum": 1, "exclusiveMinimum": 0, "default": 1}
