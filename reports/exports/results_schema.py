"""Generate the JSON Schema of ``results.json`` from the types that are written into it.

``python -m reports.exports.results_schema`` writes it beside this module; a test says when that is
due: after every change of a type that ``ResultsFile`` holds.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from reports.exports.results_file import VERSION, ResultsFile

PATH = Path(__file__).with_name("results.schema.json")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]


def text() -> str:
    """Give the schema's file as it should be."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """Describe ``results.json``: every field with its type and its meaning."""
    from pydantic import TypeAdapter

    made = TypeAdapter(ResultsFile).json_schema(mode="serialization")
    types = {one.__name__: one for one in _types(ResultsFile, set())}
    for name, table in ((ResultsFile.__name__, made), *made["$defs"].items()):
        table["required"] = list(table["properties"])  # unknown is null, never left out
        for one in table["properties"].values():
            one.pop("default", None)
        for field, meaning in _meanings(types[name]).items():
            table["properties"][field]["description"] = meaning
    made["properties"]["version"] = {"const": VERSION}
    return {"$schema": _DIALECT, **_without_titles(made), "title": "results.json of Bakeoff"}


def _types(of: type, seen: set[type]) -> Iterator[type]:
    """Find a dataclass and every one within it."""
    if of in seen:
        return
    seen.add(of)
    if is_dataclass(of):
        yield of
        hints = get_type_hints(of)
        for one in fields(of):
            yield from _types(hints[one.name], seen)
    for part in get_args(of):
        yield from _types(part, seen)


def _meanings(of: type) -> dict[str, str]:
    """Read what stands in quotes below each field, those of base classes too."""
    found: dict[str, str] = {}
    for one in reversed(of.__mro__[:-1]):
        (table,) = ast.parse(inspect.getsource(one)).body
        assert isinstance(table, ast.ClassDef)
        for field, below in zip(table.body, table.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[field.target.id] = inspect.cleandoc(str(below.value.value))
    return found


def _without_titles(made: Any) -> Any:
    """Drop the titles that pydantic makes from the names."""
    if isinstance(made, list):
        return [_without_titles(one) for one in made]
    if not isinstance(made, dict):
        return made
    return {
        key: _without_titles(value)
        for key, value in made.items()
        if not (key == "title" and isinstance(value, str))
    }


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
