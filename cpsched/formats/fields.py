"""The kinds of values that both documents are made of, with the bounds of formats.md, and the base of their models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import WithDefaultSchema

from cpsched.formats.faults import MOST_FAULTS
from cpsched.formats.notations import MAX_AMOUNT, MAX_DURATION, MAX_NAME
from cpsched.formats.request_text import MAX_COUNT

__all__ = [
    "Amount",
    "AmountsField",
    "Count",
    "DocumentModel",
    "Duration",
    "FaultsLeft",
    "ListOf",
    "Name",
    "Number",
    "Omittable",
    "PlanTime",
    "Price",
    "Priority",
    "Text",
    "Time",
    "UnitSeconds",
    "Weight",
    "keys_of_models",
    "refusal",
    "schema_of",
]

_MAX_TIME = 10**12
_MAX_PLAN_TIME = 10**17
_MAX_AREA = 10**18
_MAX_NUMBER = 1e100
#: The type of faults that pydantic has no words for.
_REFUSAL = "document"

T = TypeVar("T")


class _NotNull:
    """Marks a key that may be left out, but not be null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"expected an optional type, got {source}")
        inner: CoreSchema = schema["schema"]
        return inner


Omittable = Annotated[T | None, _NotNull()]


@dataclass
class FaultsLeft:
    """Mutable: how many more faults are looked for in a document; given to a model as its context."""

    count: int = MOST_FAULTS + 1


def _one_by_one(entries: object, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
    """Check a list entry by entry, until the document has faults enough.

    All at once, a million empty objects in a file of some kilobytes would take gigabytes for saying what they lack.
    """
    left = info.context
    if not isinstance(left, FaultsLeft) or not isinstance(entries, list) or len(entries) < 2:
        return check(entries)
    checked: list[object] = []
    refused: list[InitErrorDetails] = []
    for index, entry in enumerate(entries):
        before = left.count
        if before <= 0:
            break
        try:
            checked += check([entry])
        except ValidationError as error:
            details = error.errors(include_url=False)
            left.count = min(left.count, before - len(details))
            refused += [_at(index, detail) for detail in details]
    if refused:
        raise ValidationError.from_exception_data("list", refused)
    return checked


def _at(index: int, detail: ErrorDetails) -> InitErrorDetails:
    """Return the faults of a list of one entry, with the index of the entry in the whole list."""
    kind = refusal(detail["msg"]) if detail["type"] == _REFUSAL else detail["type"]
    return InitErrorDetails(
        type=kind, loc=(index, *detail["loc"][1:]), input=detail["input"], ctx=detail.get("ctx", {})
    )


#: A list of a document.
ListOf = Annotated[list[T], WrapValidator(_one_by_one)]

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
Time = Annotated[int, Field(ge=-_MAX_TIME, le=_MAX_TIME)]
Duration = Annotated[int, Field(gt=0, le=MAX_DURATION)]
Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
AmountsField = dict[Name, Amount]
Count = Annotated[int, Field(gt=0, le=MAX_COUNT)]
Priority = Annotated[int, Field(ge=-MAX_AMOUNT, le=MAX_AMOUNT)]
UnitSeconds = Annotated[int, Field(ge=0, le=_MAX_AREA)]
PlanTime = Annotated[int, Field(ge=-_MAX_PLAN_TIME, le=_MAX_PLAN_TIME)]
Number = Annotated[float, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
Price = Annotated[float, Field(ge=0, le=_MAX_NUMBER)]
Weight = Annotated[float, Field(gt=0, le=_MAX_NUMBER)]


class DocumentModel(BaseModel):
    """An object of a document: no unknown keys, nothing converted."""

    # Built when first used: the command line starts without them.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class _Schema(GenerateJsonSchema):
    """JSON Schema without ``default: null``: a key that is left out is not null."""

    def default_schema(self, schema: WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None and schema["schema"]["type"] != "nullable":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


def refusal(message: str) -> PydanticCustomError:
    """Return the error by which a validator refuses an object with this message."""
    return PydanticCustomError(_REFUSAL, "{message}", {"message": message})


def schema_of(model: type[DocumentModel]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document."""
    return {"$schema": GenerateJsonSchema.schema_dialect} | model.model_json_schema(schema_generator=_Schema)


def keys_of_models(names: Mapping[str, object]) -> tuple[str, ...]:
    """Return every key that a document may have somewhere, given the names of the module with its models."""
    models = [value for value in names.values() if isinstance(value, type) and issubclass(value, DocumentModel)]
    return tuple(dict.fromkeys(field.alias or key for model in models for key, field in model.model_fields.items()))
