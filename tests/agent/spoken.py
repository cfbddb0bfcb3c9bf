"""Speak to a real agent as a host does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.agent.protocol import (
    Lines,
    RankCommand,
    TrialCommand,
    TrialEnd,
    line,
    read_end,
    trial_line,
)

# An agent ends whatever carries its trial's token, also where another process runs these tests.
TOKEN = f"spoken-{os.getpid()}/cell/trial-1"


class Agent:
    """An agent in a process of its own, which ends whatever child it has left after a trial."""

    def __init__(self, folder: Path, *argv: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines = Lines()
        self._heard: list[dict[str, Any]] = []
        self.hear("ready")

    def command(self, *scripts: str, **changes: Any) -> TrialCommand:
        ranks = tuple(
            RankCommand(
                rank=number,
                argv=(sys.executable, "-S", "-c", script),
                env={"BAKEOFF_TOKEN": TOKEN},
                cwd=str(self.folder),
                cpus=tuple(os.sched_getaffinity(0)),
            )
            for number, script in enumerate(scripts)
        )
        settings = {
            "directory": str(self.folder),
            "timeout_s": 60.0,
            "grace_s": 60.0,
            "memory_bytes": None,
            "output_bytes": 1 << 16,
        }
        return TrialCommand(TOKEN, ranks=ranks, **{**settings, **changes})

    def start(self, command: TrialCommand) -> dict[str, Any]:
        self.say(trial_line(command))
        return self.hear("started")

    def run(self, *scripts: str, **changes: Any) -> TrialEnd:
        self.start(self.command(*scripts, **changes))
        return read_end(self.hear("ended"))

    def cancel(self, grace_s: float) -> None:
        self.say(line("cancel", grace_s=grace_s))

    def say(self, message: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(message)
        self.process.stdin.flush()

    def hear(self, what: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            while self._heard:
                message = self._heard.pop(0)
                if message["say"] == what:
                    return message
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the agent ended without saying {what}"
            self._heard += self._lines.feed(data)

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code
