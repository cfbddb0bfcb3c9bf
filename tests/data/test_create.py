"""Make data sets: the same in any order, going on where it stopped, never too large."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness.data import create as making
from harness.data import disk_space, make_files
from harness.data.catalogue import CONTENTS
from harness.data.contents import sample
from harness.data.create import create
from harness.data.inspect import faults
from harness.data.removal import remove
from harness.data.sets import MADE, DataSetSpec, began
from harness.errors import BakeoffError, UsageError
from tests.cli.command import bakeoff

ROOT = Path(__file__).resolve().parents[2]
SPEC = DataSetSpec("tiny-pictures", "npy", 130)


def quiet(_: str) -> None:
    pass


def hashes(folder: Path) -> list[str]:
    manifest = json.loads((folder / "dataset.json").read_text())
    return [one["sha256"] for one in manifest["files"]]


def test_a_sample_follows_from_content_seed_and_number_alone() -> None:
    content = CONTENTS["traces"]
    assert sample(content, 1, 7) == sample(content, 1, 7)
    assert sample(content, 1, 7) != sample(content, 1, 8)
    assert sample(content, 1, 7) != sample(content, 2, 7)


def test_an_interrupted_set_goes_on_and_ends_as_if_it_had_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(SPEC, tmp_path / "whole", doing=quiet)
    real, calls = make_files.write_part, []

    def interrupted(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(making, "write_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(SPEC, tmp_path / "cut", doing=quiet)
    with (tmp_path / "cut" / MADE).open("a") as log:
        log.write('{"name": "0000')  # and the crash tore a line
    monkeypatch.setattr(making, "write_part", lambda *args: calls.append(args) or real(*args))
    create(SPEC, tmp_path / "cut", doing=quiet)
    assert len(calls) == 4
    assert hashes(tmp_path / "cut") == hashes(tmp_path / "whole")
    assert faults(tmp_path / "cut", doing=quiet) == []


@pytest.mark.parametrize("torn", ["", '{"version": 4, "cont', "\0\0\0"])
def test_a_log_whose_first_line_a_crash_spoilt_says_again_what_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torn: str
) -> None:
    folder = tmp_path / SPEC.name
    (folder / "files").mkdir(parents=True)
    (folder / MADE).write_text(torn)

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(making, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            create(SPEC, folder, doing=quiet)
    said = began(folder)
    assert said is not None
    assert said["content"] == SPEC.content
    assert len(making._logged(folder)) == 3
    monkeypatch.setattr(making, "write_part", killed)  # nothing is made twice
    create(SPEC, folder, doing=quiet)
    assert faults(folder, doing=quiet) == []


def test_a_set_of_an_older_version_is_none_any_more_once_its_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / SPEC.name
    create(SPEC, folder, doing=quiet)
    manifest = json.loads((folder / "dataset.json").read_text())
    (folder / "dataset.json").write_text(json.dumps({**manifest, "version": 1}))

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "write_part", killed)
    with pytest.raises(KeyboardInterrupt):
        create(SPEC, folder, doing=quiet)
    assert not (folder / "dataset.json").exists()
    assert remove(folder).left == ()


def waits(_: int) -> None:
    """Say which process this is, and never come to an end."""
    print(os.getpid(), flush=True)
    signal.pause()


def test_what_makes_files_ends_when_its_command_is_killed() -> None:
    """Whoever makes some holds standard output open."""
    words = (
        "from harness.data.make_files import in_parallel; from tests.data.test_create import waits"
    )
    asked = [sys.executable, "-c", f"{words}; list(in_parallel(waits, [0, 1, 2, 3]))"]
    with subprocess.Popen(
        asked, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    ) as command:
        assert command.stdout is not None
        command.stdout.readline()
        command.kill()
        try:
            command.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)


def test_a_disk_that_fills_up_leaves_whole_files_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.data.formats import npy

    real = npy.write

    def full(path: Path, samples: Any, first: int, content: Any) -> Any:
        if first >= 64:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, samples, first, content)

    monkeypatch.setattr(npy, "write", full)
    with pytest.raises(BakeoffError, match="the disk is full; 1 files are kept"):
        create(SPEC, tmp_path / "set", doing=quiet)
    assert [p.name for p in (tmp_path / "set" / "files").iterdir()] == ["000000.npy"]
    monkeypatch.setattr(npy, "write", real)
    create(SPEC, tmp_path / "set", doing=quiet)
    assert faults(tmp_path / "set", doing=quiet) == []


def test_a_set_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BakeoffError, match="GB are free"):
        create(DataSetSpec("deep-volumes", "npy", 10**9), tmp_path / "set", doing=quiet)


def test_a_changed_a_missing_and_a_strange_file_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    create(SPEC, folder, doing=quiet)
    first, second, third = sorted((folder / "files").iterdir())
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    second.unlink()
    third.write_bytes(b"")
    (folder / "files" / "mine.txt").write_text("hello")
    assert faults(folder, doing=quiet) == [
        "000000.npy has other content than was written",
        "000001.npy is missing",
        "000002.npy has 0 bytes, not 6272",
        "mine.txt does not belong to it",
    ]


def test_pictures_do_not_go_into_arrays() -> None:
    with pytest.raises(UsageError, match="encoded pictures"):
        making.checked(DataSetSpec("pictures", "npy", 1))


def test_the_sizes_of_pictures_lie_around_their_median() -> None:
    sizes = sorted(len(sample(CONTENTS["small-pictures"], 1, number).data) for number in range(40))
    assert 10_000 < sizes[20] < 14_500
    assert sizes[0] < 9_000 < 16_000 < sizes[-1]


def test_no_picture_is_larger_than_what_buffers_are_planned_for() -> None:
    content = CONTENTS["small-pictures"]
    largest = max(len(sample(content, 1, number).data) for number in range(60))
    assert content.median_bytes < largest < content.most_bytes


@pytest.mark.parametrize("name", ["index", "targets", "imprints"])
@pytest.mark.parametrize("how", ["changed", "cut short", "gone"])
def test_what_lies_beside_the_files_is_checked_too(tmp_path: Path, name: str, how: str) -> None:
    folder = tmp_path / "set"
    create(SPEC, folder, doing=quiet)
    data = (folder / name).read_bytes()
    if how == "changed":
        (folder / name).write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
        assert faults(folder, doing=quiet) == [f"{name} has other content than was written"]
    elif how == "cut short":
        (folder / name).write_bytes(data[:-1])
        wrong = f"{name} has {len(data) - 1} bytes, not {len(data)}"
        assert faults(folder, doing=quiet) == [wrong]
    else:
        (folder / name).unlink()
        assert faults(folder, doing=quiet) == [f"{name} is missing"]


def test_a_file_that_a_crash_spoilt_is_made_anew_though_its_size_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "set"

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(making, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            create(SPEC, folder, doing=quiet)
    spoilt = folder / "files" / "000001.npy"
    spoilt.write_bytes(bytes(spoilt.stat().st_size))
    create(SPEC, folder, doing=quiet)
    assert faults(folder, doing=quiet) == []
    create(SPEC, tmp_path / "whole", doing=quiet)
    assert hashes(folder) == hashes(tmp_path / "whole")


def test_each_file_is_on_its_disk_before_it_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    note = making._note
    monkeypatch.setattr(
        make_files,
        "settle",
        lambda path: done.append(f"settled {re.sub('[.][0-9a-f]{16}[.]', '.*.', Path(path).name)}"),
    )
    monkeypatch.setattr(
        making,
        "_note",
        lambda log, told: done.append(f"noted {told.get('name')}") or note(log, told),
    )
    create(DataSetSpec("tiny-pictures", "npy", 65), tmp_path / "set", doing=quiet)
    assert done == [
        "noted None",
        "settled .000000.npy.*.new",
        "noted 000000.npy",
        "settled .000001.npy.*.new",
        "noted 000001.npy",
    ]


@pytest.mark.parametrize(
    ("content", "file_format"),
    [
        ("tiny-pictures", "raw"),
        ("tiny-pictures", "npy"),
        ("tiny-pictures", "lmdb"),
        ("tiny-pictures", "datum"),
        ("tiny-pictures", "leveldb"),
        ("small-pictures", "raw"),
        ("small-pictures", "lmdb"),
        ("small-pictures", "datum"),
        ("small-pictures", "leveldb"),
        ("traces", "raw"),
        ("traces", "lmdb"),
    ],
)
def test_what_a_set_takes_of_its_disk_was_foreseen(
    tmp_path: Path, content: str, file_format: str
) -> None:
    spec = DataSetSpec(content, file_format, 300 if content == "tiny-pictures" else 96)
    manifest = create(spec, tmp_path / "set", doing=quiet)
    taken = sum(-(-one["bytes"] // 4096) * 4096 for one in manifest["files"])
    holds = make_files.writer(spec).HOLDS
    expected = disk_space.expected_bytes(spec, CONTENTS[content], holds)
    assert taken <= expected + 100_000 <= 2 * taken + 200_000


def test_a_refusal_says_sizes_as_people_do_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(total=20_000_000, free=1_400_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    words = r"take about 829\.4 kB, and 1\.4 MB are free, of which 1 MB stay so"
    with pytest.raises(BakeoffError, match=words):
        create(DataSetSpec("tiny-pictures", "raw", 180), tmp_path / "a" / "set", doing=quiet)
    assert list(tmp_path.iterdir()) == []


def test_stripes_that_cannot_be_leave_no_folder(tmp_path: Path) -> None:
    arguments = ["tiny-pictures", "--samples=1", "--stripe-count=2", "--at", str(tmp_path / "a")]
    done = bakeoff("data", "create", *arguments, cwd=tmp_path, PATH="/nowhere")
    assert done.returncode == 1
    assert "lfs is no program here" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x"])
def test_a_place_that_can_hold_nothing_is_refused_in_one_sentence(
    tmp_path: Path, place: str
) -> None:
    arguments = ["tiny-pictures", "--samples=1", "--at", place]
    done = bakeoff("data", "create", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert place in done.stderr
    assert "Traceback" not in done.stderr
    for verb in ("check", "remove"):
        done = bakeoff("data", verb, "some-set", "--at", place, cwd=tmp_path)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
