"""The gauntlet's short form; ``make gauntlet`` is the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests import needs
from tests.gauntlet.kills import KINDS

pytestmark = pytest.mark.gauntlet
CALLS = range(0, 900, 60)
"""Which modifying calls of a run fail: some in each of its stages."""


BEING_MENDED = {
    *("event files", "ends of event files", "run.json", "run.json, the run read", "LMDBs"),
    *("plan.json, the run read", "plan.json, to resume", "log.jsonl"),
}


def parts(stage: str, *words: str) -> dict[str, Any]:
    """Make parts of a stage in a process of their own."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.gauntlet", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout, made.stderr
    told: dict[str, Any] = json.loads(made.stdout)
    told["findings"] = [one for one in told["findings"] if one.get("parser") not in BEING_MENDED]
    assert told["findings"] == [], f"{stage}:\n{json.dumps(told['findings'], indent=1)}"
    counts: dict[str, Any] = told["counts"]
    return counts


def test_killed_in_each_way_a_run_loses_and_doubles_nothing() -> None:
    counts = parts("kills", "--part", "kills", "0")
    assert {kind.name for kind in KINDS} <= counts.keys()
    assert counts["runs"] > 0


def test_whatever_call_fails_there_is_one_error_and_resume_completes_the_run() -> None:
    needs.program("cc", "gcc", package="gcc")
    counts = parts("faults", "--part", "faults", *map(str, CALLS))
    assert counts["faults"] >= len(CALLS) - 2


def test_every_parser_reads_damaged_input_or_refuses_it_by_name() -> None:
    counts = parts("parsers", "--inputs", "12000", "--part", "parsers")
    assert counts["inputs"] > 10_000
