"""The gauntlet's short form; ``make gauntlet`` is the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.cli.command import bakeoff
from tests.gauntlet.attacks import FIRED, attacks
from tests.gauntlet.hostile import VERBS, VERBS_OF_SCREENS
from tests.gauntlet.kills import KINDS
from tests.gauntlet.small_run import RESUME, RUN
from tests.gauntlet.small_run import write as write_small

pytestmark = pytest.mark.gauntlet
CALLS = (1, 301, 655, 695, 706, 717, 723, 741, 759, 811, 841)
"""Which modifying calls of a run fail: some in each of its stages."""


ATTACKS = (
    *(".report.html.new is a link to victim", "cells/CELL/attribution/traced.json: deep"),
    *("words 0", "a cell called '../..'", "another interpreter"),
    *("harness/worker/__main__.py is edited", "texts of 65 tokens"),
)


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
    assert told["findings"] == [], f"{stage}:\n{json.dumps(told['findings'], indent=1)}"
    counts: dict[str, Any] = told["counts"]
    return counts


def test_killed_in_each_way_a_run_loses_and_doubles_nothing() -> None:
    counts = parts("kills", "--part", "kills", "0")
    assert {kind.name for kind in KINDS} <= counts.keys()
    assert counts["runs"] > 0


def test_whatever_call_fails_there_is_one_message_and_resume_completes_the_run() -> None:
    needs.program("cc", "gcc", package="gcc")
    counts = parts("faults", "--part", "faults", *map(str, CALLS))
    assert counts["calls of the undisturbed run"] >= len(CALLS) - 1


def test_every_parser_reads_damaged_input_or_refuses_it_by_name() -> None:
    counts = parts("parsers", "--inputs", "12000", "--part", "parsers")
    assert counts["inputs"] > 10_000


def test_a_planted_run_writes_runs_and_fetches_nothing_whatever_opens_it() -> None:
    known = [attack.name for attack in attacks()]
    counts = parts("hostile", "--part", "hostile", *(str(known.index(one)) for one in ATTACKS))
    opened = counts["openings"] + counts.get("openings that no screen has", 0)
    assert opened == len(ATTACKS) * (len(VERBS) + len(VERBS_OF_SCREENS))
    assert counts["openings"] > len(ATTACKS) * len(VERBS)


def test_planted_code_does_run_where_it_is_trusted(tmp_path: Path) -> None:
    """The attacks above are real."""
    place = write_small(tmp_path)
    bakeoff(*RUN, cwd=tmp_path)
    edited = next(one for one in attacks() if one.name == "harness/worker/loop.py is edited")
    edited.plant(place)
    refused = bakeoff(*RESUME, cwd=tmp_path)
    assert refused.returncode == 1
    assert not (place.parent / FIRED).exists()
    bakeoff(*RESUME, "--trust-payload", cwd=tmp_path)
    assert (place.parent / FIRED).exists()
