"""Make files, and pass on what tf.data made of them."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.data.user_data import adopt
from harness.worker.input import records
from tests.cli.command import bakeoff
from tests.needs import framework

pytestmark = pytest.mark.io
ROOT = Path(__file__).resolve().parents[3]


STUDY = """
title = "Who reads what?"
[matrix]
workload = "read-pictures"
framework = "tensorflow"
reader = "tf-data"
decode = [false, true]
[[include]]
workload = "tinycnn"
framework = "keras"
input = "files"
format = "npy"
[[include]]
workload = "tinycnn"
framework = "tensorflow"
input = "files"
format = "tfrecord"
shuffle = "global"
[[include]]
workload = "tinycnn"
framework = "tensorflow"
input = "files"
format = "tfrecord"
strategy = "multiworker"
ranks_per_node = 2
[[include]]
workload = "tinycnn"
framework = "tensorflow"
input = "files"
strategy = "parameter-server"
ranks_per_node = 2
[[include]]
workload = "resnet50"
framework = "torch"
input = "files"
[[include]]
workload = "tinycnn"
framework = "jax"
input = "files"
reader = "async-process"
buffer_samples = 64
"""


def tfrecords(folder: Path) -> Path:
    """Write records of any message, each of another length."""
    folder.mkdir()
    for shard, part in enumerate((range(7), range(7, 11))):
        with (folder / f"part-{shard}").open("wb") as file:
            for number in part:
                data = bytes([number]) * (100 + number)
                foot = struct.pack("<I", records.masked(records.crc32c(data)))
                file.write(records.head(len(data)) + data + foot)
    return folder


def test_tf_data_delivers_every_sample_once(tmp_path: Path) -> None:
    for name in ("raw", "tfrecord"):
        spec = DataSetSpec("small-pictures", name, 24)
        create(spec, tmp_path / spec.name, doing=lambda _: None)
    own = adopt(tfrecords(tmp_path / "mine"), tmp_path / "kept", doing=lambda _: None)
    sets = {"READING_SETS": str(tmp_path), "READING_OWN": str(own.folder)}
    done = subprocess.run(
        [
            str(framework("tensorflow")),
            *("-m", "tests.adapters.inside", str(Path(__file__).with_name("reading_inside.py"))),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), **sets},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = json.loads(done.stdout.strip().splitlines()[-1]).values()
    assert len(found) == 6
    assert {name: fault for name, fault in found.items() if fault} == {}


def test_what_tf_data_cannot_do_is_a_hole_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    said = " ".join(bakeoff("plan", "study.toml", cwd=tmp_path).stdout.split())
    assert "tf-data reads raw and tfrecord only, not npy" in said
    assert "whole: shuffle = none or file" in said
    assert "ranks share them with shuffle = file" in said
    assert "a worker beside parameter servers keeps one batch" in said
    assert "pictures are encoded pictures: resnet50 trains on them with decode = true" in said
    assert "jax does not offer reader async-process" in said
    place = str(tfrecords(tmp_path / "mine"))
    own = bakeoff("plan", "study.toml", "--data", place, cwd=tmp_path)
    assert "nothing says where in it a picture lies" in " ".join(own.stdout.split()), own.stderr
