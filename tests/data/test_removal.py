"""Remove data sets as a user does: only what making them wrote is ever deleted."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import lmdb
import pytest

from harness.data import removal
from harness.data.create import create
from harness.data.inspect import faults
from harness.data.lock import claimed
from harness.data.removal import remove
from harness.data.sets import MADE, DataSetSpec
from harness.data.user_data import adopt
from harness.errors import BakeoffError
from tests.cli.command import bakeoff

pytestmark = pytest.mark.io
SPEC = DataSetSpec("tiny-pictures", "npy", 130)


def made(folder: Path) -> Path:
    create(SPEC, folder / SPEC.name, doing=lambda _: None)
    return folder / SPEC.name


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("manifest", ["", "{}", '{"version": 1, "files": []}', "made by hand"])
@pytest.mark.parametrize("name", ["dataset.json", MADE])
def test_a_folder_that_is_no_data_set_is_left_alone(
    tmp_path: Path, name: str, manifest: str
) -> None:
    thesis = tmp_path / "thesis"
    (thesis / "files").mkdir(parents=True)
    (thesis / "files" / "000000.jpg").write_text("the only picture")
    (thesis / "thesis.tex").write_text("years")
    (thesis / name).write_text(manifest)
    before = everything(tmp_path)
    with pytest.raises(BakeoffError, match="no data set; nothing was removed"):
        remove(thesis)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../sets"])
def test_a_set_is_called_by_its_name_and_by_no_path(tmp_path: Path, name: str) -> None:
    sets = tmp_path / "sets"
    made(sets)
    before = everything(tmp_path)
    for verb in ("remove", "check"):
        done = bakeoff("data", verb, name, "--at", str(sets), cwd=tmp_path)
        assert done.returncode == 2
        assert f"'{name}' is no data set's name" in done.stderr
    assert everything(tmp_path) == before


def test_a_set_goes_and_what_somebody_put_into_it_stays(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "thesis.tex").write_text("years")
    (folder / "files" / "mine.npy").write_text("also")
    (folder / "files" / "000003.npy").write_text("the set has files 0 to 2")
    done = bakeoff("data", "remove", SPEC.name, "--at", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0
    assert f"Removed {SPEC.name} (4" in done.stderr
    assert (
        "stays, with what is not the set's: files/000003.npy, files/mine.npy, thesis.tex."
        in done.stderr
    )
    assert everything(folder) == ["files", "files/000003.npy", "files/mine.npy", "thesis.tex"]


def test_a_set_that_is_only_one_is_gone_and_its_bytes_are_told(tmp_path: Path) -> None:
    assert remove(made(tmp_path)).bytes > 130 * 3072
    assert everything(tmp_path) == []


def test_a_database_goes_with_what_closes_it(tmp_path: Path) -> None:
    spec = DataSetSpec("tiny-pictures", "leveldb", 1400)
    folder = tmp_path / spec.name
    create(spec, folder, doing=lambda _: None)
    for name in ("CURRENT", "MANIFEST-000001", "000002.ldb"):
        kept = (folder / "files" / name).read_bytes()
        (folder / "files" / name).write_bytes(bytes(len(kept)))
        (wrong,) = faults(folder, doing=lambda _: None)
        assert f"{name} has other content than was written" in wrong
        (folder / "files" / name).write_bytes(kept)
    (folder / "files" / "LOCK").write_text("of a program that opened it")
    assert faults(folder, doing=lambda _: None) == ["LOCK does not belong to it"]
    assert remove(folder).left == ("files/LOCK",)


def test_a_link_to_a_set_is_none(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(BakeoffError, match="no data set"):
        remove(tmp_path / "link")
    assert (folder / "dataset.json").is_file()


def test_a_set_that_is_being_made_is_not_removed_and_not_made_twice(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "dataset.json").rename(folder / MADE)  # as removing leaves it when it is killed
    with (folder / MADE).open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for verb in (["remove", SPEC.name], ["create", "tiny-pictures", "--format=npy"]):
            more = ["--samples=130"] if verb[0] == "create" else []
            done = bakeoff("data", *verb, *more, "--at", str(tmp_path), cwd=tmp_path)
            assert done.returncode == 1
            assert "another command is making or removing this data set" in done.stderr
            assert "Traceback" not in done.stderr
    assert remove(folder).left == ()
    assert everything(tmp_path) == []


def test_what_somebody_holds_while_a_set_is_finished_is_not_removed(tmp_path: Path) -> None:
    """The manifest is there, and whoever made the set has not let go of it yet."""
    folder = made(tmp_path)
    before = everything(tmp_path)
    with claimed(folder), pytest.raises(BakeoffError, match="another command is making"):
        remove(folder)
    (folder / MADE).unlink()
    assert everything(tmp_path) == before


def test_a_log_that_was_deleted_while_one_waited_for_it_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, taken = fcntl.flock, []

    def deleted(log: Any, how: int) -> None:
        taken.append(log)
        if len(taken) == 1:  # who had it ends just now
            (tmp_path / MADE).unlink()
        real(log, how)

    monkeypatch.setattr(fcntl, "flock", deleted)
    with claimed(tmp_path) as log:
        assert os.path.samestat(os.fstat(log.fileno()), (tmp_path / MADE).stat())
    assert len(taken) == 2


def test_a_half_removed_set_can_be_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path)

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(removal, "_own", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(folder)
    assert not (folder / "dataset.json").exists()
    assert remove(folder).left == ()
    assert everything(tmp_path) == []


@pytest.mark.parametrize("torn", ["", '{"version": 4, "cont'])
def test_a_set_whose_log_a_crash_spoilt_is_removed_if_nothing_else_is_in_its_folder(
    tmp_path: Path, torn: str
) -> None:
    folder = made(tmp_path)
    (folder / "dataset.json").unlink()
    (folder / MADE).write_text(torn)
    (folder / "files" / ".000002.npy.new").write_text("half")
    (folder / "files" / "mine.npy").write_text("mine")
    with pytest.raises(BakeoffError, match="no data set; nothing was removed"):
        remove(folder)
    (folder / "files" / "mine.npy").unlink()
    assert remove(folder).left == ()
    assert everything(tmp_path) == []


def test_a_description_of_somebody_s_files_is_checked_and_goes_without_them(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    with (
        lmdb.open(str(theirs), map_size=1 << 20) as made,
        made.begin(write=True) as transaction,
    ):
        transaction.put(b"a key", b"a value")
    before = everything(theirs)
    own = adopt(theirs, tmp_path / "ours", doing=lambda _: None)
    assert faults(own.folder, doing=lambda _: None) == []
    keys = own.folder / "keys"
    keys.write_bytes(keys.read_bytes()[:-1] + b"z")
    wrong = ["keys has other content than was written"]
    assert faults(own.folder, doing=lambda _: None) == wrong
    assert remove(own.folder).left == ()
    assert everything(theirs) == before
    assert everything(tmp_path / "ours") == []
