"""Keep the shipped schemas current, and the shipped studies and profiles readable."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from harness.plan.editor_schema import FOLDER, texts
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.study.factors import FACTORS
from harness.study.study import load_study, study_files

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_schema_is_current(path: Path) -> None:
    assert texts()[path] == path.read_text(encoding="utf-8"), (
        "write them anew: python -m harness.plan.editor_schema"
    )


def test_every_schema_is_shipped() -> None:
    assert set(texts()) == set(FOLDER.glob("*.json"))


def test_editors_complete_factors_with_their_meaning() -> None:
    schema = json.loads((FOLDER / "study.json").read_text(encoding="utf-8"))
    factors = schema["definitions"]["factors"]["properties"]
    assert set(FACTORS) <= set(factors)
    assert all(factors[name]["description"] for name in FACTORS)
    assert "alexnet" in json.dumps(factors["workload"])
    assert schema["properties"]["matrix"]["$ref"] == "#/definitions/factors"


@pytest.mark.parametrize("path", sorted((ROOT / "studies").glob("*.toml")), ids=lambda p: p.stem)
def test_a_shipped_study_is_planned_at_every_size(path: Path) -> None:
    study = load_study(path)
    for size in (None, *study.sizes):
        sized = load_study(path, size=size)
        asks_for_gpus = sized.matrix.axes.get("device") == ("gpu",)
        machine = load_platform("minsky-p100") if asks_for_gpus else load_platform()
        if 1 not in (sized.matrix.axes.get("nodes") or (1,)):
            machine = machine.model_copy(update={"nodes": 8})
        assert make_plan(sized, machine).cells


@pytest.mark.parametrize(
    "path",
    sorted([*(ROOT / "studies").glob("*.toml"), *(ROOT / "platforms").glob("*.toml")]),
    ids=lambda p: p.stem,
)
def test_a_shipped_file_names_its_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    name, _, schema = first.partition(" ")
    assert name == "#:schema"
    assert (path.parent / schema).resolve().parent == FOLDER
    assert tomllib.loads(path.read_text(encoding="utf-8"))["title"]


def test_shipped_studies_are_found_by_name() -> None:
    assert {"quickstart", "convnets"} <= set(study_files())
