"""Let pydantic check a document and say its complaints in our words and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.json_schema import WithJsonSchema
from pydantic_core import ErrorDetails

from harness import units
from harness.errors import nearest
from harness.toml.document import Document, Place
from harness.toml.values import shown

Elsewhere = Callable[[str], str | None]
"""Names the table that a key belongs in, if it belongs in any."""

STORED = "stored"
"""Validation context of what was resolved before: quantities are numbers in their base units."""

Model = TypeVar("Model", bound="Table")


class Table(BaseModel):
    """A TOML table with known keys: frozen, nothing converted silently, nothing left over."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        defer_build=True,
        use_attribute_docstrings=True,
    )


Item = TypeVar("Item")
Listed = Annotated[tuple[Item, ...], Field(strict=False)]
"""A TOML array, kept as a tuple."""


def _with_unit(
    read: Callable[[str], float], example: str, low: float = 0.0
) -> Callable[[Any, ValidationInfo], float]:
    def check(value: Any, info: ValidationInfo) -> float:
        if info.context == STORED and isinstance(value, int | float):
            return value
        if isinstance(value, bool) or not isinstance(value, str):
            raise ValueError(f'{shown(value)} needs a unit, for example "{example}"')  # noqa: TRY004 a fault of the file
        number = read(value)
        if number < low:
            raise ValueError(f"'{value}' is too small")
        return number

    return check


_QUANTITY = {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z%/]+\s*$"}


def _quantity(read: Callable[[str], float], example: str) -> tuple[Any, Any]:
    schema = {**_QUANTITY, "examples": [example]}
    return BeforeValidator(_with_unit(read, example)), WithJsonSchema(schema)


Seconds = Annotated[float, *_quantity(units.seconds, "15 min")]
Bytes = Annotated[int, *_quantity(units.size_bytes, "16 GiB")]
BytesPerSecond = Annotated[float, *_quantity(units.bytes_per_second, "12.5 GB/s")]
Flops = Annotated[float, *_quantity(units.flops, "9.3 TFLOP/s")]
Watts = Annotated[float, *_quantity(units.watts, "300 W")]
Share = Annotated[float, *_quantity(units.fraction, "2 %")]


def check(
    document: Document,
    model: type[Model],
    data: Any,
    at: Place = (),
    *,
    elsewhere: Elsewhere | None = None,
) -> Model | None:
    """Give the typed value of a table, or None after its faults went to the document.

    A key that means nothing where it stands may belong ``elsewhere``: that names the table.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            place = (*at, *(step for step in detail["loc"] if step != "[key]"))
            message, allowed = _in_our_words(model, detail, elsewhere)
            document.fault(place, message, allowed)
        return None


def _in_our_words(
    model: type[Table], detail: ErrorDetails, elsewhere: Elsewhere | None
) -> tuple[str, tuple[str, ...]]:
    kind = detail["type"]
    value = detail["input"]
    context: Mapping[str, Any] = detail.get("ctx") or {}
    if kind == "extra_forbidden":
        home = elsewhere(str(detail["loc"][-1])) if elsewhere is not None else None
        if home is not None:
            name = detail["loc"][-1]
            return f"unknown key here. It belongs in [{home}]: {home}.{name}", ()
        return unknown_key(str(detail["loc"][-1]), known_keys(model, detail["loc"][:-1]))
    if kind == "missing":
        return "is missing", ()
    if kind == "value_error":
        return str(context["error"]), ()
    if kind == "literal_error":
        allowed = tuple(part.strip("'") for part in _alternatives(str(context["expected"])))
        return f"{shown(value)} is not allowed.{nearest(str(value), allowed)}", allowed
    expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else detail["msg"].lower()
    return f"{shown(value)} must be {expected}", ()


_EXPECTED = {
    "string_type": "text in quotes",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "tuple_type": "a list",
    "list_type": "a list",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "text that is not empty",
    "too_short": "a list with something in it",
}


def _alternatives(expected: str) -> list[str]:
    return expected.replace(" or ", ", ").split(", ")


def unknown_key(name: str, known: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Word the fault of a key that means nothing here."""
    hint = nearest(name, known)
    return f"unknown key.{hint}", () if hint else tuple(sorted(known))


def known_keys(model: type[Table], loc: tuple[str | int, ...]) -> tuple[str, ...]:
    """Name the keys of the table that a fault stands in."""
    inside: Any = model
    for step in loc:
        if _is_table(inside):
            inside = inside.model_fields[str(step)].annotation
        else:
            arguments = get_args(inside)  # of a tuple its items' type, of a dict its values'
            inside = arguments[-1] if get_origin(inside) is dict else arguments[0]
        inside = _plain(inside)
    return tuple(inside.model_fields) if _is_table(inside) else ()


def _plain(annotation: Any) -> Any:
    """Take away what makes a field optional, or annotates it."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    return annotation


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Table)
