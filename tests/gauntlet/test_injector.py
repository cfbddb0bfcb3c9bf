"""What proves something about every call must see every call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import needs
from tests.gauntlet import small_run
from tests.gauntlet.injector import CONTROL, TRACE, Call, Fault, Injector, built
from tests.gauntlet.messages import problems

pytestmark = pytest.mark.gauntlet
_MODIFYING = (
    *("open", "openat", "creat", "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile"),
    *("copy_file_range", "fsync", "fdatasync", "sync_file_range", "rename", "renameat"),
    *("renameat2", "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "link", "linkat", "symlink"),
    *("symlinkat", "truncate", "ftruncate", "fallocate", "chmod", "fchmod", "fchmodat", "chown"),
    *("fchown", "lchown", "fchownat", "utime", "utimes", "utimensat", "mknod", "mknodat"),
    *("setxattr", "fsetxattr", "lsetxattr", "removexattr", "io_uring_setup"),
)
_LINE = re.compile(r"\d+ +(?P<name>\w+)\((?P<words>.*)")
_FOLDER_AND_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>[^"]*)"')
_FILE = re.compile(r"\d+<(?P<path>[^>]*)>")
_TO_WRITE = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC)")
_RANDOM = re.compile(r"\.[0-9a-f]{16}\.new$")


def test_the_injector_counts_what_the_kernel_sees_of_a_run(tmp_path: Path) -> None:
    needs.program("cc", "gcc", package="gcc")
    needs.program("strace", package="strace")
    preloaded = built(tmp_path)
    place = small_run.write(tmp_path / "x", cells=1, blocks=1)
    kernel, counted = tmp_path / "kernel", tmp_path / "counted"
    Injector(preloaded[CONTROL]).arm(place.parent, None)
    words = ("-f", "--seccomp-bpf", "-y", "-qq", "-s", "0", "-e", "signal=none", "-o", str(kernel))
    more = [one for pair in preloaded.items() for one in ("-E", "=".join(pair))]
    subprocess.run(
        [
            *("strace", *words, "-e", f"trace={','.join(_MODIFYING)}", *more),
            *("-E", f"{TRACE}={counted}", sys.executable, "-m", "harness.cli", *small_run.RUN),
        ],
        cwd=tmp_path / "x",
        check=True,
        capture_output=True,
    )
    calls = Counter(
        (_family(name), path)
        for name, _, path in (line.partition(" ") for line in counted.read_text().splitlines())
    )
    assert calls == _seen(kernel.read_text(), place.parent)
    assert calls.total() > 700


def _seen(text: str, below: Path) -> Counter[tuple[str, str]]:
    """Count by name and path what strace wrote down of modifying calls below a folder."""
    found = Counter[tuple[str, str]]()
    for line in filter(None, map(_LINE.match, text.splitlines())):
        name, words = line["name"], line["words"]
        named = list(_FOLDER_AND_NAME.finditer(words))
        if _family(name) == "open" and not _TO_WRITE.search(words):
            continue
        if named:
            path = Path(named[-1]["folder"] or "/", named[-1]["name"])
        elif file := _FILE.match(words):
            path = Path(file["path"])
        else:
            continue
        if path.is_relative_to(below):
            inside = _RANDOM.sub(".HEX.new", str(path).removeprefix(str(below)))
            found[_family(name), inside] += 1
    return found


def _family(name: str) -> str:
    """Give openat and open one name, and their like."""
    return name.removesuffix("64").removesuffix("2").removesuffix("at")


def test_the_call_that_is_meant_fails_and_no_other(tmp_path: Path) -> None:
    needs.program("cc", "gcc", package="gcc")
    preloaded = built(tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    injector = Injector(preloaded[CONTROL])
    injector.arm(below, Fault(Call("open", "/b", 2)))
    script = f"""for at in range(4):
        try: open({str(below / "b")!r}, "w"); open({str(below / "c")!r}, "w")
        except OSError as problem: print(at, problem.strerror)"""
    made = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **preloaded},
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout == "1 No space left on device\n"
    assert injector.disarm().failed == 1


def test_messages_are_told_from_what_a_session_always_says() -> None:
    said = (
        "Study x on y\nGate: 1 passed\n  ? a · b\n1/2 trials  a  trial-1: failed in 2 ms  0 s left"
    )
    assert problems(
        f"{said}\na: failed in trial-1\n  why\n  Log: x\nDone: 2 of 2 trials, 1 ok."
    ) == ["a: failed in trial-1\n  why\n  Log: x"]
    assert len(problems("/x: the disk is full.\n/y: the disk is full.")) == 2
