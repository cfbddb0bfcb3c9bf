"""Let fio, against which our readers are held, read the very bytes that they read."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from tests import needs
from tests.bench.reading.readers import Fio

pytestmark = pytest.mark.io


def test_fio_reads_every_sample_of_a_set_once(tmp_path: Path) -> None:
    needs.program("fio", package="fio")
    spec = DataSetSpec("traces", "raw", 64)
    manifest = create(spec, tmp_path / spec.name, doing=lambda _: None)
    told = Fio(tmp_path / spec.name, 4).epoch()
    assert told["bytes"] == manifest["sample_bytes"]
