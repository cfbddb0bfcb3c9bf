"""Read made sets through the epochs of a trial: every reader, audited and proved."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from harness.data.create import create
from harness.data.sets import DataSetSpec
from harness.worker.contracts import Unsupported
from harness.worker.input.dataset import Dataset
from harness.worker.input.evidence import page_cache
from harness.worker.input.loaders.loader import Batch
from harness.worker.input.open import opened, reading
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.scales import fed

WORKLOAD = Reading("read-tiny", "Tiny pictures", "tiny-pictures", 200)
ALONE = Place(0, 1, 0, 1, "here", "none")


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    for name in ("raw", "npy", "npz"):
        spec = DataSetSpec("tiny-pictures", name, 200)
        create(spec, folder / spec.name, doing=lambda _: None)
    return folder


def activity(sets: Path, **factors: Any) -> Any:
    factors = {"format": "npy", "reader": "pread", "batch": 32, **factors}
    folder = sets / f"tiny-pictures-{factors['format']}-200"
    feed = fed(WORKLOAD, factors, ALONE, folder)
    return reading(WORKLOAD, feed)


def epoch(work: Any) -> list[Batch]:
    taken = []
    while work.epochs.left():
        batch = work.epochs.next()
        taken.append(Batch(batch.samples, [bytes(one) for one in batch.data], batch.bytes))
    return taken


@pytest.mark.parametrize("reader", ["pread", "mmap", "threads"])
@pytest.mark.parametrize("file_format", ["raw", "npy"])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_every_reader_delivers_each_sample_s_own_bytes(
    sets: Path, reader: str, file_format: str, prefetch: int
) -> None:
    made = Dataset(str(sets / f"tiny-pictures-{file_format}-200"))
    work = activity(
        sets,
        format=file_format,
        reader=reader,
        reader_threads=3,
        prefetch=prefetch,
        shuffle="global",
    )
    work.epochs.turn()
    for batch in epoch(work):
        for sample, data in zip(batch.samples, batch.data, strict=True):
            path, offset, length = made.stretch(sample)
            assert data == Path(path).read_bytes()[offset : offset + length]
    told = work.epochs.turn()
    assert told["samples"] == 200
    assert told["bytes"] == 200 * 3072


@pytest.mark.parametrize("reader", ["pread", "mmap"])
def test_files_whose_samples_are_no_stretches_are_read_whole_in_pieces(
    sets: Path, reader: str
) -> None:
    made = Dataset(str(sets / "tiny-pictures-npz-200"))
    assert not made.has_index
    work = activity(sets, format="npz", reader=reader)
    work.epochs.turn()
    read = b"".join(data for batch in epoch(work) for data in batch.data)
    assert read == b"".join(Path(path).read_bytes() for path in made.paths)
    assert work.epochs.turn()["bytes"] == made.bytes > 200 * 3072


def test_a_file_that_became_shorter_ends_the_trial(sets: Path, tmp_path: Path) -> None:
    spec = DataSetSpec("tiny-pictures", "npy", 200)
    create(spec, tmp_path / spec.name, doing=lambda _: None)
    victim = sorted((tmp_path / spec.name / "files").iterdir())[1]
    victim.write_bytes(victim.read_bytes()[:-10])
    work = activity(tmp_path)
    work.epochs.turn()
    with pytest.raises(EOFError, match="bakeoff data check"):
        epoch(work)


def test_a_deliberately_cached_cold_epoch_is_called_warm(
    sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cheat(paths: list[str]) -> None:
        for path in paths:
            Path(path).read_bytes()

    monkeypatch.setattr(page_cache, "evict", cheat)
    work = activity(sets, cache="cold")
    work.epochs.turn()
    epoch(work)
    assert work.epochs.turn()["cache"] == "warm"


def test_an_epoch_after_eviction_is_called_cold_where_a_disk_is_below(sets: Path) -> None:
    if page_cache.file_system(str(sets)) not in ("ext4", "xfs", "btrfs"):
        pytest.skip("the temporary folder lies on no disk")
    work = activity(sets, cache="cold", format="raw", reader="mmap")
    work.epochs.turn()
    epoch(work)
    told = work.epochs.turn()
    assert (told["cache"], told["resident_before"]) == ("cold", 0)
    assert told["read_bytes"] >= told["bytes"]


def test_reading_around_the_cache_is_cold_whatever_it_holds(sets: Path) -> None:
    for name in ("raw", "npy"):
        made = Dataset(str(sets / f"tiny-pictures-{name}-200"))
        try:
            work = activity(sets, format=name, reader="direct", cache="warm", reader_threads=2)
        except Unsupported as why:
            assert "O_DIRECT" in str(why)  # noqa: PT017 the file system beneath decides
            pytest.skip(str(why))
        work.epochs.turn()
        for batch in epoch(work):
            for sample, data in zip(batch.samples, batch.data, strict=True):
                path, offset, length = made.stretch(sample)
                assert data == Path(path).read_bytes()[offset : offset + length]
        told = work.epochs.turn()
        assert told["cache"] == "cold"
        assert told["resident_before"] == made.bytes


def test_mincore_agrees_with_cachestat(sets: Path) -> None:
    import ctypes
    import os

    (path, *_) = Dataset(str(sets / "tiny-pictures-npy-200")).paths
    data = Path(path).read_bytes()
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY)
    stat = page_cache._cachestat(libc, descriptor)
    if stat is None:
        pytest.skip("this kernel has no cachestat")
    assert page_cache._mincore(libc, descriptor, len(data)) == stat.cache * 4096
    os.close(descriptor)


def test_a_set_that_is_not_finished_is_unsupported(sets: Path, tmp_path: Path) -> None:
    feed = fed(WORKLOAD, {"format": "npy", "reader": "pread"}, ALONE, tmp_path)
    with pytest.raises(Unsupported, match="no finished data set"):
        opened(feed)


def test_a_made_set_has_these_very_bytes(sets: Path) -> None:
    """Change this only with the makers: sets made before are other sets then."""
    made = Dataset(str(sets / "tiny-pictures-raw-200"))
    whole = hashlib.sha256(b"".join(Path(path).read_bytes() for path in made.paths)).hexdigest()
    assert whole[:16] == "e5b9b969e00c9189"


def test_a_burn_takes_a_processor_and_a_sleep_takes_none(sets: Path) -> None:
    taken = {}
    for kind in ("burn", "sleep"):
        work = activity(sets, compute=kind, compute_ms=40.0)
        begin, wall = time.thread_time(), time.monotonic()
        work.step()
        taken[kind] = time.thread_time() - begin
        assert time.monotonic() - wall > 0.02
    assert taken["burn"] > 0.02  # the calibration's best block is never half as long as the usual
    assert taken["sleep"] < 0.02
