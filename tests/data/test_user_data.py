"""Adopt files of a user's own: read in place, told apart, and never touched."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from pathlib import Path

import pytest

from harness.data.create import create
from harness.data.formats.tfrecord import crc32c
from harness.data.sets import DataSetSpec
from harness.data.user_data import UserData, adopt, changed
from harness.errors import BakeoffError, UsageError
from harness.worker.input import records
from harness.worker.input.dataset import MANIFEST, Dataset
from harness.worker.input.open import reading
from harness.worker.network.workload import Reading
from harness.worker.place import Place
from tests.cli.command import bakeoff
from tests.scales import fed

pytestmark = pytest.mark.io

ALONE = Place(0, 1, 0, 1, "here", "none")
SAMPLES = [bytes([number]) * (100 + number) for number in range(20)]
STUDY = """
title = "Whose files?"
[matrix]
workload = "read-pictures"
framework = "null"
reader = ["pread", "threads"]
reader_threads = 2
[measure]
trials = 1
warmup = "1 steps"
until = "1 steps"
tolerate = ["contended", "throttled", "stalled"]
reference = { reader = "pread" }
"""


def pictures(folder: Path) -> Path:
    for number, data in enumerate(SAMPLES):
        path = folder / f"kind{number % 3}" / f"{number:02d}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "labels.txt").write_text("not a picture")
    return folder


def tfrecords(folder: Path) -> Path:
    folder.mkdir()
    for shard, part in enumerate((SAMPLES[:15], SAMPLES[15:])):
        with (folder / f"train-{shard:05d}-of-00002").open("wb") as file:
            for data in part:
                foot = struct.pack("<I", records.masked(crc32c(data)))
                file.write(records.head(len(data)) + data + foot)
    return folder


def database(folder: Path) -> Path:
    import lmdb

    with lmdb.open(str(folder), map_size=1 << 20) as made, made.begin(write=True) as transaction:
        for number, data in enumerate(SAMPLES):
            transaction.put(b"n0144_%d" % number, data)
        transaction.put(b"__len__", b"20")
    (folder / "lock.mdb").unlink()
    return folder


MAKERS = {"raw": pictures, "tfrecord": tfrecords, "lmdb": database}


def quiet(_: str) -> None:
    pass


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Say all that could change of a folder; times of access do not count."""
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted([folder, *folder.rglob("*")])
    }


def delivered(own: UserData, reader: str) -> list[bytes]:
    workload = Reading("read-own", "One's own", "pictures", 1)
    factors = {"format": own.format, "reader": reader, "batch": 8, "shuffle": "global"}
    work = reading(workload, fed(workload, factors, ALONE, own.folder))
    work.epochs.turn()
    found = []
    while work.epochs.left():
        found += [bytes(one) for one in work.epochs.next().data]
    work.epochs.turn()
    return found


@pytest.mark.parametrize(
    ("form", "reader"),
    [
        *(("raw", reader) for reader in ("pread", "mmap", "threads")),
        *(("tfrecord", reader) for reader in ("pread", "threads")),
        ("lmdb", "threads"),
    ],
)
def test_every_sample_is_delivered_and_nothing_is_written(
    form: str, reader: str, tmp_path: Path
) -> None:
    there = MAKERS[form](tmp_path / "theirs")
    before = state(there)
    own = adopt(there, tmp_path / "ours", doing=quiet)
    assert (own.format, own.samples, own.largest) == (form, 20, 119)
    assert sorted(delivered(own, reader)) == sorted(SAMPLES)
    assert state(there) == before


def test_the_same_files_elsewhere_are_the_same_data_and_changed_ones_are_others(
    tmp_path: Path,
) -> None:
    one = adopt(pictures(tmp_path / "a"), tmp_path / "ours", doing=quiet)
    other = adopt(pictures(tmp_path / "b"), tmp_path / "ours", doing=quiet)
    assert one.digest == other.digest
    assert one.folder != other.folder
    assert changed(one.folder, one.root) is None
    (tmp_path / "a" / "kind0" / "00.JPEG").write_bytes(b"longer than it was before" * 9)
    assert "00.JPEG has changed" in (changed(one.folder, one.root) or "")
    assert adopt(tmp_path / "a", tmp_path / "ours", doing=quiet).digest != one.digest


def test_a_link_that_leads_back_is_walked_once(tmp_path: Path) -> None:
    there = pictures(tmp_path / "theirs")
    (there / "kind0" / "up").symlink_to(there)
    assert adopt(there, tmp_path / "ours", doing=quiet).samples == 20


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2}', "[" * 50_000, '{"files": [3]}'])
def test_a_description_that_was_damaged_is_made_anew_or_refused_by_name(
    text: str, tmp_path: Path
) -> None:
    kept, root = tmp_path / "kept", pictures(tmp_path)
    own = adopt(root, kept, doing=quiet)
    manifest = own.folder / MANIFEST
    whole = manifest.read_bytes()
    manifest.write_text(text)
    with pytest.raises(BakeoffError, match=r"dataset.json is damaged, or of another version"):
        changed(own.folder, root)
    assert adopt(root, kept, doing=quiet) == own
    assert manifest.read_bytes() == whole


def cut(path: Path) -> Path:
    file = tfrecords(path) / "train-00001-of-00002"
    file.write_bytes(file.read_bytes()[:-9])
    return path


def damaged(path: Path) -> Path:
    file = tfrecords(path) / "train-00000-of-00002"
    data = bytearray(file.read_bytes())
    data[116] ^= 1  # the second record's length
    file.write_bytes(data)
    return path


def cut_database(path: Path) -> Path:
    file = database(path) / "data.mdb"
    file.write_bytes(file.read_bytes()[: 2 * 4096 + 100])
    return path


def empty_picture(path: Path) -> Path:
    (pictures(path) / "kind1" / "void.jpg").touch()
    return path


def compressed(path: Path) -> Path:
    path.mkdir()
    (path / "a.tfrecord.gz").write_bytes(b"\x1f\x8b\x08" + bytes(30))
    return path


def leveldb(path: Path) -> Path:
    """What a program that has just filled one leaves: tables, and its last writes in the log."""
    create(DataSetSpec("tiny-pictures", "leveldb", 4), path.parent / "made", doing=quiet)
    shutil.copytree(path.parent / "made" / "files", path)
    (path / "000004.log").write_bytes(b"a batch of writes")
    (path / "000006.log").touch()
    return path


def strange(path: Path) -> Path:
    path.mkdir()
    (path / "notes.md").write_text("nothing to read here, move on")
    return path


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path, "there is nothing at"),
        (strange, r"none of what is read here: pictures in folders \(an ImageFolder\), TFRecord"),
        (compressed, "compressed"),
        (cut, "train-00001-of-00002 ends in the middle of record 4"),
        (damaged, "train-00000-of-00002: record 1 is damaged, at byte 116"),
        (cut_database, r"data\.mdb is no LMDB that can be read"),
        (
            leveldb,
            r"is a LevelDB, with writes that are still in its log \(000004\.log\)\. .* an LMDB",
        ),
        (empty_picture, r"void\.jpg is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(make, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        adopt(make(tmp_path / "theirs"), tmp_path / "ours", doing=quiet)


def test_a_study_reads_them_from_the_command_line_and_refuses_to_go_on_once_they_changed(
    tmp_path: Path,
) -> None:
    there = pictures(tmp_path / "theirs")
    before = state(there)
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    where = {"cwd": tmp_path, "BAKEOFF_HOME": str(tmp_path / "home")}
    done = bakeoff("run", "study.toml", "--name", "own", "--data", str(there), **where)
    assert done.returncode == 0, done.stderr
    assert f"2 of 2 cells read 20 pictures under {there}, in place" in done.stderr
    assert state(there) == before
    run = tmp_path / "runs" / "own"
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    assert [(cell["factors"]["format"], cell["factors"]["samples"]) for cell in plan["cells"]] == [
        ("raw", 20)
    ] * 2
    assert plan["study"]["title"] == f"Whose files? (20 pictures under {there})"
    (there / "kind0" / "00.JPEG").write_bytes(b"other")
    for outcome in run.glob("cells/*/trial-1/outcome.json"):
        outcome.unlink()
    done = bakeoff("resume", "own", **where)
    assert done.returncode == 1
    assert "00.JPEG has changed since this run was planned" in done.stderr


def test_what_reads_no_files_or_other_ones_says_so(tmp_path: Path) -> None:
    there = pictures(tmp_path / "theirs")
    where = {"cwd": tmp_path, "BAKEOFF_HOME": str(tmp_path / "home")}
    (tmp_path / "idle.toml").write_text(
        'title = "Idle"\n[matrix]\nworkload = "nothing"\nframework = "null"\n', "utf-8"
    )
    done = bakeoff("plan", "idle.toml", "--data", str(there), **where)
    assert done.returncode == 2
    assert "no cell of this plan reads files" in done.stderr
    (tmp_path / "study.toml").write_text(
        STUDY.replace('"read-pictures"', '"read-pictures"\nformat = ["raw", "lmdb"]'), "utf-8"
    )
    done = bakeoff("plan", "study.toml", "--data", str(there), **where)
    assert "are raw, not lmdb" in done.stdout, done.stderr


TRAINED = """
title = "Trained on whose?"
[matrix]
workload = "tinycnn"
framework = ["torch", "jax"]
input = "files"
decode = true
"""


def beside(folder: Path) -> Path:
    (pictures(folder) / "stray.jpg").write_bytes(b"in no folder")
    return folder


def many(folder: Path) -> Path:
    for number in range(11):
        (folder / f"c{number}").mkdir(parents=True)
        (folder / f"c{number}" / "a.webp").write_bytes(b"a picture")
    return folder


def webp(folder: Path) -> Path:
    (pictures(folder) / "kind0" / "new.webp").write_bytes(b"a picture")
    return folder


@pytest.mark.parametrize(
    ("make", "change", "why"),
    [
        (pictures, ("true", "false"), "are encoded pictures: tinycnn trains on them with decode ="),
        (beside, ("", ""), "they lie in no folders by class (at least two, and none beside them)"),
        (many, ("", ""), "they have 11 classes, and it tells 10 apart"),
        (many, ('tinycnn"', 'alexnet"\nreader = "pread"'), "decoded in the DataLoader's processes"),
        (webp, ("torch", "tensorflow"), "tf-data decodes .jpeg, .jpg, .png here, and"),
        (pictures, ("tinycnn", "neuron-inverter"), "it takes no pictures, or tells no classes"),
        (tfrecords, ("", ""), "come without classes that are read here, so tinycnn cannot be"),
        (database, ("", ""), "it can on pictures in folders, one for each class, or on made data"),
        (pictures, ("", ""), "jax does not offer decode true"),
    ],
)
def test_what_cannot_be_trained_on_says_why(
    make, change: tuple[str, str], why: str, tmp_path: Path
) -> None:
    there = make(tmp_path / "theirs")
    (tmp_path / "train.toml").write_text(TRAINED.replace(*change) if change[0] else TRAINED)
    where = {"cwd": tmp_path, "BAKEOFF_HOME": str(tmp_path / "home")}
    done = bakeoff("plan", "train.toml", "--data", str(there), **where)
    assert why in " ".join((done.stdout + done.stderr).split())


def test_a_plan_names_the_classes_that_are_trained_on(tmp_path: Path) -> None:
    there = pictures(tmp_path / "theirs")
    own = adopt(there, tmp_path / "ours", doing=quiet)
    assert own.classes == ("kind0", "kind1", "kind2")
    targets = Dataset(str(own.folder)).targets()
    names = [Path(path).parent.name for path in Dataset(str(own.folder)).paths]
    assert [own.classes[number] for number in targets] == names
    (tmp_path / "train.toml").write_text(TRAINED)
    where = {"cwd": tmp_path, "BAKEOFF_HOME": str(tmp_path / "home")}
    said = bakeoff("plan", "train.toml", "--data", str(there), **where).stdout
    assert "Trained on 3 classes, by folder: kind0, kind1, kind2." in said
