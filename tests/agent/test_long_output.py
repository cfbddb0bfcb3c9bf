"""Secrets in output that comes faster, or in longer lines, than an agent reads at once."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from harness.agent.output import Capture
from harness.ranks.agent_errors import ErrorLog

VALUE = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
SECRET = f"AWS_SECRET_ACCESS_KEY={VALUE}\n"
HIDDEN = "AWS_SECRET_ACCESS_KEY=(redacted)\n"
KEY_LINE = "qVnZr8Kx3TtLwYb5HdJ7pQe2MsUa9RfCgXi4NoBvDyE6ulzW1hkSjOPmA0GFtIqc\n"
KEY = "-----BEGIN PRIVATE KEY-----\n" + KEY_LINE * 40 + "-----END PRIVATE KEY-----\n"


def captured(folder: Path, text: str, limit: int) -> str:
    """Write a text into a rank's pipe in one go, and read what the agent kept of it."""
    file = folder / "rank.0.err"
    capture = Capture(str(file), limit)
    writer = Thread(target=_write_all, args=(os.dup(capture.sink), text.encode()))
    capture.started()
    writer.start()
    os.set_blocking(capture.source, True)  # so that a read waits as the agent's selector does
    while capture.drain():
        pass
    writer.join()
    capture.close()
    return file.read_text()


def logged(folder: Path, text: str) -> str:
    """Write a text as an agent's complaint, and read its log."""
    file = folder / "agent.err"
    source, sink = os.pipe()
    log = ErrorLog(os.fdopen(source, "rb"), file.open("wb"))
    _write_all(sink, text.encode())
    log.finish()
    return file.read_text()


def _write_all(sink: int, data: bytes) -> None:
    with os.fdopen(sink, "wb") as pipe:
        pipe.write(data)


def pieces_of(secret: str, text: str) -> list[str]:
    ends = {secret[begin : begin + 8] for begin in range(len(secret) - 8)}
    return [line[:200] for line in text.splitlines() if any(end in line for end in ends)]


@pytest.mark.parametrize("before", range(0, 66, 13))
def test_no_border_between_two_reads_shows_a_secret(tmp_path, before):
    first = "." * before + "\n"
    assert captured(tmp_path, first + SECRET * 6000, 1 << 20) == first + HIDDEN * 6000
    assert logged(tmp_path, first + SECRET * 6000) == first + HIDDEN * 6000


@pytest.mark.parametrize("before", range(0, 2600, 517))
def test_no_border_between_two_reads_shows_a_key(tmp_path, before):
    text = "." * before + "\n" + ("step 1 of 2\n" + KEY) * 100
    kept = captured(tmp_path, text, 1 << 20)
    assert pieces_of(KEY_LINE, kept) == []
    assert kept.count("step 1 of 2\n") == 100
    assert "left out" not in kept


@pytest.mark.parametrize("secret", [SECRET, KEY])
@pytest.mark.parametrize("before", range(0, 2600, 517))
def test_what_is_left_out_ends_and_begins_with_whole_lines(tmp_path, secret, before):
    ordinary = "loss 0.25\n"
    text = "." * before + "\n" + (ordinary + secret) * 500
    kept = captured(tmp_path, text, 20_000)
    assert pieces_of(VALUE, kept) + pieces_of(KEY_LINE, kept) == []
    head, tail = kept.split(" bytes left out here]\n")
    shown = set(head.splitlines()[1:-1])
    assert shown <= {"loss 0.25", HIDDEN.strip(), "(redacted)"}
    assert set(tail.splitlines()) <= {"loss 0.25", HIDDEN.strip(), "(redacted)"}
    assert head.count(ordinary) > 2
    assert tail.count(ordinary) > 2


def test_a_line_without_end_is_left_out_and_counted(tmp_path):
    line = "[" + ", ".join([f'{{"password": "{VALUE}"}}'] * 60_000) + "]\n"
    assert len(line) > 3 << 20
    said = f"[bakeoff: {len(line)} bytes left out here]\n"
    assert captured(tmp_path, f"before\n{line}after\n", 1 << 20) == f"before\n{said}after\n"
    assert captured(tmp_path, f"before\n{line.strip()}", 1 << 20).startswith("before\n[bakeoff: ")
    assert logged(tmp_path, f"before\n{line}after\n") == f"before\n{said}after\n"


def test_a_key_without_end_is_left_out_and_counted(tmp_path):
    endless = "-----BEGIN PRIVATE KEY-----\n" + KEY_LINE * 40_000
    said = f"[bakeoff: {len(endless)} bytes left out here]\n"
    assert captured(tmp_path, f"a b\n{endless}c d\n", 1 << 20) == f"a b\n{said}c d\n"


def test_a_bar_of_progress_is_no_endless_line(tmp_path):
    bar = "".join(f"\rstep {step} of 100000" for step in range(100_000))
    kept = captured(tmp_path, bar + "\ndone\n", 4 << 20)
    assert kept.count("step ") == 100_000
    assert "left out" not in kept
    assert kept.endswith("step 99999 of 100000\ndone\n")
