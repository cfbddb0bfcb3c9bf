"""Stripe files over Lustre's servers, through a stand-in ``lfs`` that notes calls."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command import bakeoff

pytestmark = pytest.mark.io

LFS = """#!/bin/sh
echo "$@" >> {0}/calls
{1}
"""
STUDY = """
title = "Wide or narrow"
[matrix]
workload = "read-traces"
framework = "null"
samples = 64
stripe_count = [1, 4]
[[include]]
workload = "tinycnn"
framework = "null"
checkpoint_every = 2
stripe_mb = 16
[[include]]
workload = "tinycnn"
framework = "null"
stripe_mb = 16
[measure]
trials = 1
warmup = "1 steps"
until = "4 steps"
tolerate = ["contended", "throttled", "stalled"]
"""
CREATE = ("data", "create", "traces", "--samples", "64")


def lfs(folder: Path, then: str = "exit 0") -> dict[str, str]:
    program = folder / "bin" / "lfs"
    program.parent.mkdir()
    program.write_text(LFS.format(folder, then), "utf-8")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "BAKEOFF_HOME": str(folder / "home")}


def test_data_sets_and_checkpoints_are_striped_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    where = lfs(tmp_path)
    planned = bakeoff("plan", "study.toml", cwd=tmp_path, **where).stdout
    assert "stripe_mb is about files that Bakeoff makes, and this cell has none" in planned
    done = bakeoff("run", "study.toml", cwd=tmp_path, **where)
    assert "--samples 64 --stripe-count 4" in done.stderr
    for count in ("1", "4"):
        made = bakeoff(*CREATE, "--stripe-count", count, cwd=tmp_path, **where)
        assert made.returncode == 0, made.stderr
    data = tmp_path / "home" / "bakeoff-data"
    expected = [f"setstripe -c {count} {data}/traces-raw-64-c{count}/files" for count in (1, 4)]
    calls = (tmp_path / "calls").read_text("utf-8").splitlines()
    assert calls == expected
    done = bakeoff("run", "study.toml", "--name", "wide", cwd=tmp_path, **where)
    assert done.returncode == 0, done.stdout + done.stderr
    (saved,) = (tmp_path / "calls").read_text("utf-8").splitlines()[2:]
    assert saved.startswith(f"setstripe -S 16M {tmp_path}/home/bakeoff-checkpoints/wide-")


def test_what_lfs_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    where = lfs(tmp_path, "echo 'Inappropriate ioctl for device' >&2; exit 25")
    done = bakeoff(*CREATE, "--stripe-count", "2", cwd=tmp_path, **where)
    assert done.returncode == 1
    assert "lfs setstripe refused: Inappropriate ioctl for device" in done.stderr


def test_without_lfs_a_cell_is_a_hole(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        STUDY + "[[exclude]]\nstripe_mb = 16\nwhy = 'x'\n", "utf-8"
    )
    done = bakeoff("plan", "study.toml", cwd=tmp_path, PATH="/usr/bin:/bin")
    assert "stripe_count is set with lfs, Lustre's own program, which is not here" in done.stderr
