"""Files of settings, TOML read by pydantic models: those of sites, servers and campaigns."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from cpsched.formats.faults import Faults, Location, shown
from cpsched.formats.toml import load_toml

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

#: The type of faults that pydantic has no words for.
_REFUSAL = "document"
#: What pydantic puts into locations though it is not in the document: branches of unions, and keys of dictionaries.
_NO_KEYS = frozenset({"<memory>", "<files>", "<slurm>", "<name>", "<one>", "<list>", "<number>", "[key]"})
#: The keys of seconds that messages say the unit of.
_SECONDS = frozenset({"expected_wait", "seconds"})


class _NotNull:
    """Marks a key that may be left out, but not be null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"expected an optional type, got {source}")
        inner: CoreSchema = schema["schema"]
        return inner


Omittable = Annotated[T | None, _NotNull()]


class DocumentModel(BaseModel):
    """An object of a document: no unknown keys, nothing converted."""

    # Built when first used: the command line starts without them.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def refusal(message: str) -> PydanticCustomError:
    """Return the error by which a validator refuses an object with this message."""
    return PydanticCustomError(_REFUSAL, "{message}", {"message": message})


def keys_of_models(names: Mapping[str, object]) -> tuple[str, ...]:
    """Return every key that a document may have somewhere, given the names of the module with its models."""
    models = [value for value in names.values() if isinstance(value, type) and issubclass(value, DocumentModel)]
    return tuple(dict.fromkeys(field.alias or key for model in models for key, field in model.model_fields.items()))


def read_settings(path: Path, model: type[M], keys: Collection[str], *, table: str | None = None) -> tuple[M, Faults]:
    """Read a file of settings by its model.

    Raises `DocumentError` as `load_toml`, or with everything that does not fit the model.

    `path`: the TOML file. `model`: the model of the whole file, or of one of its tables. `keys`: candidates for unknown
    keys, by `keys_of_models`. `table`: the name of that table; None: the whole file. Returns the settings, and where
    more that is wrong with them can be noted.
    """
    document = load_toml(path)
    faults = Faults(document)
    try:
        return model.model_validate(document if table is None else document.get(table, {})), faults
    except ValidationError as error:
        add_shape(faults, error, keys, at=() if table is None else (table,))
        faults.refuse(str(path))


def add_shape(
    faults: Faults,
    error: ValidationError,
    keys: Collection[str],
    *,
    at: Location = (),
    without: Collection[object] = (),
) -> tuple[Location, ...]:
    """Note all that pydantic refused of the part `at` a location.

    `error`: the error of pydantic. `keys`: candidates for unknown keys. `at`: the location of the checked part in the
    document. `without`: keys that were left out of the checked part: their absence is no fault. Returns where the
    faults are, seen from `at`.
    """
    locations: list[Location] = []
    for detail in error.errors(include_url=False):
        location = tuple(part for part in detail["loc"] if part not in _NO_KEYS)
        if location and location[0] in without:
            continue
        if detail["type"] == "extra_forbidden":
            message = f"unknown key{faults.suggestion(str(location[-1]), keys)}"
        else:
            message = _shape_message(faults, detail, location)
        faults.add((*at, *location), message)
        locations.append(location)
    return tuple(locations)


def _shape_message(faults: Faults, detail: ErrorDetails, location: Location) -> str:
    """Return the expected and the actual value of a pydantic error, in our words."""
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    got = "a table" if isinstance(value, dict) else shown(value)
    of_unit = " (seconds)" if location and location[-1] in _SECONDS else ""
    if kind == "missing":
        return "Expected this key, got nothing"
    if kind in _MAPPINGS:
        return f"Expected a table, got {got}"
    if kind in _KINDS:
        return f"Expected {_KINDS[kind]}{of_unit}, got {got}"
    if kind in _BOUNDS:
        key, sign = _BOUNDS[kind]
        noun = "a number" if isinstance(context[key], float) else "an integer"
        return f"Expected {noun} {sign} {context[key]}{of_unit}, got {got}"
    if kind == "literal_error":
        hint = faults.suggestion(value, _QUOTED.findall(context["expected"])) if isinstance(value, str) else ""
        return f"Expected {context['expected']}, got {got}{hint}"
    if kind in ("too_short", "string_too_short"):
        return f"Expected at least {context['min_length']} {_counted(kind)}, got {_length(detail['input'])}"
    if kind in ("too_long", "string_too_long"):
        return f"Expected at most {context['max_length']} {_counted(kind)}, got {_length(detail['input'])}"
    return str(detail["msg"])


_KINDS = {
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "string_unicode": "valid Unicode",
    "invalid_key": "a text as key",
    "bool_type": "true or false",
    "list_type": "a list",
    "string_pattern_mismatch": "a text without control characters",
}
_QUOTED = re.compile("'([^']*)'")
_MAPPINGS = frozenset({"dict_type", "model_type", "model_attributes_type"})
_BOUNDS = {"greater_than": ("gt", ">"), "greater_than_equal": ("ge", ">="), "less_than_equal": ("le", "<=")}
_BOUNDS |= {"less_than": ("lt", "<")}


def _counted(kind: str) -> str:
    return "characters" if kind.startswith("string") else "entries"


def _length(value: object) -> int | str:
    return len(value) if isinstance(value, str | Sequence | dict) else shown(value)
