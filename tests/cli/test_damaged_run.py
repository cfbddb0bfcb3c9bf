"""Every key of every JSON file of a run, replaced by values of every other type."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import bakeoff
from harness.errors import BakeoffError

RECORDED = Path(__file__).parents[1] / "store" / "recorded" / "measured"
VALUES: dict[str, Any] = {
    "null": None,
    "text": "x",
    "minus": -1,
    "huge": 2**63,
    "vast": 10**30,
    "fraction": 1.5,
    "NaN": float("nan"),
    "list": [],
    "object": {},
    "true": True,
    "up": "../../x",
}
VERBS = ("show {}", "status {}", "watch --once {}", "report {}", "compare {} other")
QUERY = "SELECT count(*) FROM windows, trials, cells, ranks, runs, facts"
EACH = 5
"""So many changes of each file; the seed is the file's name, so that they stay the same."""
PATTERNS = (
    *("run.json", "plan.json", "provenance.json", "jobs.json", "log.jsonl", "environments/*.json"),
    *("gate/*.json", "cells/*/trial-1/outcome.json", "cells/*/trial-1/events.0.jsonl"),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the way to every value in a value, of lists to the first two."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, one in inside:
        if isinstance(one, dict | list):
            yield from places(one, (*at, key))
        else:
            yield (*at, key)


def changes(pattern: str) -> list[tuple[int, tuple[Any, ...], str]]:
    """Choose lines, places in them and what to put there; every kind of line has its turn."""
    file = sorted(RECORDED.glob(pattern))[0]
    lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    chance = random.Random(pattern)
    every = [(n, at) for n, line in enumerate(lines) for at in places(json.loads(line))]
    chosen = chance.sample(every, min(EACH, len(every)))
    return [(n, at, chance.choice([*VALUES, "missing"])) for n, at in chosen]


def damaged(text: str, at: tuple[Any, ...], how: str) -> str:
    """Put a wrong value into a JSON text, or take one out."""
    value = json.loads(text)
    inside = value
    for key in at[:-1]:
        inside = inside[key]
    if how == "missing":
        del inside[at[-1]]
    else:
        inside[at[-1]] = VALUES[how]
    return json.dumps(value)


CASES = [(pattern, *one) for pattern in PATTERNS for one in changes(pattern)]


@pytest.mark.parametrize(("pattern", "line", "at", "how"), CASES)
def test_a_value_of_another_type_is_never_a_traceback(
    pattern: str,
    line: int,
    at: tuple[Any, ...],
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(RECORDED, "runs/sent")
    shutil.copytree(RECORDED, "runs/other")
    file = sorted(Path("runs/sent").glob(pattern))[0]
    texts = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
    texts[line] = damaged(texts[line], at, how)
    file.write_text("\n".join(texts) + "\n")
    bakeoff.main(["list", "runs"], standalone_mode=False)
    for words in [*(verb.replace("{}", "sent").split() for verb in VERBS), ["sql", "sent", QUERY]]:
        with suppress(BakeoffError):
            bakeoff.main(words, standalone_mode=False)


@pytest.mark.parametrize(
    "finding",
    [
        'question = "?"',
        'question = "?"\npaper = 3\nof = {}',
        'question = "?"\npaper = "x"\nof = 3',
        'question = "?"\npaper = "x"\nof = {}\nover = "x"',
        'question = "?"\npaper = "x"\nof = {}\nmeasure = "wishes"',
        'question = "?"\npaper = "x"\nof = ' + "[" * 100_000,
    ],
)
def test_a_damaged_question_of_a_study_costs_its_answer_and_is_named(
    finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(RECORDED, "runs/sent")
    Path("runs/sent/study.toml").write_text(f"[[finding]]\n{finding}\n")
    bakeoff.main(["report", "sent"], standalone_mode=False)
    page = Path("runs/sent/report.html").read_text()
    assert "study.toml is damaged" in page
    assert "Its findings are left out" in page
