"""Hold `collect` and `watch` to what a person at a terminal relies on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from harness.store.samples.recording import read_recording
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
tolerate = ["contended", "throttled", "stalled"]
"""
BURN = """
import time
begin = time.monotonic()
from pathlib import Path
from harness.store.samples.follow_samples import Follower
follower = Follower(Path("s.bin"))
while ("rank:0", "rank.user") not in follower.look():
    pass
# most of its life has to have been read
end = time.monotonic() + 1.5 + 2 * (time.monotonic() - begin)
while time.monotonic() < end:
    pass
"""


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
    busiest = "select max(value) from $1 where channel = 'rank.user'"
    ((used,),) = duckdb.execute(busiest.replace("$1", f"'{told['table']}'")).fetchall()
    series = recording.find("rank:0", "rank.user")
    assert series is not None
    assert used == pytest.approx(series.raw.max() * series.channel.scale)


STOP_US = "until [ -e s.bin ]; do :; done; kill $PPID; exec sleep 600"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), (STOP_US, 143)])
def test_the_commands_exit_code_becomes_ours(tmp_path: Path, script: str, code: int) -> None:
    asked = bakeoff("collect", "--output", "s.bin", "--", "sh", "-c", script, cwd=tmp_path)
    assert asked.returncode == code
    assert (tmp_path / "s.bin").is_file()


ASKED_AT_ONCE = """
import os, signal, subprocess, sys
from harness.cli.verbs.collect import command
class Asked(subprocess.Popen):
    def __init__(self, *told):
        super().__init__(*told)
        os.kill(os.getpid(), signal.SIGTERM)
subprocess.Popen = Asked
sys.exit(command.main(["--output", "s.bin", "--", "sleep", "600"], standalone_mode=False))
"""


def test_who_is_asked_to_stop_while_it_starts_its_command_leaves_none_behind(
    tmp_path: Path,
) -> None:
    asked = subprocess.run([sys.executable, "-c", ASKED_AT_ONCE], cwd=tmp_path, timeout=60)
    assert asked.returncode == 143


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    asked = bakeoff("collect", "--", "no-such-program", cwd=tmp_path)
    assert asked.returncode == 127
    assert "no-such-program: No such file or directory" in asked.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--rate", "nvml"), "SOURCE=HZ"),
        (("--rate", "all=nan"), "SOURCE=HZ"),
        (("--rate", "nvlm=1"), "no source is called 'nvlm'. Did you mean 'nvml'?"),
        (("--output", "missing/s.bin"), "nothing can be written into that folder"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_command(
    tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    asked = bakeoff("collect", *given, "--", "touch", "begun", cwd=tmp_path)
    assert asked.returncode == 2
    assert said in " ".join(asked.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_watched_and_its_page_shows_the_hardware(tmp_path: Path) -> None:
    (tmp_path / "watched.toml").write_text(STUDY, encoding="utf-8")
    asked = bakeoff("run", "watched.toml", "--name", "r", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    drawn = bakeoff("watch", "r", "--once", cwd=tmp_path)
    assert "1/1 trials" in drawn.stdout
    assert "core 0" in drawn.stdout
    assert "Nobody is at work on this run" in drawn.stdout
    told = json.loads(bakeoff("watch", "r", "--json", cwd=tmp_path).stdout)
    (channels,) = told["nodes"].values()
    units = {one["channel"]: one["unit"] for one in channels}
    assert units["memory.available"] == "bytes"
    assert units["switches"] == "1/s"
    page = (tmp_path / "runs" / "r" / "report.html").read_text(encoding="utf-8")
    for text in ("cores busy", "Observing took", "What each phase", "rank:0", "not read, because"):
        assert text in page
    query = "select count(*) from samples where channel = 'cpu.user' and gap is null"
    counted = bakeoff("sql", "r", query, "--json", cwd=tmp_path)
    assert counted.returncode == 0, counted.stderr
    assert any(character.isdigit() and character != "0" for character in counted.stdout)
