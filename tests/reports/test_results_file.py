"""results.json holds what the page says, validates by its schema, and is read back whole."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bakeoff
from harness.analysis import numbers
from harness.analysis.results import Results
from harness.cli.verbs.export import command as export
from harness.cli.verbs.report import command as report
from harness.cli.verbs.show import command as show
from harness.errors import DamagedFile, RunError
from harness.verdicts.io_results import CheckpointResult, InputResult
from harness.verdicts.results import Start
from reports.exports import results_schema
from reports.exports.results_file import Summary, results_file, results_text
from tests import runs
from tests.planted_secrets import KINDS, planted
from tests.reports import samples


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    cells = [
        runs.RecordedCell(gate="equivalent"),
        runs.RecordedCell(framework="jax", behaviour=runs.Behaviour(step_s=0.015)),
        runs.RecordedCell(framework="null", outcomes=dict.fromkeys(range(1, 7), "failed")),
    ]
    hole = {"label": "tinycnn · caffe", "why": "not ready here"}
    return runs.write_run(tmp_path / "runs", cells, runs.Recording(holes=(hole,)))


def written(run: Path) -> Path:
    done = CliRunner().invoke(report, [str(run)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return run / "results.json"


def everything() -> Results:
    """Results in which every part is there at least once."""
    demo = samples.demo()
    fed = InputResult(cache="cold", cold_fraction=1.0, epochs=2, faults=("a record came twice",))
    saved = CheckpointResult("own", 3, 10**9, 0.5, 1.0, None, 2.0, 10**9, "cold", None, 0.01)
    trials = tuple(
        replace(one, input=fed, checkpoints=saved, starts=(Start("n1", 0.1, 1.0),))
        for one in demo.cells[0].trials
    )
    return replace(demo, cells=(replace(demo.cells[0], trials=trials), *demo.cells[1:]))


def test_the_shipped_schema_is_current() -> None:
    assert results_schema.text() == results_schema.PATH.read_text(encoding="utf-8"), (
        "write it anew: python -m reports.exports.results_schema"
    )


def test_the_schema_says_what_fields_mean() -> None:
    tables = results_schema.schema()["$defs"]
    assert tables["Start"]["properties"]["opened_s"]["description"].startswith("From there until")
    assert tables["Start"]["required"] == ["host", "entered_s", "opened_s"]


def test_results_of_a_recorded_run_validate(recorded: Path) -> None:
    validate(json.loads(written(recorded).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "results",
    [everything(), samples.two_runs(), samples.failures(), samples.hostile(), samples.scaled()],
    ids=["everything", "two runs", "failures", "hostile", "scaled"],
)
def test_whatever_a_page_can_show_validates_and_is_read_back_as_it_was(
    results: Results, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_text(results_text(results), encoding="utf-8")
    validate(json.loads(path.read_text(encoding="utf-8")))
    assert bakeoff.load(path) == results_file(results)


def test_its_numbers_are_those_of_the_page(recorded: Path) -> None:
    told = bakeoff.load(written(recorded))
    page = (recorded / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert len(told.ranking) == 2
    for line in told.ranking:
        assert line.rate is not None
        assert numbers.estimate(line.rate)[0] in page
        cell = next(one for one in told.cells if (one.run, one.key) == (line.run, line.key))
        assert cell.rate == line.rate
    assert told.answers[0].answer in page
    assert all(card.value in page for card in told.cards)
    assert told.holes[0].why == "not ready here"


def test_it_says_the_same_as_the_run_it_was_written_from(recorded: Path) -> None:
    assert bakeoff.load(written(recorded)) == bakeoff.load(recorded)


def test_what_show_prints_is_a_part_of_it(recorded: Path) -> None:
    whole = json.loads(written(recorded).read_text(encoding="utf-8"))
    shown = CliRunner().invoke(show, [str(recorded), "--json"], catch_exceptions=False)
    part = json.loads(shown.stdout)
    assert set(part) == set(Summary.__dataclass_fields__)
    assert part == {name: whole[name] for name in part}


def test_a_results_file_of_somebody_else_is_read_without_its_secrets(recorded: Path) -> None:
    file = written(recorded)
    held = json.loads(file.read_text())
    secrets = "\n".join(f"{one.name}={one.value}" for one in KINDS)
    held["title"] = held["answers"][0]["answer"] = held["cells"][0]["label"] = secrets
    held["warnings"] = [secrets]
    held["cells"][0]["factors"] = {one.name: one.value for one in KINDS}
    other = file.with_name("other.json")
    other.write_text(json.dumps(held))
    assert planted(repr(bakeoff.load(other))) == []
    assert bakeoff.load(file) == bakeoff.load(recorded)


def test_export_gives_all_of_it(recorded: Path) -> None:
    text = written(recorded).read_text(encoding="utf-8")
    done = CliRunner().invoke(export, [str(recorded), "--to", "json"], catch_exceptions=False)
    assert done.stdout == text


def test_several_runs_keep_theirs_beside_the_page(recorded: Path, tmp_path: Path) -> None:
    place = tmp_path / "all.html"
    command = [str(recorded), "--output", str(place), "--json"]
    done = CliRunner().invoke(report, command, catch_exceptions=False)
    assert json.loads(done.stdout)["results"] == str(tmp_path / "all-results.json")
    assert bakeoff.load(tmp_path / "all-results.json").runs[0].name == recorded.name
    assert not (recorded / "results.json").exists()


def test_a_page_that_goes_into_a_device_has_no_file_beside_it(recorded: Path) -> None:
    command = [str(recorded), "--output", "/dev/null", "--json"]
    done = CliRunner().invoke(report, command, catch_exceptions=False)
    assert json.loads(done.stdout) == {"report": "/dev/null", "results": None}
    assert not Path("/dev/null-results.json").exists()


def test_what_is_not_a_number_is_null(tmp_path: Path) -> None:
    demo = samples.demo()
    strange = replace(demo.cells[0], options={"rate": math.nan, "most": [math.inf]})
    text = results_text(replace(demo, cells=(strange,)))
    assert json.loads(text)["cells"][0]["options"] == {"rate": None, "most": [None]}


def test_no_character_of_it_steers_a_terminal() -> None:
    demo = replace(samples.demo(), title="\x1b[31mred \x9b31m\x7f")
    text = results_text(demo)
    assert text[:-1].isprintable()
    assert json.loads(text)["title"] == demo.title


def test_another_version_is_refused_in_a_sentence(recorded: Path) -> None:
    path = written(recorded)
    newer = json.loads(path.read_text(encoding="utf-8")) | {"version": 99}
    path.write_text(json.dumps(newer), encoding="utf-8")
    with pytest.raises(RunError, match=r"has version 99; this bakeoff reads version 1"):
        bakeoff.load(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is damaged"),
        ("[]", "is no results.json: the file: Input should be"),
        ('{"version": 1}', "is no results.json: title: Field required"),
        ("\udcff", "is damaged"),
    ],
)
def test_what_is_no_results_file_is_refused_in_a_sentence(
    text: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DamagedFile, match=why):
        bakeoff.load(path)


def validate(value: Any) -> None:
    schema = results_schema.schema()
    assert value["version"] == schema["properties"]["version"]["const"]
    assert list(faults(value, schema, schema["$defs"], "results")) == []


_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_KNOWN = {"type", "properties", "required", "items", "additionalProperties", "anyOf", "$ref"} | {
    *("$defs", "$schema", "const", "description", "title")
}


def faults(value: Any, schema: Any, defs: Any, at: str) -> list[str]:
    """Check a value against those words of JSON Schema that ours uses."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    if "$ref" in schema:
        return faults(value, defs[schema["$ref"].rpartition("/")[2]], defs, at)
    if "anyOf" in schema:
        if any(not faults(value, one, defs, at) for one in schema["anyOf"]):
            return []
        return [f"{at}: {value!r} is none of what is allowed"]
    wanted = _TYPES.get(schema.get("type"), object)
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted in (int, (int, float))):
        return [f"{at}: {value!r} is no {schema['type']}"]
    if isinstance(value, list) and "items" in schema:
        items = enumerate(value)
        return [why for n, one in items for why in faults(one, schema["items"], defs, f"{at}[{n}]")]
    if not isinstance(value, dict):
        return []
    fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    found = [f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, one in value.items():
        if name not in fields and fields:
            found.append(f"{at}: {name} is not described")
        elif name in fields or isinstance(others, dict):
            found += faults(one, fields.get(name, others), defs, f"{at}.{name}")
    return found
