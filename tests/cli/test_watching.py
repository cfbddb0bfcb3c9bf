"""What a run directory holds cannot steer the terminal in which somebody watches the run."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel, Declared
from tests.runs import RecordedCell, Recording, write_run

PATIENCE_S = 60.0
STEERS = "\x1b]0;owned\x07\x1b[999B\x9b5A\x1bPowned\x1b\\\u202eowned"
"""A title, moves of the cursor, a device's string, and text from right to left."""
BAD = ("\x1b]0;", "\x07", "\x1b[999B", "\x9b", "\x1bP", "\u202e")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give a run that plants escape sequences in whatever is shown of a running trial."""
    root = write_run(tmp_path, [RecordedCell()], Recording(trials=1))
    plan = json.loads((root / "plan.json").read_text())
    plan["cells"][0]["label"] += STEERS
    (root / "plan.json").write_text(json.dumps(plan))
    (trial,) = root.glob("cells/*/trial-1")
    (trial / "outcome.json").unlink()
    events = [json.loads(line) for line in (trial / "events.0.jsonl").read_text().splitlines()]
    kept = [one for one in events if one["event"] != "window"]
    kept = [{**one, "name": STEERS} if one["event"] == "phase" else one for one in kept]
    (trial / "events.0.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kept))
    channels = (
        Channel("gpu.utilisation", "1", "gauge", f"gpu:{STEERS}"),
        Channel("rank.resident", "bytes", "gauge", f"rank:{STEERS}"),
        Channel(STEERS, STEERS, "gauge", STEERS),
    )
    data = samples_format.header(node=f"node0{STEERS}")
    data += samples_format.declare(Declared(0, STEERS, 1, 0, channels))
    data += samples_format.sample(0, 0, 1, 3, [1, 2, 3])
    for name in ("node0", f"node{STEERS}"):
        (trial / f"samples.{name}.bin").write_bytes(data)
    return root


def test_nothing_of_a_run_steers_the_terminal_of_who_watches_it(run: Path) -> None:
    screen, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", "LINES": "50"}
    command = [sys.executable, "-m", "harness.cli", "watch", str(run)]
    with subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment
    ) as watching:
        os.close(terminal)
        shown = until(screen, b"trials", b"gpu", b"rank")
        watching.send_signal(signal.SIGINT)
        shown += until(screen)
    os.close(screen)
    text = shown.decode(errors="replace")
    assert text.count("owned") >= 4  # it is shown, as words
    assert [one for one in BAD if one in text] == []
    assert "Traceback" not in text
    assert watching.returncode == 130


def until(screen: int, *words: bytes) -> bytes:
    """Read what is shown until all these words stand there; without any, to the end."""
    shown = b""
    while not words or not all(one in shown for one in words):
        assert select.select([screen], [], [], PATIENCE_S)[0], shown
        try:
            some = os.read(screen, 1 << 16)
        except OSError:  # the terminal's other end was closed
            some = b""
        if not some:
            assert not words, shown
            break
        shown += some
    return shown
