"""Run a trial on two nodes whose clocks have nothing in common, as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store.layout import RunPaths
from tests.cli.command import bakeoff
from tests.needs import missing, program

LEADS_S = {"near1": 1_000, "far2": 54_321}
FAR = """#!/bin/sh
# As ssh, but into another name and another time of this machine.
while [ "$1" = -o ]; do shift 2; done
host=$1; shift
case $host in near1) lead=1000 ;; *) lead=54321 ;; esac
cd {folder} || exit 1
exec {unshare} --uts --time --monotonic $lead --fork --kill-child sh -c "hostname $host; $*"
"""
STUDY = """
title = "Two nodes"
[matrix]
workload = "nothing"
framework = "null"
strategy = "ddp"
nodes = 2
[measure]
trials = 1
warmup = "3 steps"
until = "1500 ms"
reruns = 0
tolerate = ["contended", "throttled", "stalled"]
"""
PLATFORM = """
title = "Two names of one machine"
as_found = true
nodes = 2
[launcher]
name = "ssh"
settings = {{ hosts = "near1,far2", command = "{command}" }}
[frameworks.null]
interpreter = "{python}"
"""


@pytest.mark.slow
def test_nodes_with_other_clocks_are_drawn_on_one_axis_with_its_bound(tmp_path: Path) -> None:
    unshare = program("unshare", package="util-linux")
    allowed = subprocess.run(
        [unshare, "--uts", "--time", "--fork", "true"], capture_output=True, text=True, check=False
    )
    if allowed.returncode != 0:
        missing(f"time namespaces ({allowed.stderr.strip()})", "run as root, Linux 5.6 or later")
    far = tmp_path / "far"
    far.write_text(FAR.format(folder=tmp_path, unshare=unshare))
    far.chmod(0o755)
    (tmp_path / "two.toml").write_text(STUDY)
    (tmp_path / "here.toml").write_text(PLATFORM.format(command=far, python=sys.executable))
    done = bakeoff(
        *("run", "two.toml", "--platform", "here.toml", "--name", "r"),
        cwd=tmp_path,
        PYTHONPATH=str(Path.cwd()) + os.pathsep + os.environ.get("PYTHONPATH", ""),
    )
    assert done.returncode == 0, done.stderr
    paths = RunPaths(tmp_path / "runs" / "r")
    (outcome,) = paths.cells.glob("*/trial-1/outcome.json")
    clocks = json.loads(outcome.read_text())["clocks"]
    assert set(clocks) == set(LEADS_S)
    for node, told in clocks.items():
        assert not told["own"]
        for t1, t2, t3, t4 in told["exchanges"]:
            off = abs(((t2 - t1) + (t3 - t4)) / 2 - LEADS_S[node] * 1e9)
            assert off <= ((t4 - t1) - (t3 - t2)) / 2
    asked = bakeoff("sql", "r", "select clock_bound_s from trials", "--json", cwd=tmp_path)
    (row,) = json.loads(asked.stdout)
    assert 0 < row["clock_bound_s"] < 1
    page = paths.report.read_text(encoding="utf-8")
    assert "Steps and readings were timed by one clock" in page  # the first rank's node
    assert "Clocks agree within" in page
