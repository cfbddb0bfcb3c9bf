"""Generate the JSON Schemas that let editors complete studies, profiles and adapters.

``python -m harness.plan.editor_schema`` writes them into ``harness/plan/schemas/``; a test says
when that is due: after a change of the models or the vocabulary, or when a workload or framework
was added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import plugins
from harness.platform.platform import Platform
from harness.study.factors import FACTORS, Factor
from harness.study.framework import framework_info, framework_names, known_strategies
from harness.study.framework_file import FrameworkFile
from harness.study.study import StudyFile
from harness.toml.tables import Table

FOLDER = Path(__file__).parent / "schemas"
_DIALECT = "http://json-schema.org/draft-07/schema#"  # the one that TOML editors understand

Schema = dict[str, Any]


def schemas() -> dict[str, Schema]:
    """Give every schema by its file name."""
    return {"study": _study(), "platform": _platform(), "framework": _framework()}


def texts() -> dict[Path, str]:
    """Give the text of every schema file."""
    return {
        FOLDER / f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def _study() -> Schema:
    schema = _generated(StudyFile)
    definitions = schema["definitions"]
    definitions["factors"] = _factors(lists=True)
    definitions["point"] = _factors(lists=False)
    definitions["exclusion"] = {
        "type": "object",
        "properties": {
            **{name: {"$ref": f"#/definitions/factors/properties/{name}"} for name in FACTORS},
            "why": {"type": "string", "minLength": 1},
        },
        "required": ["why"],
    }
    lists = {"$ref": "#/definitions/factors"}
    point = {"$ref": "#/definitions/point"}
    for table in (schema, definitions["Varied"]):
        fields = table["properties"]
        fields["matrix"] = {**lists, "description": fields["matrix"]["description"]}
        fields["zip"]["items"] = lists
        fields["include"]["items"] = {**point, "required": ["workload", "framework"]}
        fields["exclude"]["items"] = {"$ref": "#/definitions/exclusion"}
    for table in definitions["Defaults"]["properties"].values():
        table["additionalProperties"] = point
    definitions["MeasureTable"]["properties"]["reference"] = {
        **point,
        "description": definitions["MeasureTable"]["properties"]["reference"]["description"],
    }
    schema["properties"]["platform"] = {
        "type": "string",
        "description": schema["properties"]["platform"]["description"],
    }
    return schema


def _factors(*, lists: bool) -> Schema:
    known: dict[str, tuple[str, ...]] = {
        "workload": plugins.workload_names(),
        "framework": framework_names(),
        "strategy": known_strategies(),
    }
    properties = {
        name: _value(factor, known.get(name, ()), lists=lists) for name, factor in FACTORS.items()
    }
    for name in framework_names():
        info = framework_info(name)
        options = {key: _value(one, (), lists=lists) for key, one in info.options.items()}
        properties[name] = {
            "type": "object",
            "description": f"options of {info.title} alone",
            "properties": options,
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value(factor: Factor, names: tuple[str, ...], *, lists: bool) -> Schema:
    one: Schema
    if names:
        # Names from other distributions are right too, so the enumeration only completes.
        one = {"anyOf": [{"enum": list(names)}, {"type": "string"}]}
    elif factor.allowed:
        one = {"enum": list(factor.allowed)}
    else:
        one = dict(_TYPES[factor.type])
        if factor.type == "count":
            one["minimum"] = factor.least
    meaning: Schema = {"description": factor.meaning}
    if factor.default is not None:
        meaning["default"] = factor.default
    if not lists:
        return {**one, **meaning}
    return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], **meaning}


_TYPES: dict[str, Schema] = {
    "flag": {"type": "boolean"},
    "count": {"type": "integer"},
    "number": {"type": "number"},
    "name": {"type": "string"},
    "choice": {"type": "string"},
}


def _platform() -> Schema:
    schema = _generated(Platform)
    del schema["properties"]["name"]
    return schema


def _framework() -> Schema:
    schema = _generated(FrameworkFile)
    fields = schema["properties"]
    fields["factors"]["properties"] = {
        name: {"description": factor.meaning, "anyOf": [{"const": "any"}, {"type": "array"}]}
        for name, factor in FACTORS.items()
        if factor.framework
    }
    fields["factors"]["additionalProperties"] = False
    return schema


def _generated(model: type[Table]) -> Schema:
    schema = model.model_json_schema(ref_template="#/definitions/{model}")
    schema["definitions"] = schema.pop("$defs", {})
    return {"$schema": _DIALECT, **_without_noise(schema)}


def _without_noise(schema: Any) -> Any:
    """Drop titles generated from names, and null, which TOML does not have."""
    if isinstance(schema, list):
        return [_without_noise(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    stripped = {
        key: _without_noise(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and not value)
    }
    choices = stripped.get("anyOf")
    if isinstance(choices, list):
        rest = [one for one in choices if one != {"type": "null"}]
        if len(rest) == 1:
            stripped.pop("anyOf")
            return {**rest[0], **stripped}
        stripped["anyOf"] = rest
    return stripped


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
