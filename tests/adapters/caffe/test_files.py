"""Let Caffe's own Data layer read its databases, through a stand-in that opens them likewise."""

from __future__ import annotations

import json
import os
from itertools import cycle, islice
from pathlib import Path

import pytest

from harness.data.catalogue import CONTENTS
from harness.data.contents import sample
from harness.data.create import create
from harness.data.inspect import faults
from harness.data.sets import DataSetSpec
from harness.worker.adapters.caffe import prototxt
from tests.adapters.caffe.test_worker import program, told, work
from tests.cli.command import bakeoff

pytestmark = pytest.mark.io

COUNT = 40
STUDY = """
title = "Caffe reads"
[matrix]
workload = "tinycnn"
framework = "caffe"
input = "files"
samples = 40
{0}
[[include]]
workload = "nothing"
framework = "null"
"""


@pytest.mark.parametrize(
    ("dialect", "form", "backend"),
    [("bvlc", "datum", "LMDB"), ("intel", "datum", "LMDB"), ("bvlc", "leveldb", "LEVELDB")],
)
def test_the_data_layer_reads_every_message_in_order_and_divides_as_we_do(
    dialect: str, form: str, backend: str, tmp_path: Path
) -> None:
    there = tmp_path / "set"
    create(DataSetSpec("tiny-pictures", form, COUNT), there, doing=lambda _: None)
    asked = {"format": form, "reader": "data-layer", "prefetch": 4, "input": "files"}
    factors = {"batch": 8, "threads": 1, **asked}
    events = work(tmp_path, dialect, factors=factors, paths={"data": str(there)})
    assert told(events, "finished")
    net = prototxt.read((tmp_path / "caffe" / "net.prototxt").read_text("utf-8"))
    layer = prototxt.one(net, "layer")
    assert (prototxt.one(layer, "type"), prototxt.every(layer, "top")) == (
        "Data",
        ["data", "label"],
    )
    own = prototxt.one(layer, "data_param")
    values = [prototxt.one(own, name) for name in ("batch_size", "backend", "prefetch")]
    assert values == [8, backend, 4]
    scale, *labels = (tmp_path / "caffe" / "read.txt").read_text("utf-8").split()
    assert float(scale) == 1 / 128
    stored = [sample(CONTENTS["tiny-pictures"], 1, number).target for number in range(COUNT)]
    assert list(map(int, labels)) == list(islice(cycle(stored), len(labels)))
    assert len(labels) > COUNT
    assert faults(there, doing=lambda _: None) == []


@pytest.mark.parametrize(
    ("factors", "why"),
    [
        ('format = "lmdb"', "data-layer reads datum and leveldb only, not lmdb"),
        ('format = "datum"\nshuffle = "global"', "shuffle = none"),
        ('format = "datum"\ncache = "cold"', "nothing can be dropped between its epochs"),
        ('format = "datum"\nprefetch = 0', "prefetch from 1 up"),
    ],
)
def test_what_the_data_layer_cannot_do_is_a_hole_with_its_reason(
    factors: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(factors), "utf-8")
    done = bakeoff("plan", "study.toml", cwd=tmp_path)
    assert why in done.stdout, done.stderr


def test_a_study_trains_from_an_lmdb(tmp_path: Path) -> None:
    study = STUDY.format('format = "datum"') + (
        '[measure]\ntrials = 1\nwarmup = "5 steps"\nuntil = "50 steps"\n'
        'tolerate = ["contended", "throttled", "stalled"]\n'
    )
    (tmp_path / "study.toml").write_text(study, "utf-8")
    caffe = str(program(tmp_path, "bvlc"))
    where = {"BAKEOFF_HOME": str(tmp_path / "home"), "CAFFE_BIN": caffe}
    made = ("data", "create", "tiny-pictures", "--format", "datum", "--samples", "40")
    assert bakeoff(*made, cwd=tmp_path, **where).returncode == 0
    done = bakeoff("run", "study.toml", "--name", "one", cwd=tmp_path, **where)
    outcomes = [
        json.loads(path.read_text("utf-8"))
        for path in (tmp_path / "runs" / "one").glob("cells/*/trial-1/outcome.json")
    ]
    assert [one["outcome"] for one in outcomes] == ["ok", "ok"], done.stderr
    assert not any(os.path.lexists(path) for path in (tmp_path / "home").rglob("lock.mdb"))
