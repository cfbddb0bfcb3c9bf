"""Samples answer queries also where their cache, the Parquet, cannot be written or read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store.contained import Contained
from harness.store.dataset import Dataset
from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel, Declared
from tests.runs import RecordedCell, write_run

QUERY = "SELECT node, channel, raw, value FROM samples ORDER BY ALL"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = write_run(tmp_path, [RecordedCell()])
    data = samples_format.header(node="node0")
    data += samples_format.declare(Declared(0, "s", 1, 0, (Channel("power", "W", "gauge", "x"),)))
    data += samples_format.sample(0, 0, 1, 3, [7])
    for trial in root.glob("cells/*/trial-*"):
        (trial / "samples.node0.bin").write_bytes(data)
    return root


def answers(run: Path) -> list[tuple[object, ...]]:
    return list(Dataset([run]).sql(QUERY).rows)


def test_a_run_that_cannot_be_written_to_answers_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_files: Contained, path: Path, *_: object, **__: object) -> None:
        raise RunError(f"{path}: {os.strerror(errno.EROFS)}")

    with monkeypatch.context() as patched:
        patched.setattr(Contained, "write", refuse)
        told = answers(run)
    assert not list(run.rglob("*.parquet"))
    assert told == answers(run) == [("node0", "power", 7, 7.0)] * 6
    assert len(list(run.rglob("*.parquet"))) == 6


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"no table"])
def test_a_damaged_table_is_done_without(run: Path, damage: bytes) -> None:
    whole = answers(run)
    for table in run.rglob("*.parquet"):
        table.write_bytes(damage)
    assert answers(run) == whole
