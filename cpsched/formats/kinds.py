"""From annotated nouns to documents: every kind of value is checked, read, written and described here.

`kind_of` derives the kind of a field from its type and its annotations (`cpsched.domain.annotations`), and that of a
noun from its fields. What documents say of a noun by other keys than its fields is declared in a `Form`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import cache, cached_property
from math import isfinite
from operator import ge, gt, le, lt
from sys import float_info
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from cpsched.arguments import Limits
from cpsched.domain import Bounds, Check, Entries, FrozenMap, Key, Letters, Resource, Several, Written
from cpsched.formats.faults import Faults, Location, shown

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


_HOLDS = {"<=": le, "<": lt, ">": gt, ">=": ge}


class Kind:
    """A kind of values in documents."""

    #: How a value is read: what the document has, where, and in which `Reading`. None: as it is.
    read: Callable[[Any, Location, Any], Any] | None = None
    #: How a value is written, and in which context. None: as it is.
    write: Callable[[Any, Any], Any] | None = None

    def accepts(self, value: Any) -> bool:
        """Tell whether a value is of this kind: a fast way, for documents in which all is well."""
        raise NotImplementedError

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        """Note all that is wrong with a value that is not accepted."""
        raise NotImplementedError

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema; those of nouns are put into `named`."""
        raise NotImplementedError


class _Anything(Kind):
    """A value that is checked elsewhere."""

    def accepts(self, value: Any) -> bool:
        return True

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {}


class _Truth(Kind):
    """true or false."""

    def accepts(self, value: Any) -> bool:
        return value is True or value is False

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        faults.add(at, f"Expected true or false, got {shown(value)}")

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "boolean"}


class Number(Kind):
    """A number within bounds; the bounds `above` and `below` are none of the numbers."""

    def __init__(self, bounds: Bounds, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._types = (int,) if is_whole else (int, float)
        self._unit = bounds.unit
        tests = (("<=", bounds.most), ("<", bounds.below), (">", bounds.above), (">=", bounds.least))
        self._tests = {sign: limit for sign, limit in tests if limit is not None}
        self._most = max((self._tests[sign] for sign in ("<=", "<") if sign in self._tests), default=float_info.max)
        self._least = min((self._tests[sign] for sign in (">=", ">") if sign in self._tests), default=-float_info.max)
        self._outside = (bounds.above, bounds.below)
        self.read = None if is_whole else lambda value, at, reading: float(value)

    def accepts(self, value: Any) -> bool:
        return (
            isinstance(value, self._types)
            and value.__class__ is not bool
            and self._least <= value <= self._most
            and value not in self._outside
        )

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        unit = self._unit or ("MiB" if at and at[-1] == "mem" else "")
        of_unit = f" ({unit})" if unit else ""
        noun = "an integer" if self._is_whole else "a number"
        if isinstance(value, self._types) and not isinstance(value, bool):
            broken = [one for one in self._tests.items() if not _HOLDS[one[0]](value, one[1])]
            if isinstance(value, int) or isfinite(value):
                noun += "".join(f" {sign} {limit if self._is_whole else float(limit)}" for sign, limit in broken)
            else:
                noun = "a finite number"
        faults.add(at, f"Expected {noun}{of_unit}, got {shown(value)}")

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        words = {">": "exclusiveMinimum", ">=": "minimum", "<=": "maximum", "<": "exclusiveMaximum"}
        kind = "integer" if self._is_whole else "number"
        return {"type": kind} | {words[sign]: limit for sign, limit in self._tests.items()}


class _Text(Kind):
    """A text without control characters."""

    def __init__(self, letters: Letters, resource: Resource | None) -> None:
        self._least, self._most = letters.least, letters.most
        if resource is not None:
            self.read = lambda value, at, reading: reading.resource(at, value, resource.also)

    def accepts(self, value: Any) -> bool:
        return (
            isinstance(value, str)
            and self._least <= len(value)
            and (self._most is None or len(value) <= self._most)
            and (value.isprintable() or _CONTROL.search(value) is None)
        )

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        got = shown(value)
        if not isinstance(value, str):
            message = f"Expected a text, got {got}"
        elif _SURROGATE.search(value):
            message = f"Expected valid Unicode, got {got}"
        elif len(value) < self._least:
            message = f"Expected at least {self._least} characters, got {len(value)}"
        elif self._most is not None and len(value) > self._most:
            message = f"Expected at most {self._most} characters, got {len(value)}"
        else:
            message = f"Expected a text without control characters, got {got}"
        faults.add(at, message)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        bounds = {"minLength": self._least or None, "maxLength": self._most}
        found = {key: value for key, value in bounds.items() if value is not None}
        pattern = r"^[^\x00-\x1f\x7f-\x9f]" + ("+$" if self._least else "*$")
        return {"type": "string", "pattern": pattern} | found


class Choice(Kind):
    """One of some words, each of which says a value."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members
        words = {member: word for word, member in members.items()}
        self.read = lambda value, at, reading: members[value]
        self.write = lambda value, writing: words.get(value)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self._members

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        *words, last = map(repr, self._members)
        expected = f"{', '.join(words)} or {last}" if words else last
        hint = faults.suggestion(value, list(self._members)) if isinstance(value, str) else ""
        faults.add(at, f"Expected {expected}, got {shown(value)}{hint}")

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        words = list(self._members)
        return {"type": "string"} | ({"const": words[0]} if len(words) == 1 else {"enum": words})


class Listed(Kind):
    """A list of values of one kind."""

    def __init__(self, inner: Kind, least: int = 0) -> None:
        self._inner, self._least = inner, least
        self._accepts = inner.accepts

    def read(self, value: Any, at: Location, reading: Any) -> tuple[Any, ...]:
        """Return the entries."""
        read = self._inner.read
        if read is None:
            return tuple(value)
        if reading is None or at not in reading.places:
            return tuple(read(one, (*at, index), reading) for index, one in enumerate(value))
        return tuple(read(one, reading.location(at, index), reading) for index, one in enumerate(value))

    def write(self, value: Any, writing: Any) -> list[Any]:
        """Return the entries as a document has them."""
        write = self._inner.write
        return list(value) if write is None else [write(one, writing) for one in value]

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) >= self._least and all(map(self._accepts, value))

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        if not isinstance(value, list):
            return faults.add(at, f"Expected a list, got {shown(value)}")
        if len(value) < self._least:
            return faults.add(at, f"Expected at least {self._least} entries, got {len(value)}")
        for index, one in enumerate(value):
            if faults.has_more:
                break  # a million empty objects lack more than anybody reads
            if not self._accepts(one):
                self._inner.explain(one, (*at, index), faults)
        return None

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        least = {"minItems": self._least} if self._least else {}
        return {"type": "array", "items": self._inner.schema(named)} | least


class _Some(Listed):
    """A list of values of one kind, or one of them by itself."""

    def read(self, value: Any, at: Location, reading: Any) -> tuple[Any, ...]:
        return super().read(value if isinstance(value, list) else [value], at, reading)

    def accepts(self, value: Any) -> bool:
        return super().accepts(value) if isinstance(value, list) else self._accepts(value)

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        return super().explain(value, at, faults) if isinstance(value, list) else self._inner.explain(value, at, faults)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [self._inner.schema(named), super().schema(named)]}


class Mapped(Kind):
    """An object whose keys are free."""

    def __init__(self, key: Kind, inner: Kind, least: int = 0) -> None:
        self._key, self._inner, self._least = key, inner, least

    def read(self, value: Any, at: Location, reading: Any) -> FrozenMap[Any, Any]:
        """Return the pairs."""
        read_key, read = self._key.read, self._inner.read
        if read_key is None and read is None:
            return FrozenMap(value)
        pairs = {}
        for key, one in value.items():
            here = (*at, key)
            pairs[key if read_key is None else read_key(key, here, reading)] = (
                one if read is None else read(one, here, reading)
            )
        return FrozenMap(pairs)

    def write(self, value: Any, writing: Any) -> dict[str, Any]:
        """Return the pairs as a document has them."""
        write_key, write = self._key.write, self._inner.write
        if write_key is None and write is None:
            return dict(value)
        return {
            key if write_key is None else write_key(key, writing): one if write is None else write(one, writing)
            for key, one in value.items()
        }

    def accepts(self, value: Any) -> bool:
        return (
            isinstance(value, dict)
            and len(value) >= self._least
            and all(map(self._key.accepts, value))
            and all(map(self._inner.accepts, value.values()))
        )

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        if not isinstance(value, dict):
            return faults.add(at, f"Expected an object, got {shown(value)}")
        if len(value) < self._least:
            return faults.add(at, f"Expected at least {self._least} entries, got {len(value)}")
        for key, one in value.items():
            if not self._key.accepts(key):
                self._key.explain(key, (*at, key), faults)
            if not self._inner.accepts(one):
                self._inner.explain(one, (*at, key), faults)
        return None

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        least = {"minProperties": self._least} if self._least else {}
        names = {key: value for key, value in self._key.schema(named).items() if key != "type"}
        return {"type": "object", "additionalProperties": self._inner.schema(named), "propertyNames": names} | least


class Either(Kind):
    """A text of one kind, or a value of another kind that is no text; with `listed`, or a list."""

    def __init__(self, text: Kind, other: Kind, listed: Kind | None = None) -> None:
        self._text, self._other, self._listed = text, other, listed

    def _of(self, value: Any) -> Kind:
        if isinstance(value, list) and self._listed is not None:
            return self._listed
        return self._text if isinstance(value, str) else self._other

    def accepts(self, value: Any) -> bool:
        return self._of(value).accepts(value)

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        self._of(value).explain(value, at, faults)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        kinds = (self._text, self._other, self._listed)
        return {"oneOf": [kind.schema(named) for kind in kinds if kind is not None]}


class _Nullable(Kind):
    """A value, or null."""

    def __init__(self, inner: Kind) -> None:
        self._inner = inner
        read, write = inner.read, inner.write
        if read is not None:
            self.read = lambda value, at, reading: None if value is None else read(value, at, reading)
        if write is not None:
            self.write = lambda value, writing: None if value is None else write(value, writing)

    def accepts(self, value: Any) -> bool:
        return value is None or self._inner.accepts(value)

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        self._inner.explain(value, at, faults)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [self._inner.schema(named), {"type": "null"}]}


class Spelt(Kind):
    """A value with a notation of its own, checked as another kind is."""

    def __init__(self, inner: Kind, read: Any, write: Any) -> None:
        self._inner, self.read, self.write = inner, read, write
        self.accepts, self.explain = inner.accepts, inner.explain  # type: ignore[method-assign]  # the inner kind answers
        self.schema = inner.schema  # type: ignore[method-assign]


class _Checked(Kind):
    """A value that is right only if another check finds nothing wrong with it."""

    def __init__(self, inner: Kind, wrong: Callable[[Any], str | None]) -> None:
        self._inner, self._wrong = inner, wrong
        self.read, self.write, self.schema = inner.read, inner.write, inner.schema  # type: ignore[method-assign]  # the inner kind answers

    def accepts(self, value: Any) -> bool:
        return self._inner.accepts(value) and self._wrong(value) is None

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        if self._inner.accepts(value):
            faults.add(at, str(self._wrong(value)))
        else:
            self._inner.explain(value, at, faults)


class _Variant(Kind):
    """One of several nouns, told by the word of the key ``kind``; the first one where it is none of theirs."""

    def __init__(self, nouns: "list[Object]") -> None:
        self._nouns = nouns

    def _of(self, value: Any) -> "Object":
        is_this = (noun for noun in self._nouns if isinstance(value, dict) and noun.is_right(value, "kind"))
        return next(is_this, self._nouns[0])

    def read(self, value: Any, at: Location, reading: Any) -> Any:
        return self._of(value).read(value, at, reading)

    def write(self, value: Any, writing: Any) -> Any:
        noun: Any = type(value)
        return kind_of(noun).write(value, writing)

    def accepts(self, value: Any) -> bool:
        return self._of(value).accepts(value)

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        self._of(value).explain(value, at, faults)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"oneOf": [noun.schema(named) for noun in self._nouns]}


@dataclass(kw_only=True)
class Form:
    """What documents say of a noun by other keys than its fields, and what lies between its keys."""

    #: In place of a field: the keys that say it, with their types; `read` and `write` know what they mean.
    instead: Mapping[str, Mapping[str, Any]] | None = None
    #: More keys, which are no fields.
    also: Mapping[str, Any] | None = None
    #: Fields that no document has.
    without: tuple[str, ...] = ()
    #: Says what is wrong between the keys of an object, each of which is right by itself.
    rule: Callable[[Mapping[str, Any]], str | None] | None = None
    #: Makes the noun: of the reading, the place, the keys, and the fields that the keys say.
    read: Callable[[Any, Location, Mapping[str, Any], dict[str, Any]], Any] | None = None
    #: Returns those keys that say something else than a field: None leaves a key out.
    write: Callable[[Any, Any], Mapping[str, Any]] | None = None


_NOTHING: dict[str, Any] = {}
#: By noun.
FORMS: dict[Any, Form] = {}
#: By the name that an annotation gives, or by type: makes the kind.
NOTATIONS: dict[Any, Callable[[], Kind]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A key of an object."""

    key: str
    #: The field that it says, or None where the form knows what it means.
    field: str | None
    kind: Kind
    about: Key
    is_needed: bool
    default: Any


class Object(Kind):
    """An object with known keys: a noun, or a part of a document that is none."""

    def __init__(self, name: str, says: str, entries: list[_Entry], form: Form, noun: Any = None) -> None:
        self._name, self._says, self._form, self._noun = name, says, form, noun
        self._entries = {entry.key: entry for entry in entries}
        self._accepts = {entry.key: entry.kind.accepts for entry in entries}
        self._needed = frozenset(entry.key for entry in entries if entry.is_needed)
        self._reads = {entry.key: (entry.field, entry.kind.read) for entry in entries if entry.field is not None}
        self._writes = [
            (
                entry.key,
                entry.field,
                MISSING if entry.about.is_always or entry.about.is_needed else entry.default,
                entry.kind.write,
            )
            for entry in entries
        ]

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        accepts = self._accepts
        for key, one in value.items():
            accept = accepts.get(key)
            if accept is None or not accept(one):
                return False
        rule = self._form.rule
        return self._needed <= value.keys() and (rule is None or rule(value) is None)

    def explain(self, value: Any, at: Location, faults: Faults) -> None:
        if not isinstance(value, dict):
            return faults.add(at, f"Expected an object, got {shown(value)}")
        is_right = self._needed <= value.keys()
        for key, one in value.items():
            entry = self._entries.get(key)
            if not isinstance(key, str):
                faults.add((*at, key), f"Expected a text as key, got {shown(key)}")
            elif entry is None:
                faults.add((*at, key), f"unknown key{faults.suggestion(key)}")
            elif not entry.kind.accepts(one):
                entry.kind.explain(one, (*at, key), faults)
            else:
                continue
            is_right = False
        for key in (key for key, entry in self._entries.items() if entry.is_needed and key not in value):
            faults.add((*at, key), "Expected this key, got nothing")
        if is_right and self._form.rule is not None:
            faults.add(at, str(self._form.rule(value)))
        return None

    def read(self, value: Any, at: Location, reading: Any) -> Any:
        """Return the noun, or None where its form finds faults that leave none."""
        said = {}
        for key, one in value.items():
            field, read = self._reads.get(key, (None, None))
            if field is not None:
                said[field] = one if read is None else read(one, (*at, key), reading)
        return self._noun(**said) if self._form.read is None else self._form.read(reading, at, value, said)

    def write(self, value: Any, writing: Any) -> dict[str, Any]:
        """Return the object as a document has it."""
        written = {}
        otherwise = _NOTHING if self._form.write is None else self._form.write(value, writing)
        for key, field, default, write in self._writes:
            if key in otherwise:
                if otherwise[key] is not None:
                    written[key] = otherwise[key]
            elif field is not None:
                one = getattr(value, field)
                if default is MISSING or (one is not default and one != default):
                    written[key] = one if write is None else write(one, writing)
        return written

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        if self._name not in named:
            named[self._name] = {}
            needed = [entry.key for entry in self._entries.values() if entry.is_needed]
            named[self._name] |= ({"required": needed} if needed else {}) | {
                "type": "object",
                "description": self._says,
                "properties": {key: self._described(entry, named) for key, entry in self._entries.items()},
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{self._name}"}

    def _described(self, entry: _Entry, named: dict[str, Any]) -> dict[str, Any]:
        found = entry.kind.schema(named)
        if entry.about.says:
            found |= {"description": entry.about.says}
        if entry.about.examples:
            found |= {"examples": list(entry.about.examples)}
        if not entry.is_needed and entry.default is not None:
            default = entry.default if entry.kind.write is None else entry.kind.write(entry.default, None)
            found |= {} if default is None else {"default": default}
        return found

    def is_right(self, value: Mapping[str, Any], key: str) -> bool:
        """Tell whether a key of an object is there, and right by itself."""
        return key in value and key in self._accepts and self._accepts[key](value[key])

    def sound(self, value: Any, at: Location, faults: Faults, otherwise: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return those keys of an object which are right by themselves, beside others for those that are not.

        None where they make no sense without the others; what is wrong between them is noted.
        """
        left = {**otherwise, **{key: value[key] for key in value if self.is_right(value, key)}}
        said = None if self._form.rule is None else self._form.rule(left)
        if said is not None:
            faults.add(at, said)
        return left if said is None and self._needed <= left.keys() else None

    def ordered(self, value: Any) -> dict[str, Any]:
        """Return an object with its keys in the order of the fields."""
        return {key: value[key] for key in self._entries if key in value}

    @cached_property
    def all_keys(self) -> tuple[str, ...]:
        """All keys of objects of this kind and of what they are made of, each once."""
        named: dict[str, Any] = {}
        self.schema(named)
        return tuple(dict.fromkeys(key for one in named.values() for key in one["properties"]))


def schema_of(kind: Object) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document."""
    named: dict[str, Any] = {}
    root: dict[str, Any] = named[kind.schema(named)["$ref"].rpartition("/")[2]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": named} | root


class _Inside(Object):
    """A value that is the only key of an object."""

    def __init__(self, name: str, key: Key, inner: Kind) -> None:
        self._key, self._value = str(key.inside), inner
        entry = _Entry(key=self._key, field=None, kind=inner, about=key, is_needed=True, default=MISSING)
        super().__init__(name, key.says, [entry], Form())

    def read(self, value: Any, at: Location, reading: Any) -> Any:
        read, one = self._value.read, value[self._key]
        return one if read is None else read(one, (*at, self._key), reading)

    def write(self, value: Any, writing: Any) -> dict[str, Any]:
        return {self._key: value if self._value.write is None else self._value.write(value, writing)}


@cache
def kind_of(hint: Any) -> Any:
    """Return the kind of the values of a type, with its annotations; that of a noun is an `Object`."""
    base, notes = _unfolded(hint)
    kind = _plain_kind(base, notes)
    return _Checked(kind, notes[Check].wrong) if Check in notes else kind


def _plain_kind(base: Any, notes: dict[type, Any]) -> Any:
    notation = notes[Written].notation if Written in notes else base
    least = notes[Entries].least if Entries in notes else 0
    origin, inner = get_origin(base), get_args(base)
    if notation in NOTATIONS:
        return NOTATIONS[notation]()
    if base in (int, float):
        limits = notes.get(Limits)
        bounds = notes.get(Bounds, Bounds())
        bounds = bounds if limits is None else Bounds(limits.least, limits.most, unit=limits.unit)
        return Number(bounds, is_whole=base is int)
    if base is str:
        return _Text(notes.get(Letters, Letters()), notes.get(Resource))
    if base is bool:
        return _Truth()
    if base is Any:
        return _Anything()
    if origin is Literal:
        return Choice({word: word for word in inner})
    if origin is tuple:
        return (_Some if Several in notes else Listed)(kind_of(inner[0]), least)
    if origin is FrozenMap:
        return Mapped(kind_of(inner[0]), kind_of(inner[1]), least)
    if origin in (Union, UnionType):
        texts = [kind_of(one) for one in inner if _unfolded(one)[0] is str]
        others = [kind_of(one) for one in inner if _unfolded(one)[0] is not str]
        return Either(*texts, *others) if texts else _Variant(others)
    if issubclass(base, StrEnum):
        return Choice({str(member): member for member in base})
    return _noun(base)


def _noun(noun: Any) -> Object:
    """Return the kind of a noun: its fields in their order, or the keys that its form has in place of one."""
    form = FORMS.get(noun, Form())
    hints = get_type_hints(noun, include_extras=True)
    entries: list[_Entry] = []
    for field in fields(noun):
        if field.name in form.without:
            continue
        instead = (form.instead or {}).get(field.name)
        if instead is not None:
            entries += (_entry(key, None, hint, MISSING) for key, hint in instead.items())
            continue
        default = field.default if field.default_factory is MISSING else field.default_factory()
        entries.append(_entry(field.name, field.name, hints[field.name], default))
    entries += (_entry(key, None, hint, MISSING) for key, hint in (form.also or {}).items())
    return Object(noun.__name__, (noun.__doc__ or "").partition("\n\n")[0].replace("\n    ", " "), entries, form, noun)


def object_of(name: str, says: str, keys: Mapping[str, Any], form: Form | None = None) -> Object:
    """Return the kind of an object that is no noun, by its keys with their types."""
    return Object(name, says, [_entry(key, None, hint, MISSING) for key, hint in keys.items()], form or Form())


def _entry(name: str, field: str | None, hint: Any, default: Any) -> _Entry:
    """Return the entry of a field, or of a key by itself, which may be left out if its type has None."""
    if isinstance(hint, Kind):
        return _Entry(key=name, field=field, kind=hint, about=Key(), is_needed=True, default=default)
    _, notes = _unfolded(hint)
    about = notes.get(Key, Key())
    kind, key = kind_of(hint), about.name or name
    if about.inside is not None:
        kind = _Inside(key.capitalize(), about, kind)
    if field is None and _may_be_none(hint):
        default = None
    is_needed = about.is_needed or default is MISSING
    return _Entry(
        key=key,
        field=field,
        kind=_Nullable(kind) if about.is_nullable else kind,
        about=about,
        is_needed=is_needed,
        default=default,
    )


def _may_be_none(hint: Any) -> bool:
    while get_origin(hint) is Annotated:
        hint = hint.__origin__
    return get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)


def _unfolded(hint: Any) -> tuple[Any, dict[type, Any]]:
    """Return a type without None and annotations, and the annotations by their types: the outermost of each counts."""
    notes: dict[type, Any] = {}
    while True:
        if get_origin(hint) is Annotated:
            notes = {type(note): note for note in hint.__metadata__} | notes
            hint = hint.__origin__
        elif get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
            hint = Union[tuple(one for one in get_args(hint) if one is not NoneType)]  # noqa: UP007 - of any number
        else:
            return hint, notes
