"""Hold a process of our own to ending with its function, with us, and with its words."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.gate.processes import separate_process
from harness.ranks.interrupts import Interrupts


@pytest.fixture
def interrupts() -> Iterator[Interrupts]:
    """Count signals, and close what they wake."""
    counted = Interrupts()
    with counted.installed():
        yield counted


def test_it_ends_with_its_function(tmp_path: Path, interrupts: Interrupts) -> None:
    separate_process.call(interrupts, os.mkdir, tmp_path / "made")
    assert (tmp_path / "made").is_dir()


def test_it_multiplies_in_one_thread_unless_the_user_says_otherwise(
    tmp_path: Path, interrupts: Interrupts, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for chosen in (None, "3"):
        if chosen is None:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
        told = tmp_path / f"threads-{chosen}"
        separate_process.call(interrupts, _tell_threads, told)
        found.append(told.read_text())
        assert os.environ.get("OPENBLAS_NUM_THREADS") == chosen
    assert found == ["1", "3"]


def _tell_threads(into: Path) -> None:
    into.write_text(os.environ["OPENBLAS_NUM_THREADS"])


def test_a_signal_to_the_whole_session_is_the_host_s_to_answer(tmp_path: Path) -> None:
    """In a session of its own: the first process that is started there is treated like others."""
    code = (
        "import pathlib, sys; from harness.gate.processes import separate_process as one; "
        "from tests.gate.test_separate_process import outlive; "
        "one.call(None, outlive, pathlib.Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "told"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "told").read_text() == "still here"


def outlive(into: Path) -> None:
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(os.getpid(), one)
    into.write_text("still here")


def test_what_went_wrong_is_told(tmp_path: Path, interrupts: Interrupts) -> None:
    with pytest.raises(separate_process.ProcessFailed, match=r"FileExistsError: .*File exists"):
        separate_process.call(interrupts, os.mkdir, tmp_path)


def test_one_that_was_killed_is_told(interrupts: Interrupts) -> None:
    with pytest.raises(separate_process.ProcessFailed, match="signal 9; is there enough memory"):
        separate_process.call(interrupts, signal.raise_signal, signal.SIGKILL)


def test_who_asks_us_to_stop_ends_it(interrupts: Interrupts) -> None:
    before = set(multiprocessing.active_children())
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit) as end:
        separate_process.call(interrupts, signal.pause)
    assert end.value.code == 128 + signal.SIGTERM
    assert set(multiprocessing.active_children()) <= before


def test_one_that_never_listened_leaves_nothing_open() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Interrupts()
    assert [str(one.message) for one in said] == []
