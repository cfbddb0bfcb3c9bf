"""Tokens: made by Zipf's law, or a user's own file, whose faults have one message each."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.data.catalogue import CONTENTS
from harness.data.contents import tokens
from harness.data.create import create
from harness.data.inspect import faults
from harness.data.removal import remove
from harness.data.sets import DataSetSpec
from harness.data.user_data import UserData, adopt, changed
from harness.errors import UsageError
from harness.worker.input.dataset import MANIFEST, Dataset
from tests.cli.command import bakeoff

pytestmark = pytest.mark.io


def quiet(_: str) -> None:
    pass


def drawn(content: str, seed: int, count: int) -> np.ndarray:
    return np.concatenate(list(tokens(CONTENTS[content], seed, count)))


def own(place: Path, data: bytes, name: str = "train.bin") -> Path:
    place.mkdir(exist_ok=True)
    (place / name).write_bytes(data)
    return place / name


def test_a_made_file_is_tokens_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    manifest = create(DataSetSpec("tiny-tokens", "uint16", 5000), folder, doing=quiet)
    (file,) = (folder / "files").iterdir()
    assert (manifest["samples"], file.name) == (5000, "000000.bin")
    read = np.memmap(file, "<u2", mode="r")
    assert (read == drawn("tiny-tokens", 1, 5000)).all()
    assert sorted(one.name for one in folder.iterdir()) == [MANIFEST, "files"]
    assert faults(folder, doing=quiet) == []
    assert remove(folder).left == ()
    assert not folder.exists()


def test_tokens_come_as_often_as_zipf_has_them() -> None:
    each = np.bincount(drawn("tiny-tokens", 1, 1 << 18), minlength=512)
    wanted = 1 / np.arange(1, 513)
    wanted *= each.sum() / wanted.sum()
    assert len(each) == 512
    assert np.all(np.abs(each - wanted) < 5 * np.sqrt(wanted))
    assert drawn("tokens", 1, 1 << 18).max() > 50_000


def test_tokens_follow_from_content_and_seed_and_more_of_them_begin_alike() -> None:
    few, many = drawn("tokens", 1, 100), drawn("tokens", 1, (1 << 20) + 7)
    assert (many[:100] == few).all()
    assert (drawn("tokens", 2, 100) != few).any()
    assert (many[:7] != many[1 << 20 :]).any()


def test_only_tokens_are_kept_as_tokens(tmp_path: Path) -> None:
    for content, form, why in (
        ("tokens", "raw", "tokens are kept as uint16 alone, not raw."),
        ("traces", "uint16", "uint16 holds tokens, and traces are none"),
    ):
        with pytest.raises(UsageError, match=why):
            create(DataSetSpec(content, form, 9), tmp_path / "set", doing=quiet)


def test_a_users_file_is_read_where_it_lies_and_is_known_again(tmp_path: Path) -> None:
    data = np.array([3, 0, 50_256, 7], "<u2").tobytes()
    file = own(tmp_path / "theirs", data)
    found = adopt(file, tmp_path / "ours", doing=quiet)
    assert (found.format, found.samples, found.vocabulary) == ("uint16", 4, 50_257)
    assert str(found) == f"4 tokens under {tmp_path / 'theirs'}"
    assert Dataset(str(found.folder)).paths == [str(file)]
    assert sorted(one.name for one in found.folder.iterdir()) == [MANIFEST]
    assert changed(found.folder, found.root) is None
    assert adopt(file, tmp_path / "ours", doing=quiet) == found
    file.write_bytes(data * 2)
    assert "train.bin has changed" in (changed(found.folder, found.root) or "")


def test_a_link_to_a_file_of_tokens_is_called_by_its_own_name(tmp_path: Path) -> None:
    blob = own(tmp_path / "blobs", bytes(20), "5f3a")
    (tmp_path / "train.bin").symlink_to(blob)
    assert adopt(tmp_path / "train.bin", tmp_path / "ours", doing=quiet).samples == 10


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=50))
def test_what_is_said_of_a_file_is_what_it_holds(tmp_path: Path, held: list[int]) -> None:
    data = np.array(held, "<u2").tobytes()
    name = f"{hashlib.sha256(data).hexdigest()}.bin"  # the clock may stand still between two files
    found = adopt(own(tmp_path / "theirs", data, name), tmp_path / "ours", doing=quiet)
    assert (found.samples, found.vocabulary) == (len(held), max(held) + 1)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda place: place / "train.bin", "there is nothing at"),
        (lambda place: own(place, b""), r"train\.bin is empty"),
        (lambda place: own(place, bytes(7)), r"train\.bin has 7 bytes, and a token takes two: it"),
        (
            lambda place: own(place, struct.pack("<ii", 20240520, 1) + bytes(1024)),
            r"train\.bin begins with llm\.c's header; tokens alone are read",
        ),
        (
            lambda place: own(place, bytes(8)).parent,
            r"a file of tokens that ends in \.bin and is na",
        ),
        (lambda place: own(place, bytes(8), "train.tokens"), r"a file of tokens that ends in"),
    ],
)
def test_what_is_no_file_of_tokens_is_refused_by_name(
    make: Callable[[Path], Path], why: str, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    with pytest.raises(UsageError, match=why):
        adopt(make(tmp_path / "theirs"), tmp_path / "ours", doing=quiet)
    assert not (tmp_path / "ours").exists()


STUDY = """
title = "Whose tokens?"
[matrix]
workload = "tinygpt"
framework = "torch"
input = "files"
batch = 4
"""


def planned(place: Path, study: str, *more: str) -> str:
    (place / "study.toml").write_text(study, "utf-8")
    done = bakeoff("plan", "study.toml", *more, cwd=place, BAKEOFF_HOME=str(place / "home"))
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


FEW = np.arange(5 * 64 + 1, dtype="<u2")


@pytest.mark.parametrize(
    ("data", "change", "why"),
    [
        (FEW, ("4", "5"), "1 of 1 cells read 321 tokens under"),
        (FEW, ("4", "6"), "321 tokens make 5 texts of 64 with a token behind each, and a step t"),
        (FEW[:64], ("4", "1"), "64 tokens make 0 texts of 64 with a token behind each, and a ste"),
        (FEW[:100], ("4", "4"), "100 tokens make 1 text of 64 with a token behind each, and a ste"),
        (FEW + 192, ("4", "5"), "the highest token is 512, and tinygpt knows 0 to 511"),
        (FEW, ("tinygpt", "tinybert"), "tinybert is asked for tokens that are masked and whether"),
        (FEW, ("tinygpt", "tinycnn"), "are for networks of texts, and tinycnn is fed none"),
        (FEW, ("batch", 'format = "raw"\nbatch'), "tokens are kept as uint16 alone, not raw"),
        (FEW, ("batch", 'tier = "disk"\nbatch'), "are read where they lie: tier says nothing"),
        (FEW, ("batch", "decode = true\nbatch"), "tokens are no pictures"),
        (
            FEW,
            (
                "batch",
                'shuffle = "file"\nbuffer_samples = 4\nstrategy = "ddp"\nranks_per_node = 2\nbatch',
            ),
            "one file of tokens cannot be shared out over 2 ranks: shuffle = global",
        ),
    ],
)
def test_a_plan_says_why_a_network_cannot_be_fed_a_file(
    data: np.ndarray, change: tuple[str, str], why: str, tmp_path: Path
) -> None:
    file = own(tmp_path / "theirs", data.astype("<u2").tobytes())
    said = planned(tmp_path, STUDY.replace(*change), "--data", str(file))
    assert why in said


def test_readers_of_whole_samples_do_not_read_tokens(tmp_path: Path) -> None:
    file = own(tmp_path / "theirs", FEW.tobytes())
    study = 'title = "R"\n[matrix]\nworkload = "read-pictures"\nframework = "null"\n'
    said = planned(tmp_path, study, "--data", str(file))
    assert "are for networks of texts, and read-pictures is fed none" in said


@pytest.mark.parametrize("verb", ["plan", "preflight", "run"])
def test_a_file_that_is_none_stops_every_verb_with_one_message(verb: str, tmp_path: Path) -> None:
    file = own(tmp_path / "theirs", bytes(7))
    (tmp_path / "study.toml").write_text(STUDY, "utf-8")
    words = (verb, "study.toml", "--data", str(file))
    done = bakeoff(*words, cwd=tmp_path, BAKEOFF_HOME=str(tmp_path / "home"))
    assert done.returncode == 2
    assert done.stderr.count("has 7 bytes, and a token takes two") == 1
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_without_a_file_the_command_that_makes_one_is_named_and_makes_it(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY + "samples = 1000\n", "utf-8")
    where = {"cwd": tmp_path, "BAKEOFF_HOME": str(tmp_path / "home")}
    command = "bakeoff data create tiny-tokens --format uint16 --samples 1000"
    done = bakeoff("run", "study.toml", **where)
    assert f"To make it: {command}" in done.stderr
    said = bakeoff("preflight", "study.toml", **where)
    told = " ".join((said.stdout + said.stderr).split())
    assert "there is room for its 2 kB" in told
    assert command in told
    assert bakeoff(*command.split()[1:], **where).returncode == 0
    said = bakeoff("preflight", "study.toml", **where)
    assert "data set tiny-tokens-uint16-1000" in said.stdout + said.stderr
    assert command not in said.stdout + said.stderr


def test_equal_files_are_equal_data_and_a_forged_description_is_made_anew(tmp_path: Path) -> None:
    def described(name: str) -> UserData:
        file = own(tmp_path / name, FEW.tobytes())
        return adopt(file, tmp_path / "ours", doing=quiet)

    one = described("a")
    assert one.digest == described("b").digest
    manifest = one.folder / MANIFEST
    manifest.write_text(manifest.read_text().replace('"classes": 321', '"classes": "none"'))
    assert adopt(one.root / "train.bin", tmp_path / "ours", doing=quiet) == one
