"""Pack and unpack: what leaves here arrives there, and nothing else is taken."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from harness.environments import cache
from harness.environments.lock import EnvironmentReference
from harness.environments.offline import archive, install, own_wheel
from harness.environments.offline import pack as packing
from harness.environments.offline.pack import Packed, PackOrder
from harness.environments.offline.target import Machine
from harness.environments.offline.unpack import unpack
from harness.errors import BakeoffError, UsageError
from tests.tiny_framework import TinyFramework, Told

TINY = EnvironmentReference.parse("tiny")


class Once:
    """The archive of all tests here: pip takes seconds for each question."""

    packed: Packed | None = None
    archive = b""


@pytest.fixture
def packed(tiny: TinyFramework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packed:
    """Pack a small framework, a profile and a recipe, with a Bakeoff that needs one package."""
    out = tmp_path / "it.tar"
    if Once.packed is None:
        tiny.offer("1.0", needs=("other",))
        tiny.offer("2.0", name="other")
        tiny.offer(metadata.version("pip"), name="pip")
        bakeoff_needs_other(tiny, monkeypatch)
        profile = tmp_path / "there.toml"
        profile.write_text('title = "There"\n')
        Once.packed = pack(out, platforms={"there": profile}, references=[TINY])
        Once.archive = out.read_bytes()
        for wheel in tiny.wheels.glob("*"):
            wheel.unlink()
    out.write_bytes(Once.archive)
    return replace(Once.packed, path=out)


def bakeoff_needs_other(tiny: TinyFramework, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tiny.offer("0.1.0", name="bakeoff", needs=("other", 'dev; extra == "dev"'))

    def made(folder: Path, *_: object) -> Path:
        return wheel.rename(folder / wheel.name)

    monkeypatch.setattr(packing, "make_own_wheel", made)


def pack(out: Path, **given: Any) -> Packed:
    order = {
        "machine": Machine.described(None, None, None),
        "device": "cpu",
        "references": [],
        "without": frozenset(),
        "platforms": {},
        "recipe": "bakeoff data create traces --samples 8\n",
        **given,
    }
    return packing.pack(PackOrder(**order), out, Told())


def test_an_environment_is_built_from_the_archive_alone(
    packed: Packed, tiny: TinyFramework, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "there"))
    brought = unpack(packed.path, told)
    (built,) = brought.environments
    assert dict(built.packages) == {"tiny": "1.0", "other": "2.0"}
    assert built.root.is_relative_to(tmp_path / "there")
    assert brought.recipe == "bakeoff data create traces --samples 8\n"
    (profile,) = map(Path, brought.platforms)
    assert (profile.name, profile.read_text()) == ("there.toml", 'title = "There"\n')
    assert scratch(tmp_path / "there") == []
    assert unpack(packed.path, told).environments == (built,)


def test_the_same_files_make_the_same_archive(packed: Packed, tmp_path: Path) -> None:
    with archive.opened(packed.path) as it:
        (tmp_path / "again").mkdir()
        archive.write(it.folder, tmp_path / "again" / "it.tar", it.manifest)
        names = sorted(it.manifest["files"])
    assert (tmp_path / "again" / "it.tar").read_bytes() == packed.path.read_bytes()
    assert [name for name in names if "/" not in name] == ["bakeoff.txt", "data.sh", "install.py"]
    assert not [name for name in names if "dev" in name], "only developers need it"


def test_install_py_refuses_a_changed_wheel_before_it_makes_anything(
    packed: Packed, tmp_path: Path
) -> None:
    folder = unpacked(packed, tmp_path)
    (folder / "wheels" / "other-2.0-py3-none-any.whl").write_bytes(b"changed")
    ended = subprocess.run(
        [sys.executable, "-I", str(folder / "install.py"), str(tmp_path / "venv")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "install.py: wheels/other-2.0-py3-none-any.whl is not the file that was packed (its SHA-256"
        " differs).\n"
    )
    assert not (tmp_path / "venv").exists()


def test_install_py_clears_no_folder_that_holds_something_else(
    packed: Packed, tmp_path: Path
) -> None:
    folder, other = unpacked(packed, tmp_path), tmp_path / "venv"
    other.mkdir()
    (other / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(install.Refused, match="holds other things than Bakeoff"):
        install.install(str(folder), str(other))
    assert (other / "pyvenv.cfg").exists()


def unpacked(packed: Packed, where: Path) -> Path:
    with tarfile.open(packed.path) as file:
        file.extractall(where, filter="data")
    return where / packed.path.stem


def test_a_folder_that_tar_made_is_held_to_the_same_hashes(
    packed: Packed, told: Told, tmp_path: Path
) -> None:
    folder = unpacked(packed, tmp_path)
    assert install.checked(str(folder))["bakeoff"] == "0.1.0"
    lock = folder / "bakeoff.txt"
    text = lock.read_text()
    lock.unlink()
    (tmp_path / "elsewhere.txt").write_text(text)
    lock.symlink_to(tmp_path / "elsewhere.txt")
    with pytest.raises(
        BakeoffError, match=r"bakeoff\.txt is no plain file\. Nothing was installed"
    ):
        unpack(folder, told)


def entry(name: str, data: bytes = b"", **given: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(f"it/{name}")
    info.size = len(data)
    for key, value in given.items():
        setattr(info, key, value)
    return info, data


def manifest_of(**files: tuple[int, str]) -> bytes:
    told = {
        "version": 1,
        "bakeoff": "0.1.0",
        "pip": "pip",
        "without": [],
        "environments": [],
        "target": {"python": "3.11", "machine": "x86_64", "libc": "glibc 2.36"},
        "files": {
            name.replace("__", "/").replace("DOT", "."): {"bytes": size, "sha256": sha}
            for name, (size, sha) in {"pip": (0, "0" * 64), **files}.items()
        },
    }
    return json.dumps(told).encode()


MANIFEST = manifest_of(data=(1, "0" * 64))


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([entry("other", b"x")], "it is no archive of `bakeoff pack`"),
        ([entry("pack.json", b"[" * 100_000)], "pack.json cannot be read"),
        ([entry("pack.json", b"{}")], "pack.json is not of version 1"),
        (
            [entry("pack.json", manifest_of(DOTDOT__x=(1, "0" * 64)))],
            "pack.json does not state its files",
        ),
        (
            [entry("pack.json", manifest_of(a__b__c=(1, "0" * 64)))],
            "pack.json does not state its files",
        ),
        ([entry("pack.json", MANIFEST), entry("../data", b"x")], "'../data' is not what pack.json"),
        ([entry("pack.json", MANIFEST), entry("data", b"xx")], "'data' is not what pack.json says"),
        (
            [entry("pack.json", MANIFEST), entry("data", b"x")],
            "data is not the file that was packed",
        ),
        (
            [entry("pack.json", MANIFEST), entry("data", type=tarfile.SYMTYPE, linkname="/etc")],
            "'it/data' is no plain file",
        ),
        (
            [entry("pack.json", MANIFEST), entry("data", type=tarfile.LNKTYPE, linkname="it/pip")],
            "'it/data' is no plain file",
        ),
        ([entry("pack.json", MANIFEST), entry("data", type=tarfile.FIFOTYPE)], "is no plain file"),
        ([entry("pack.json", MANIFEST), entry("x" * 5000, b"x")], "a name is too long"),
        ([entry("pack.json", MANIFEST)], "or damaged|cut short"),
    ],
)
def test_a_hostile_archive_is_refused_before_anything_is_installed(
    entries: list[tuple[tarfile.TarInfo, bytes]],
    why: str,
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    path = tmp_path / "it.tar"
    write_entries(path, entries)
    with pytest.raises(BakeoffError, match=why) as refused:
        unpack(path, told)
    assert str(refused.value).endswith("Nothing was installed.")
    assert scratch(tmp_path / "home") == []


def whole_archive(
    out: Path, files: Mapping[str, bytes], environments: Sequence[Mapping[str, str]] = ()
) -> None:
    """Write an archive whose hashes are right, whatever it says."""
    told = json.loads(manifest_of())
    held = {"pip": b"", "data.sh": b"", **files}
    told["bakeoff"] = metadata.version("bakeoff")
    told["environments"] = environments
    told["files"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in held.items()
    }
    said = entry("pack.json", json.dumps(told).encode())
    write_entries(out, [said, *(entry(name, data) for name, data in held.items())])


def write_entries(out: Path, entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as file:
        for info, data in entries:
            file.addfile(info, io.BytesIO(data))


WHOLE = {"reference": "null", "device": "cpu", "python": "3.11", "lock": "environments/null.txt"}


@pytest.mark.parametrize(
    ("files", "wrong", "why"),
    [
        ({}, {"python": "\u0663.x"}, r"'\u0663\.x' is no version of Python"),
        ({}, {"python": "4000000000.1"}, "is no version of Python"),
        ({}, {"device": "../../x"}, "null is for '../../x', which is neither cpu nor gpu"),
        ({}, {"reference": "../../x"}, "'../../x' names no framework environment"),
        ({}, {"lock": "../../x"}, "it holds no file '../../x'"),
        ({"environments/null.txt": b"--index-url=x\n"}, {}, "a lock holds '--index-url=x'"),
        ({"environments/null.txt": b"a==1 --hash=sha256:" + b"0" * 64}, {}, "a 1 is locked, and"),
        ({"environments/null.txt": b"x" * 2_000_000}, {}, "or one that is too large"),
        ({"platforms/ours.toml": b"\xff"}, {}, r"platforms/ours\.toml is no text"),
        ({"data.sh": b"\xff"}, {}, r"data\.sh is no text"),
    ],
)
def test_what_an_archive_says_is_read_before_anything_of_it_is_brought(
    files: dict[str, bytes],
    wrong: dict[str, str],
    why: str,
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    path = tmp_path / "it.tar"
    brought = {"environments/null.txt": b"", "locks/mine.toml": b"", **files}
    whole_archive(path, brought, [{**WHOLE, **wrong}])
    with pytest.raises(BakeoffError, match=why) as refused:
        unpack(path, told)
    assert str(refused.value).startswith(f"{path}: ")
    assert str(refused.value).endswith("Nothing was installed.")
    assert not (tmp_path / "own").exists()


def scratch(home: Path) -> list[Path]:
    """List what is there for a while only."""
    return [one for one in home.rglob("*") if one.match(".*.*")]


@pytest.mark.parametrize("verb", ["unpack", "pack"])
def test_what_a_killed_one_left_is_removed_by_the_next(
    verb: str, tiny: TinyFramework, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    killed = (
        "import os, signal\n"
        "from harness.environments import cache\n"
        "with cache.scratch() as place:\n"
        "    (place / 'wheel').write_bytes(b'x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", killed], check=False)
    (left,) = (one.parent for one in (tmp_path / "home").rglob("wheel"))
    if verb == "unpack":
        whole_archive(tmp_path / "it.tar", {})
        unpack(tmp_path / "it.tar", told)
    else:
        tiny.offer("2.0", name="other")
        tiny.offer(metadata.version("pip"), name="pip")
        bakeoff_needs_other(tiny, monkeypatch)
        pack(tmp_path / "it.tar")
    assert not left.exists()
    assert scratch(tmp_path / "home") == []


def test_a_home_that_cannot_be_written_is_named_with_what_to_do(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no-folder").touch()
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "no-folder" / "home"))
    whole_archive(tmp_path / "it.tar", {})
    with pytest.raises(UsageError, match=r"no-folder/home: .*\n    BAKEOFF_HOME names another"):
        unpack(tmp_path / "it.tar", told)


def test_an_archive_is_written_through_no_link_that_somebody_laid(
    tiny: TinyFramework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.offer("2.0", name="other")
    tiny.offer(metadata.version("pip"), name="pip")
    bakeoff_needs_other(tiny, monkeypatch)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".it.tar.new").symlink_to(tmp_path / "mine")
    pack(tmp_path / "it.tar")
    assert (tmp_path / "mine").read_text() == "mine"


def test_no_more_is_unpacked_than_there_is_room_for(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    path = tmp_path / "it.tar"
    with tarfile.open(path, "w") as file:
        info, data = entry("pack.json", manifest_of(data=(1 << 49, "0" * 64)))
        file.addfile(info, io.BytesIO(data))
    with pytest.raises(UsageError, match=r"has no room for .* BAKEOFF_HOME names another"):
        unpack(path, told)


def test_an_archive_of_another_bakeoff_is_left_alone(
    packed: Packed, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.9")
    with pytest.raises(BakeoffError, match=r"is of Bakeoff 0\.1\.0, and this is 9\.9"):
        unpack(packed.path, told)
    assert cache.finished() == []


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ({"python": "3.99"}, "it is for Python 3.99, and this is"),
        ({"machine": "pdp11"}, "it is for pdp11, and this machine is"),
        ({"libc": "glibc 2.99"}, "it is for glibc 2.99 or newer, and here is"),
        ({}, None),
    ],
)
def test_a_machine_that_an_archive_is_not_for_is_told(
    target: dict[str, str], why: str | None
) -> None:
    found = install.misfit({**Machine.described(None, None, None).facts, **target})
    assert (found or "").startswith(why or "")
    assert (found is None) == (why is None)


def test_a_name_that_nothing_needs_cannot_be_left_out(
    tiny: TinyFramework, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.offer("2.0", name="other")
    tiny.offer(metadata.version("pip"), name="pip")
    bakeoff_needs_other(tiny, monkeypatch)
    with pytest.raises(UsageError, match=r"--without othr: Bakeoff does not need it. Did you mean"):
        pack(tmp_path / "short.tar", without=frozenset({"othr"}))
    assert scratch(cache.home()) == []
    assert [one.name for one in tmp_path.glob("*short*")] == []


def test_an_installed_bakeoff_makes_a_wheel_of_its_files(tmp_path: Path) -> None:
    """Pack from a machine that was itself unpacked on: no checkout is there."""
    folder = tmp_path / "bakeoff-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: bakeoff\nVersion: 0.1.0\n")
    (folder / "INSTALLER").write_text("pip\n")
    (tmp_path / "bakeoff.py").write_text("x = 1\n")
    names = (
        "bakeoff.py",
        "../bin/bakeoff",
        *(f"{folder.name}/{n}" for n in ("METADATA", "INSTALLER")),
    )
    (folder / "RECORD").write_text("".join(f"{name},,\n" for name in names))
    (tmp_path / "made").mkdir()
    wheel = own_wheel.from_installed(metadata.PathDistribution(folder), tmp_path / "made")
    with zipfile.ZipFile(wheel) as held:
        assert held.namelist() == ["bakeoff-0.1.0.dist-info/METADATA", "bakeoff.py", RECORD]
        assert held.read("bakeoff.py") == b"x = 1\n"
        assert held.read(RECORD).decode().splitlines()[-1] == f"{RECORD},,"


RECORD = "bakeoff-0.1.0.dist-info/RECORD"
