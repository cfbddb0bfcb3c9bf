"""A signal that comes while the command line is still being imported ends it with one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT = """import os, signal
os.kill(os.getpid(), signal.{name})
print("still there", flush=True)
os._exit(7)
"""
AS_A_SCRIPT = "from harness.cli.entry_point import main; main()"
IN_A_LIBRARY = """import os, signal
from harness.cli.entry_point import main
from harness.cli.verbs import list as verb

def answer(**options):
    try:
        os.kill(os.getpid(), signal.{name})
        while True:
            pass
    except BaseException as stop:
        raise ValueError("Error building a validator: " + repr(stop)) from None

verb.command.callback = answer
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("how", [("-m", "harness.cli"), ("-c", AS_A_SCRIPT)], ids=["-m", "script"])
def test_a_signal_among_the_imports_is_no_stack_trace(
    how: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    ended = started(tmp_path, number, how)
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", "Interrupted.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_a_library_turns_into_an_error_is_still_a_signal(
    number: signal.Signals,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_A_LIBRARY.format(name=number.name), "list", "runs"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", "Interrupted.\n")


def test_what_was_started_with_nohup_lives_on_among_the_imports(tmp_path: Path) -> None:
    ignoring = ("-c", f"import signal; signal.signal(1, signal.SIG_IGN); {AS_A_SCRIPT}")
    ended = started(tmp_path, signal.SIGHUP, ignoring)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "still there\n", "")


def started(
    folder: Path, number: signal.Signals, how: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """Start the command, which gets a signal as it imports click."""
    (folder / "click.py").write_text(IMPORT.format(name=number.name))
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, *how, "--help"],
        env={**os.environ, "PYTHONPATH": f"{folder}:{root}"},
        capture_output=True,
        text=True,
        check=False,
    )
