"""Run the studies of papers about input at smoke size, from the command to the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.cli.command import bakeoff

pytestmark = [pytest.mark.io, pytest.mark.slow]

PLATFORM = """
title = "Tiers and a box"
extends = "local"
[storage.disk]
path = "{0}/disk"
roles = ["data", "checkpoint"]
[storage.hdd]
path = "{0}/hdd"
roles = ["checkpoint"]
[storage.optane]
path = "{0}/optane"
roles = ["fast"]
[frameworks.null.container]
engine = "bwrap"
image = "/"
interpreter = "{1}"
"""
TOLERATE = 'measure.tolerate=["contended", "throttled", "stalled"]'


def page_of(study: str, folder: Path) -> str:
    """Run a study at smoke size, make what it says is missing, run it again, and give its page."""
    for tier in ("disk", "hdd", "optane", "platforms"):
        (folder / tier).mkdir()
    box = PLATFORM.format(folder, sys.executable)
    (folder / "platforms" / "box.toml").write_text(box, "utf-8")
    run = ("run", study, "--platform", "box", "--size", "smoke", "--create-environments")
    run = (*run, "--set", TOLERATE)
    done = bakeoff(*run, cwd=folder)
    for made in re.findall(r"To make it: bakeoff (.+)", done.stderr):
        created = bakeoff(*made.split(), cwd=folder)
        assert created.returncode == 0, created.stderr
        done = bakeoff(*run, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (there,) = (folder / "runs").iterdir()
    done = bakeoff("report", there.name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return (there / "report.html").read_text("utf-8")


def answers(page: str) -> list[str]:
    """Give what was measured, finding by finding."""
    section = page.partition('<section id="findings">')[2].partition("</section>")[0]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", section, re.DOTALL)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return [re.sub(r"<[^>]+>", "", row[2]) for row in cells if len(row) == 3][1:]


@pytest.mark.parametrize(
    ("study", "found"), [("chien2018", 6), ("chien2018-checkpoints", 2), ("bae2019", 6)]
)
def test_every_finding_is_answered_at_smoke_size(study: str, found: int, tmp_path: Path) -> None:
    needs.program("bwrap", package="bubblewrap")
    needs.framework("tensorflow")
    told = answers(page_of(study, tmp_path))
    assert len(told) == found
    assert [one for one in told if one.startswith("not measured")] == []


@pytest.mark.timeout(600)  # its gate alone trains four copies of the network in float64
def test_the_asynchronous_study_answers_what_one_node_can(tmp_path: Path) -> None:
    needs.framework("torch")
    told = answers(page_of("lee2021", tmp_path))
    assert len(told) == 4
    assert [one for one in told if "reads per epoch" in one or " times; " in one]
