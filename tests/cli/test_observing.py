"""This file holds `collect` and `watch` to what a person at a terminal relies on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.store.recording import read_recording
from tests.cli.command import bakeoff

STUDY = """
title = "Watched"
[matrix]
workload = "nothing"
framework = "null"
[measure]
trials = 1
warmup = "3 steps"
until = "2 s"
tolerate = ["contended"]
"""
BURN = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"


def test_collect_observes_any_command_and_says_what_it_used(tmp_path: Path) -> None:
    asked = bakeoff(
        "collect", "--output", "s.bin", "--json", "--", sys.executable, "-c", BURN, cwd=tmp_path
    )
    assert asked.returncode == 0
    told = json.loads(asked.stdout)
    names = {(one["scope"], one["name"]) for one in told["readings"]}
    assert ("rank:0", "cores used") in names
    assert ("node", "cores busy") in names
    assert all(told["unavailable"].values())
    recording = read_recording(tmp_path / "s.bin")
    assert recording is not None
    assert recording.whole


STOP_US = "until [ -e s.bin ]; do :; done; kill $PPID; exec sleep 600"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), (STOP_US, 143)])
def test_the_commands_exit_code_becomes_ours(tmp_path: Path, script: str, code: int) -> None:
    asked = bakeoff("collect", "--output", "s.bin", "--", "sh", "-c", script, cwd=tmp_path)
    assert asked.returncode == code
    assert (tmp_path / "s.bin").is_file()


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    asked = bakeoff("collect", "--", "no-such-program", cwd=tmp_path)
    assert asked.returncode == 127
    assert "no-such-program: No such file or directory" in asked.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_rate_without_a_number_says_how_to_write_it(tmp_path: Path) -> None:
    asked = bakeoff("collect", "--rate", "nvml", "--", "true", cwd=tmp_path)
    assert asked.returncode == 2
    assert "SOURCE=HZ" in asked.stderr


def test_a_run_is_watched_and_its_page_shows_the_hardware(tmp_path: Path) -> None:
    (tmp_path / "watched.toml").write_text(STUDY, encoding="utf-8")
    asked = bakeoff("run", "watched.toml", "--name", "r", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    drawn = bakeoff("watch", "r", "--once", cwd=tmp_path)
    assert "1/1 trials" in drawn.stdout
    assert "core 0" in drawn.stdout
    told = json.loads(bakeoff("watch", "r", "--json", cwd=tmp_path).stdout)
    (channels,) = told["nodes"].values()
    assert "memory.available" in {one["channel"] for one in channels}
    page = (tmp_path / "runs" / "r" / "report.html").read_text(encoding="utf-8")
    for text in ("cores busy", "Observing took", "What each phase", "rank:0", "not read, because"):
        assert text in page
    query = "select count(*) from samples where channel = 'cpu.user' and gap is null"
    counted = bakeoff("sql", "r", query, "--json", cwd=tmp_path)
    assert counted.returncode == 0, counted.stderr
    assert any(character.isdigit() and character != "0" for character in counted.stdout)
