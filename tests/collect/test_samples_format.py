"""Hold the samples format to its promise: frames are read whole or not at all."""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from harness.store.samples import sample_parquet, samples_format
from harness.store.samples.recording import Recording, read_recording
from harness.store.samples.samples_format import Anchor, Channel, Declared, Header, Note, Sample

NUMBERS = some.integers(-(1 << 63), (1 << 63) - 1) | some.sampled_from(list(samples_format.GAPS))
TEXTS = some.text(max_size=20)
CHANNELS = some.builds(
    Channel,
    name=TEXTS,
    unit=TEXTS,
    kind=some.sampled_from(["counter", "gauge", "flags"]),
    scope=TEXTS,
    scale=some.floats(1e-12, 1e12),
    wraps=some.none() | some.integers(1, 1 << 64),
    meaning=TEXTS,
)
FRAMES = some.one_of(
    some.builds(
        Declared,
        id=some.integers(0, 65535),
        source=TEXTS,
        period_ns=NUMBERS,
        first_due_ns=NUMBERS,
        channels=some.lists(CHANNELS, max_size=4).map(tuple),
    ),
    some.builds(
        Sample,
        group=some.integers(0, 65535),
        tick=some.integers(0, (1 << 32) - 1),
        t_before=NUMBERS,
        t_after=NUMBERS,
        raw=some.lists(NUMBERS, max_size=40).map(tuple),
    ),
    some.builds(Anchor, before=NUMBERS, wall=NUMBERS, after=NUMBERS),
)


def write(frame: Any) -> bytes:
    if isinstance(frame, Declared):
        return samples_format.declare(frame)
    if isinstance(frame, Sample):
        return samples_format.sample(
            frame.group, frame.tick, frame.t_before, frame.t_after, frame.raw
        )
    return samples_format.anchor(frame.before, frame.wall, frame.after)


def read(data: bytes) -> list[Any]:
    return [frame for frame, _ in samples_format.frames(data)]


@settings(max_examples=60, deadline=None)
@given(some.lists(FRAMES, max_size=8))
def test_what_is_written_is_read_back(frames: list[Any]) -> None:
    data = samples_format.header(node="here") + b"".join(map(write, frames))
    assert read(data) == [Header({"version": 1, "node": "here"}), *frames]


@settings(max_examples=60, deadline=None)
@given(some.lists(FRAMES, min_size=1, max_size=5), some.data())
def test_a_file_cut_anywhere_is_read_up_to_its_last_whole_frame(
    frames: list[Any], data: Any
) -> None:
    parts = [samples_format.header(node="here"), *map(write, frames)]
    whole = b"".join(parts)
    cut = data.draw(some.integers(len(parts[0]), len(whole)))
    ends = [sum(map(len, parts[: count + 1])) for count in range(len(parts))]
    kept = sum(end <= cut for end in ends)
    assert len(read(whole[:cut])) == kept


@settings(max_examples=60, deadline=None)
@given(some.lists(FRAMES, min_size=2, max_size=5), some.data())
def test_a_damaged_frame_ends_what_is_believed(frames: list[Any], data: Any) -> None:
    parts = [samples_format.header(node="here"), *map(write, frames)]
    whole = bytearray(b"".join(parts))
    at = data.draw(some.integers(len(parts[0]), len(whole) - 1))
    whole[at] ^= 1 << data.draw(some.integers(0, 7))
    told = read(bytes(whole))
    before = sum(sum(map(len, parts[: count + 1])) <= at for count in range(len(parts)))
    assert told == [Header({"version": 1, "node": "here"}), *frames][:before]


@settings(max_examples=10, deadline=None)
@given(some.lists(some.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5))
def test_a_table_holds_every_raw_number_and_why_one_is_missing(raw: list[tuple[int, int]]) -> None:
    channels = tuple(Channel(name, "J", "counter", "gpu:x", 1e-3) for name in "ab")
    data = samples_format.header() + samples_format.declare(Declared(0, "s", 1, 0, channels))
    data += b"".join(
        samples_format.sample(0, tick, tick, tick + 2, row) for tick, row in enumerate(raw)
    )
    with TemporaryDirectory() as folder:
        Path(folder, "s.bin").write_bytes(data)
        recording = read_recording(Path(folder, "s.bin"))
        assert recording is not None
        Path(folder, "s.parquet").write_bytes(sample_parquet.as_parquet(recording, "here"))
        rows = duckdb.execute(
            f"SELECT channel, t_ns, raw, gap FROM '{folder}/s.parquet'"
        ).fetchall()
    assert sorted(rows) == sorted(
        (name, tick + 1, row[at], samples_format.GAPS.get(row[at]))
        for tick, row in enumerate(raw)
        for at, name in enumerate("ab")
    )


def test_a_frame_of_an_unknown_kind_is_passed_over() -> None:
    unknown = samples_format._frame(ord("Z"), b"what a later version may add")
    data = samples_format.header() + unknown + samples_format.note("after", t=1)
    assert read(data)[1:] == [Note({"what": "after", "t": 1})]


def test_a_number_too_large_becomes_a_gap() -> None:
    data = samples_format.header() + samples_format.sample(0, 0, 1, 2, [7, 1 << 63])
    assert read(data)[1].raw == (7, samples_format.OUT_OF_RANGE)


def test_what_is_no_samples_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a samples file"):
        read(b"something else")


def test_a_newer_version_is_refused() -> None:
    data = samples_format.header().replace(b'"version":1', b'"version":2')
    body = data[len(samples_format.MAGIC) + 5 : -4]
    with pytest.raises(ValueError, match="Update bakeoff"):
        read(samples_format.MAGIC + samples_format._frame(ord("H"), body))


def test_a_table_is_made_where_a_signal_cannot_end_it_as_an_error_of_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = []
    fill = sample_parquet.tables.fill

    def watched(*filling: Any) -> None:
        threads.append(threading.current_thread())
        fill(*filling)

    monkeypatch.setattr(sample_parquet.tables, "fill", watched)
    sample_parquet.as_parquet(Recording({}, (), (), (), True, {}), "here")
    assert threads
    assert threading.main_thread() not in threads


def test_a_counter_of_64_bits_is_read_back() -> None:
    group = Declared(
        0, "gpu", 1, 0, (Channel("gpu.energy", "J", "counter", "gpu:x", wraps=1 << 64),)
    )
    assert read(samples_format.header() + samples_format.declare(group))[1:] == [group]
