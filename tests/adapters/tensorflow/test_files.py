"""This file makes files, and passes on what tf.data made of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.data.create import create
from harness.data.sets import Spec
from tests.needs import framework

pytestmark = pytest.mark.io
ROOT = Path(__file__).resolve().parents[3]


def test_tf_data_delivers_every_sample_once(tmp_path: Path) -> None:
    for name in ("raw", "tfrecord"):
        spec = Spec("small-pictures", name, 24)
        create(spec, tmp_path / spec.name, doing=lambda _: None)
    done = subprocess.run(
        [
            str(framework("tensorflow")),
            *("-m", "tests.adapters.inside", str(Path(__file__).with_name("reading_inside.py"))),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "READING_SETS": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert len(found) == 3
    assert {name: fault for name, fault in found.items() if fault} == {}
