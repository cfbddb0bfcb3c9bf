"""A run that somebody sends shows no secret that its files hold, whoever wrote them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.store.layout import RunPaths
from harness.store.sql.schema import NAMES
from tests.outcomes import seal_all
from tests.planted_secrets import KINDS, planted
from tests.runs import RecordedCell, Recording, write_run

ALL = "\n".join(f"{one.name}={one.value}" for one in KINDS[::4])
"""Some in each text of the run: it takes long to look through that many for all of them."""
BY_NAME = {one.name: one.value for one in KINDS}


def with_secrets(value: Any, name: str = "") -> Any:
    """Lengthen each text of a JSON value that is for people to read."""
    if isinstance(value, dict):
        return {key: with_secrets(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [with_secrets(one, name) for one in value]
    return f"{value}\n{ALL}" if name in FOR_PEOPLE else value


FOR_PEOPLE = {
    *("title", "question", "label", "why", "reason", "marks", "proof", "detail", "message"),
    *("what", "versions", "problem", "note", "trace", "torch"),
}


def rewrite(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change each JSON object of a file, of one or of many lines."""
    text = file.read_text()
    if file.suffix == ".jsonl":
        lines = [json.dumps(change(json.loads(line))) for line in text.splitlines()]
        file.write_text("".join(f"{line}\n" for line in lines))
    else:
        file.write_text(json.dumps(change(json.loads(text))))


def more_of_plan(plan: dict[str, Any]) -> dict[str, Any]:
    variables = {"environment": BY_NAME}
    plan["platform"] |= {**variables, "frameworks": {"torch": variables}, "note": ALL}
    plan["platform"]["launcher"] = {"name": "local", "options": [ALL]}
    plan["measure"] |= {"note": ALL, **BY_NAME}
    for cell in plan["cells"]:
        cell["options"] = {"note": ALL, **BY_NAME}
        cell["factors"] |= {"allocator": ALL, "input": ALL}
        cell |= {"content": ALL, "own_files": ALL}
    return plan


def more_of_event(event: dict[str, Any]) -> dict[str, Any]:
    if event["event"] == "facts":
        event["facts"] |= {"note": ALL, "tree": BY_NAME, "lines": [ALL], **BY_NAME}
        if event["facts"]["threads"] == 8:  # another cell, which is then not what it is called
            event["facts"] |= dict.fromkeys(("device", "layout", "compiler", "computed_by"), ALL)
    if event["event"] == "versions":
        event["versions"] |= {"note": ALL, **BY_NAME}
    if event["event"] == "phase" and event["name"] == "close":
        event["name"] = ALL
    return event


MORE: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "plan.json": more_of_plan,
    "events.0.jsonl": more_of_event,
    "outcome.json": lambda one: {**one, "marks": [ALL], "proof": ALL},
    "provenance.json": lambda one: {**one, "environment": BY_NAME, "command": [ALL], "note": ALL},
    "torch-cpu.json": lambda one: {**one, "environment": BY_NAME, "lock": [ALL], **BY_NAME},
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a run whose every text holds all kinds of secrets."""
    monkeypatch.chdir(tmp_path)
    cells = [
        RecordedCell(start_s=2.0),
        RecordedCell(factors={"batch": 8}, gate="differs"),
        RecordedCell(factors={"batch": 32}, outcomes={2: "failed", 3: "failed"}),
    ]
    hole = ({"label": "left out", "why": "because"},)
    root = write_run(tmp_path / "runs", cells, Recording(holes=hole, marks=("marked",)))
    for file in root.glob(f"cells/{cells[1].key}/*/events.0.jsonl"):
        file.write_text(file.read_text().replace('"threads": 2', '"threads": 8'))
    (root / "log.jsonl").write_text('{"wall_ns": 1, "what": "noted", "why": ""}\n' * 2)
    for file in (*root.rglob("*.json"), *root.rglob("*.jsonl")):
        if file.name != "job.json":
            more = MORE.get(file.name, dict)
            rewrite(file, lambda one, more=more: more(with_secrets(one)))
    quoted = json.dumps(ALL)
    seal_all(root)
    finding = f"question = {quoted}\npaper = {quoted}\nof = {{ framework = {quoted} }}"
    (root / "study.toml").write_text(f"title = {quoted}\n[[finding]]\n{finding}\n")
    for folder in root.glob("cells/*/trial-*"):
        for name in ("rank.0.out", "rank.0.err", "starter.err", "caffe.log"):
            (folder / name).write_text(ALL)
    (root / "agent.err").write_text(ALL)
    (root / "jobs").mkdir()
    (root / "jobs" / "1.log").write_text(ALL)
    return root


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Give back what the command line takes over."""
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_nothing_that_is_made_of_a_run_holds_a_secret_of_its_files(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(planted((run / "provenance.json").read_text())) == len(KINDS)
    other = write_run(run.parent, [RecordedCell()], Recording(name="other"))
    lines = [
        ["show", str(run)],
        ["show", str(run), "--json"],
        ["show", str(run), "--pairs"],
        ["report", str(run), "--output", "page.html"],
        ["report", str(run), str(other), "--output", "both.html"],
        ["report", "--compare", str(other), str(run), "--output", "compared.html"],
        ["compare", str(other), str(run)],
        ["compare", str(other), str(run), "--json"],
        ["list", "runs"],
        ["list", "runs", "--json"],
        ["status", str(run)],
        ["status", str(run), "--json"],
        ["predict", str(run)],
        ["reference", "add", str(run)],
        ["reference", "list"],
        ["watch", str(run), "--once"],
        ["watch", str(run), "--json"],
        *(["export", str(run), "--to", form] for form in ("json", "junit", "csv", "markdown")),
        *(["export", str(run), "--to", "csv", "--table", name] for name in ("trials", "cells")),
        ["export", str(run), "--to", "csv", "--table", "findings"],
        *(["sql", str(run), f'select * from "{name}"', "--json"] for name in NAMES),
        ["sql", str(run), "select value, length(value) from facts", "--csv"],
        ["sql", str(run), "select cast(reason as integer) from trials"],
    ]
    found = {}
    for arguments in lines:
        with suppress(SystemExit):
            main(arguments)
        told = capsys.readouterr()
        words = " ".join(arguments).replace(str(run.parent), "")
        found[words] = planted(told.out + told.err)
    found |= {str(file): planted(file.read_text()) for file in Path().glob("*.html")}
    found |= {str(file): planted(file.read_text()) for file in Path().glob("*.json")}
    found |= {str(file): planted(file.read_text()) for file in Path().glob("references/*")}
    assert {name: kinds for name, kinds in found.items() if kinds} == {}
    assert any(name.startswith("references/") for name in found)
    assert {"page.html", "both.html", "compared.html", "page-results.json"} <= found.keys()
    assert RunPaths(run).report.exists() is False
