"""Hold metadata to its word: every file opened, stat'ed and closed, and none read."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.input.loaders.opening import OpeningLoader
from harness.worker.input.open import reading
from harness.worker.network.workload import Opening
from harness.worker.place import Place
from tests.cli.command import bakeoff
from tests.scales import fed

pytestmark = pytest.mark.io

COUNT = 100
STUDY = """
title = "What names cost"
[matrix]
workload = "open-files"
framework = ["null", "torch"]
samples = 100
batch = 16
reader_threads = [1, 4]
[[include]]
workload = "open-files"
framework = "null"
samples = 100
cache = "cold"
[[include]]
workload = "read-small-pictures"
framework = "null"
samples = 100
reader = "open"
[measure]
trials = 1
warmup = "1 steps"
until = "1 steps"
tolerate = ["contended", "throttled", "stalled"]
reference = { reader_threads = 1 }
"""


def open_files(folder: Path) -> list[str]:
    """Name what this process has open there; what other tests left behind ends when it likes."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            found.append(str(one.readlink()))
    return sorted(path for path in found if path.startswith(f"{folder}/"))


def opened(folder: Path, threads: int) -> Any:
    workload = Opening("open", "Open", "tiny-pictures", COUNT)
    factors = {"format": "raw", "reader": "open", "reader_threads": threads, "shuffle": "global"}
    place = Place(0, 1, 0, 1, "here", "none")
    return reading(workload, fed(workload, {**factors, "batch": 7}, place, folder))


@pytest.mark.parametrize("threads", [1, 3])
def test_every_file_is_opened_once_and_closed_and_no_byte_of_it_is_read(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = DataSetSpec("tiny-pictures", "raw", COUNT)
    create(spec, tmp_path / spec.name, doing=lambda _: None)
    work = opened(tmp_path / spec.name, threads)
    work.epochs.turn()
    real, seen = os.open, Counter[str]()

    def noted(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if str(path).startswith(f"{tmp_path}/"):
            seen[Path(path).name] += 1
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", noted)
    before = open_files(tmp_path)
    while work.epochs.left():
        work.fetch()
    monkeypatch.undo()
    assert open_files(tmp_path) == before
    assert set(seen.values()) == {1}
    assert len(seen) == COUNT
    told = work.epochs.turn()
    assert (told["samples"], told["bytes"]) == (COUNT, 0)
    work.epochs._loader.close()


def test_a_file_that_is_gone_ends_the_trial(tmp_path: Path) -> None:
    spec = DataSetSpec("tiny-pictures", "raw", COUNT)
    create(spec, tmp_path / spec.name, doing=lambda _: None)
    work = opened(tmp_path / spec.name, 2)
    work.epochs.turn()
    sorted((tmp_path / spec.name / "files").iterdir())[60].unlink()
    with pytest.raises(FileNotFoundError):  # noqa: PT012 whichever batch holds it
        while work.epochs.left():
            work.fetch()


def test_whatever_goes_wrong_in_a_thread_reaches_whoever_waits() -> None:
    """A path that no system call takes is a ValueError, not an OSError."""
    loader = OpeningLoader(SimpleNamespace(paths=["a\0b"]), batch_per_rank=1, threads=1)  # type: ignore[arg-type]
    loader.begin([0])
    met: list[BaseException] = []

    def wait() -> None:
        try:
            loader.next()
        except ValueError as fault:
            met.append(fault)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(20)
    assert [str(fault) for fault in met] == ["embedded null byte"]


def test_a_study_gives_files_per_second_and_reasons_for_what_makes_no_sense(
    tmp_path: Path,
) -> None:
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    home = {"BAKEOFF_HOME": str(tmp_path / "home")}
    made = ("tiny-pictures", "--samples", "100")
    assert bakeoff("data", "create", *made, cwd=tmp_path, **home).returncode == 0
    planned = bakeoff("plan", "study.toml", cwd=tmp_path, **home).stdout
    assert "only root can drop" in planned
    assert "reader = open reads nothing: it belongs to the workload open-files" in planned
    assert "torch" in planned.partition("Left out")[2]
    done = bakeoff("run", "study.toml", cwd=tmp_path, **home)
    assert done.returncode == 0, done.stderr
    assert "files/s" in done.stdout
