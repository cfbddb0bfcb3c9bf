"""What is planted by hand into real runs still stands where it was written for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.bench.planted_causes.__main__ import planted
from tests.bench.planted_causes.plants import CAUSES, NOTHING


@pytest.mark.parametrize(
    ("framework", "cause"),
    [(one, name) for name, cause in CAUSES.items() if name != NOTHING for one in cause.edits],
)
def test_a_cause_changes_its_file_into_another_program(
    cause: str, framework: str, tmp_path: Path
) -> None:
    made = planted(tmp_path, CAUSES[cause].edits[framework])
    changed = [place for place in made.files.values() if place and tmp_path in place.parents]
    assert changed
    for file in changed:
        ast.parse(file.read_text(encoding="utf-8"))
