"""Files below a folder are read and written where they are, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from harness.errors import DamagedFile, RunError
from harness.store.contained import Contained

SECRET = '{"secret": 1}'


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    (place / "inner").mkdir(parents=True)
    (place / "file").write_text(SECRET)
    (place / "inner" / "file").write_text(SECRET)
    return place


@pytest.fixture
def files(tmp_path: Path) -> Contained:
    (tmp_path / "run").mkdir()
    return Contained(tmp_path / "run")


READERS: dict[str, Callable[[Contained, Path], object]] = {
    "bytes": lambda files, path: files.read_bytes(path),
    "text": lambda files, path: files.read_text(path),
    "end": lambda files, path: files.read_end(path, 10),
    "begin": lambda files, path: files.read_begin(path, 10),
    "json": lambda files, path: files.read_json(path),
    "lines": lambda files, path: list(files.lines(path)),
    "checked": lambda files, path: files.checked(path, 10),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", ["link", "folder link", "pipe", "folder", "out"])
def test_what_is_no_file_of_the_folder_is_not_read(
    files: Contained, outside: Path, read: Callable[[Contained, Path], object], kind: str
) -> None:
    path = files.root / "file"
    if kind == "link":
        path.symlink_to(outside / "file")
    elif kind == "folder link":
        (files.root / "sub").symlink_to(outside)
        path = files.root / "sub" / "inner" / "file"
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path = files.root / "cells" / ".." / ".." / "outside" / "file"
    with pytest.raises(DamagedFile, match=str(files.root)):
        read(files, path)


WRITERS: dict[str, Callable[[Contained, Path], object]] = {
    "write": lambda files, path: files.write(path, "mine"),
    "append": lambda files, path: files.append_line(path, "mine"),
    "writing": lambda files, path: files.writing(path).close(),
    "rename": lambda files, path: files.rename(files.root / "other", path),
    "remove": lambda files, path: files.remove(path),
    "remove folder": lambda files, path: (
        files.remove(path.parent) if path.parent != files.root else None
    ),
    "make folder": lambda files, path: files.make_folder(path / "more"),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("way", ["link", "folder link", "link to nothing", "out"])
def test_nothing_outside_the_folder_is_ever_changed(
    files: Contained, outside: Path, write: Callable[[Contained, Path], object], way: str
) -> None:
    path = files.root / "file"
    (files.root / "other").write_text("other")
    if way == "link":
        path.symlink_to(outside / "file")
    elif way == "link to nothing":
        path.symlink_to(outside / "new")
    elif way == "folder link":
        (files.root / "sub").symlink_to(outside)
        path = files.root / "sub" / "inner" / "file"
    else:
        path = files.root / ".." / "outside" / "file"
    with suppress(RunError):
        write(files, path)
    assert sorted(one.name for one in outside.rglob("*")) == ["file", "file", "inner"]
    assert (outside / "file").read_text() == (outside / "inner" / "file").read_text() == SECRET


def test_the_folder_itself_may_be_a_link(files: Contained, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(files.root)
    through = Contained(tmp_path / "alias")
    through.write_json(tmp_path / "alias" / "a.json", {"a": 1})
    assert files.read_object(files.root / "a.json") == {"a": 1}


def test_a_name_planted_beside_a_file_is_not_written_to(files: Contained, outside: Path) -> None:
    (files.root / ".report.html.new").symlink_to(outside / "file")
    files.write(files.root / "report.html", "page")
    assert (outside / "file").read_text() == SECRET
    assert (files.root / "report.html").read_text() == "page"
    assert not (files.root / "report.html").is_symlink()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN is no number"),
        ('{"a": 18446744073709551616}', "beyond 64 bits"),
        ('{"a": 1' + "0" * 5000 + "}", "damaged"),
        ("{", "damaged"),
        ("\0" * 40, "damaged"),
    ],
    ids=["nested", "NaN", "64 bits", "5,000 digits", "cut", "zeros"],
)
def test_damaged_json_is_named_and_nothing_else_goes_wrong(
    files: Contained, content: str, words: str
) -> None:
    (files.root / "a.json").write_text(content)
    with pytest.raises(DamagedFile, match=rf"a\.json.*{words}"):
        files.read_json(files.root / "a.json")


def test_whole_numbers_of_64_bits_and_long_fractions_are_read(files: Contained) -> None:
    files.write(files.root / "a.json", f"[{2**64 - 1}, 0.{'1' * 30}]")
    assert files.read_json(files.root / "a.json") == [2**64 - 1, float("0." + "1" * 30)]


def test_a_sparse_file_of_a_terabyte_is_refused_by_its_size(files: Contained) -> None:
    path = files.root / "outcome.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    for read in (files.read_json, files.read_bytes, files.read_text):
        with pytest.raises(DamagedFile, match="1099511627776 bytes are more than"):
            read(path)
    assert files.read_end(path, 3) == b"\0\0\0"


def test_lines_are_numbered_and_one_that_is_too_long_is_left_out(files: Contained) -> None:
    long = b"x" * (3 << 20)
    (files.root / "log").write_bytes(b"one\n" + long + b"\nthree\ncut")
    found = list(files.lines(files.root / "log"))
    assert found == [(1, b"one\n"), (3, b"three\n"), (4, b"cut")]
    assert list(files.lines(files.root / "absent")) == []


def test_a_line_after_one_that_a_crash_cut_short_stands_alone(files: Contained) -> None:
    (files.root / "log").write_text('{"a": 1}\n{"cut')
    files.append_line(files.root / "log", {"b": 2})
    assert (files.root / "log").read_text().splitlines() == ['{"a": 1}', '{"cut', '{"b": 2}']


def test_a_list_leaves_out_what_file_systems_and_unfinished_writes_leave(files: Contained) -> None:
    for name in (".DS_Store", "._a.json", "a.json", ".b.json.0123456789abcdef.new"):
        (files.root / name).write_text("")
    for name in ("trial-1", ".trial-2.new"):
        (files.root / name).mkdir()
    assert files.files(files.root) == ["a.json"]
    assert files.folders(files.root) == ["trial-1"]


def test_half_written_is_only_what_has_exactly_such_a_name(files: Contained, outside: Path) -> None:
    hexed = "0123456789abcdef"
    for name in (f".a.json.{hexed}.new", ".b.json.12.new", f".c.{hexed.upper()}.new", "d.new"):
        (files.root / name).write_text("")
    (files.root / ".trial-2.new").mkdir()
    for name in (f".link.{hexed}.new", ".linked.new"):
        (files.root / name).symlink_to(outside)
    assert files.unfinished(files.root) == {
        f".a.json.{hexed}.new": "a.json",
        ".trial-2.new": "trial-2",
    }


def test_links_are_listed_so_that_whoever_opens_them_is_told(
    files: Contained, outside: Path
) -> None:
    (files.root / "key").symlink_to(outside)
    assert files.folders(files.root) == ["key"]
    with pytest.raises(DamagedFile, match="key is a link where a folder belongs"):
        files.folders(files.root / "key")


def test_a_folder_that_has_gone_is_told_and_not_made_again(files: Contained) -> None:
    files.root.rename(files.root.with_name("moved"))
    for write in (
        lambda: files.append_line(files.root / "log", {}),
        lambda: files.write(files.root / "a", ""),
        lambda: files.make_folder(files.root / "cells" / "key"),
    ):
        with pytest.raises(RunError, match="Was it renamed, removed or unmounted"):
            write()
    assert not files.root.exists()
    assert not files.exists(files.root / "log")


def test_text_that_is_no_unicode_is_written_all_the_same(files: Contained) -> None:
    files.write(files.root / "page", "a\udcff b")
    assert files.read_text(files.root / "page") == "a\\udcff b"


def test_what_others_may_read_is_the_user_s_choice(files: Contained) -> None:
    before = os.umask(0o077)
    try:
        files.write(files.root / "a", "")
        files.append_line(files.root / "b", 1)
        files.make_folder(files.root / "c")
    finally:
        os.umask(before)
    modes = [(files.root / name).stat().st_mode & 0o777 for name in "abc"]
    assert modes == [0o600, 0o600, 0o700]


@pytest.mark.parametrize("root", [".", "/", "run", "../here/run"])
def test_a_root_may_be_named_in_any_way(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "run").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    files = Contained(Path(root))
    below = tmp_path / "here" if root == "/" else Path(root)
    files.write(below / "a.json", "1")
    assert files.read_json(below / "a.json") == 1
    outside = Path("b.json") if root == "/" else Path("/etc/passwd")
    with pytest.raises(DamagedFile, match="leads out"):
        files.read_bytes(outside)


WRITERS: dict[str, Callable[[Contained, Path], object]] = {
    "writing": lambda files, path: files.writing(path).close(),
    "a line": lambda files, path: files.append_line(path, {}),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_that_has_another_name_elsewhere_is_not_written_to(
    files: Contained, outside: Path, write: Callable[[Contained, Path], object]
) -> None:
    os.link(outside / "file", files.root / "file")
    with pytest.raises(DamagedFile, match="another name shares this file"):
        write(files, files.root / "file")
    assert (outside / "file").read_text() == SECRET
