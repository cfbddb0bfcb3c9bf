"""Write every format and read it back, with our reader and with whoever made it."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.data.catalogue import CONTENTS, FORMATS
from harness.data.contents import sample
from harness.data.create import create
from harness.data.formats import leveldb as leveldb_files
from harness.data.formats import tfrecord
from harness.data.sets import DataSetSpec
from harness.worker.attribution.protobuf import fields, varint
from harness.worker.input import records
from harness.worker.input.dataset import Dataset
from harness.worker.input.datum import DATA, ENCODED, LABEL
from harness.worker.input.open import container
from harness.worker.readers.leveldb import FOOTER, Table, key_of

COUNT = 70
PAIRS = [
    (content, file_format)
    for content in ("tiny-pictures", "small-pictures")
    for file_format in FORMATS
    if CONTENTS[content].fits(file_format) is None
]


def made(folder: Path, content: str, file_format: str, count: int = COUNT) -> Dataset:
    create(DataSetSpec(content, file_format, count), folder / "set", doing=lambda _: None)
    return Dataset(str(folder / "set"))


@pytest.mark.parametrize(("content", "file_format"), PAIRS)
def test_what_was_written_is_read(tmp_path: Path, content: str, file_format: str) -> None:
    count = COUNT if content == "tiny-pictures" else 3
    dataset = made(tmp_path, content, file_format, count)
    reader = container(dataset)
    into = memoryview(bytearray(dataset.manifest["largest"]))
    for number in (0, count - 1, count // 2):
        expected = sample(CONTENTS[content], 1, number)
        length = reader.read(number, into)
        assert bytes(into[:length]) == expected.data
        assert dataset.targets()[number] == expected.target
        if dataset.has_index:
            path, offset, size = dataset.stretch(number)
            assert Path(path).read_bytes()[offset : offset + size] == expected.data


def test_numpy_reads_our_npz(tmp_path: Path) -> None:
    dataset = made(tmp_path, "tiny-pictures", "npz")
    with np.load(dataset.paths[1]) as archive:
        assert archive["x"].shape == (6, 3, 32, 32)
        assert archive["x"][5].tobytes() == sample(CONTENTS["tiny-pictures"], 1, 69).data


def test_tar_itself_reads_our_shards(tmp_path: Path) -> None:
    dataset = made(tmp_path, "small-pictures", "tar", 3)
    with tarfile.open(dataset.paths[0]) as archive:
        assert archive.getnames() == ["000000000.jpg", "000000001.jpg", "000000002.jpg"]
        member = archive.extractfile("000000001.jpg")
        assert member is not None
        assert member.read() == sample(CONTENTS["small-pictures"], 1, 1).data


@pytest.fixture
def leveldb() -> Any:
    return pytest.importorskip("plyvel", reason="it has no wheel for this Python")


def test_leveldb_itself_reads_ours_and_writes_the_same_tables(tmp_path: Path, leveldb: Any) -> None:
    dataset = made(tmp_path, "tiny-pictures", "leveldb", 1400)
    files = tmp_path / "set" / "files"
    tables = [f"{number:06d}.ldb" for number in (1, 2, 3)]  # 0 is no file's number
    assert sorted(path.name for path in files.iterdir()) == [*tables, "CURRENT", "MANIFEST-000001"]
    shutil.copytree(files, tmp_path / "copy")
    held = leveldb.DB(str(tmp_path / "copy"), paranoid_checks=True)
    pairs = list(held.iterator(verify_checksums=True))
    assert [key for key, _ in pairs] == [b"%09d" % number for number in range(1400)]
    told = held.get_property(b"leveldb.stats").decode()
    assert told.splitlines()[3].split()[:2] == ["6", "3"]  # nothing was merged as it was opened
    held.close()
    own = leveldb.DB(
        str(tmp_path / "own"), create_if_missing=True, block_size=65536, compression=None
    )
    for key, value in pairs[: dataset.held[0]]:
        own.put(key, value)
    own.compact_range()
    own.close()
    (table,) = (tmp_path / "own").glob("*.ldb")
    assert table.read_bytes() == Path(dataset.paths[0]).read_bytes()


def test_so_many_tables_that_their_list_crosses_a_block_are_read(
    tmp_path: Path, leveldb: Any
) -> None:
    one = {"bytes": 100, "samples": 3}
    manifest, current = leveldb_files.close([one] * 2000)
    assert len(manifest) > 2 * 32768
    place = tmp_path / "many"
    place.mkdir()
    for name, data in zip(leveldb_files.CLOSING, (manifest, current), strict=True):
        (place / name).write_bytes(data)
    # It tells them by their numbers alone, of which MANIFEST has one, too.
    with pytest.raises(leveldb.CorruptionError, match="1999 missing files"):
        leveldb.DB(str(place), paranoid_checks=True)


def test_a_table_that_is_not_among_the_last_hundred_is_opened_again(tmp_path: Path) -> None:
    spec = DataSetSpec("tiny-pictures", "leveldb", 220, per_file=2)
    create(spec, tmp_path / "set", doing=lambda _: None)
    dataset = Dataset(str(tmp_path / "set"))
    reader, into = container(dataset), memoryview(bytearray(dataset.manifest["largest"]))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in (*range(220), 0, 219):
        length = reader.read(number, into)
        assert bytes(into[:length]) == sample(CONTENTS["tiny-pictures"], 1, number).data
    assert len(list(Path("/proc/self/fd").iterdir())) - before == 100


def test_a_block_that_a_library_compressed_is_refused(tmp_path: Path) -> None:
    path = Path(made(tmp_path, "tiny-pictures", "leveldb").paths[0])
    data = bytearray(path.read_bytes())
    at, footer = 0, memoryview(data)[-FOOTER:]
    places = []
    for _ in range(4):
        one, at = varint(footer, at)
        places.append(one)
    data[sum(places[2:])] = 1  # behind the index: snappy
    path.write_bytes(data)
    with pytest.raises(ValueError, match="compressed block, which nothing here wrote; `bakeoff"):
        Table(str(path))


def test_an_encoded_picture_is_said_to_be_one(tmp_path: Path) -> None:
    dataset = made(tmp_path, "small-pictures", "leveldb", 2)
    stored = Table(dataset.paths[0]).value(key_of(1))
    one = sample(CONTENTS["small-pictures"], 1, 1)
    assert list(fields(stored)) == [(LABEL, one.target), (ENCODED, 1), (DATA, one.data)]


def test_a_picture_is_a_picture(tmp_path: Path) -> None:
    from PIL import Image

    one = sample(CONTENTS["small-pictures"], 1, 4)
    with Image.open(io.BytesIO(one.data)) as picture:
        assert picture.format == "JPEG"
        assert min(picture.size) >= 48


def test_the_checksum_is_crc32c() -> None:
    """The check value of the Castagnoli polynomial (RFC 3720, B.4, and its catalogue entry)."""
    assert records.crc32c(b"123456789") == 0xE3069283
    assert records.crc32c(b"\0" * 32) == 0x8A9136AA


def test_the_checksum_in_lanes_is_the_same() -> None:
    data = np.random.Philox(key=1).random_raw(40_000).tobytes()
    for length in (0, 1, 262_143, 262_144, 300_001):
        assert tfrecord.crc32c(data[:length]) == records.crc32c(data[:length])
