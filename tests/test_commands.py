from __future__ import annotations

import os

import pytest

from harness import commands, private_file, waiting
from harness.commands import Unanswered
from harness.errors import Unavailable


def test_a_command_gives_what_it_printed_on_each_stream() -> None:
    answer = commands.run(("sh", "-c", "echo out; echo err >&2; exit 3"), timeout_s=60)
    assert (answer.stdout, answer.stderr, answer.code) == ("out\n", "err\n", 3)


def test_a_command_gets_no_input_and_the_environment_given() -> None:
    env = {"PATH": os.environ["PATH"], "WORD": "a word"}
    answer = commands.run(("sh", "-c", 'cat; echo "$WORD"'), timeout_s=60, env=env)
    assert answer.required() == "a word\n"


def test_a_command_that_failed_is_refused_with_its_last_lines() -> None:
    script = "for n in 1 2 3 4; do echo line $n >&2; done; exit 9"
    answer = commands.run(("sh", "-c", script), timeout_s=60, what="n1: sh")
    with pytest.raises(Unavailable) as refused:
        answer.required()
    assert str(refused.value) == "n1: sh ended with 9:\n    line 2\n    line 3\n    line 4"


def test_a_command_that_failed_in_silence_says_so() -> None:
    with pytest.raises(Unavailable, match="false ended with 1: It printed nothing"):
        commands.run(("false",), timeout_s=60).required()


def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(Unavailable, match="n1: no-such-program is no program here"):
        commands.run(("no-such-program",), timeout_s=60, what="n1")
    with pytest.raises(Unavailable, match=r"^no-such-program is no program here"):
        commands.run(("no-such-program",), timeout_s=60)


@pytest.mark.parametrize("script", ["exec sleep 600", "exec >&- 2>&-; exec sleep 600"])
def test_a_command_that_does_not_end_in_time_is_ended(script: str) -> None:
    with pytest.raises(Unanswered, match=r"sh did not end within 0\.1 s"):
        commands.run(("sh", "-c", script), timeout_s=0.1)


def test_what_takes_long_is_named_with_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    waiting.tell_by(told.append)
    monkeypatch.setattr(waiting, "QUIET_S", 0.0)
    with pytest.raises(Unanswered):
        commands.run(("sleep", "600"), timeout_s=0.2, awaited="sleep to end")
    assert told == ["Waiting for sleep to end (at most 0.2 s) …"]
    commands.run(("true",), timeout_s=60)
    assert len(told) == 1


def test_a_private_file_reaches_the_command_and_none_of_its_words() -> None:
    script = 'cat /proc/self/cmdline "$0"'
    argv = ("sh", "-c", script, f"/proc/self/fd/{private_file.NUMBER}")
    answer = commands.run(argv, timeout_s=60, private="hunter2 \udcff")
    words, _, held = answer.stdout.rpartition("\0")
    assert "hunter2" not in words
    assert held == "hunter2 \ufffd"


def test_a_command_that_prints_without_end_is_ended() -> None:
    with pytest.raises(Unanswered, match="yes printed more than 16 MiB"):
        commands.run(("yes",), timeout_s=60)
