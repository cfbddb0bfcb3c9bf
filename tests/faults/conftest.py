from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agent import processes
from harness.store.layout import RunPaths

HERE = Path(__file__).parent
PATIENCE_S = 60.0


class Study:
    """A folder with a study of the unruly adapter, and what became of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = RunPaths(folder / "run")

    def write(self, *how: str, trials: int = 1, ranks: int = 1, measure: str = "") -> None:
        behaviours = ", ".join(f'"{one}"' for one in how)
        (self.folder / "study.toml").write_text(
            f"""title = "Faults"
[matrix]
workload = "nothing"
framework = "unruly"
strategy = "{"none" if ranks == 1 else "ddp"}"
ranks_per_node = {ranks}
unruly.how = [{behaviours}]
[measure]
trials = {trials}
warmup = "3 steps"
until = "50 ms"
{measure}
"""
        )
        (self.folder / "platform.toml").write_text(
            f"""title = "The machine of the tests"
as_found = true
nodes = 1
[binding]
oversubscribe = true
[frameworks.unruly]
interpreter = "{sys.executable}"
"""
        )

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """Every complete trial's outcome by its folder, relative to cells/."""
        found = self.paths.cells.glob("*/*/outcome.json")
        return {str(one.parent.relative_to(self.paths.cells)): _json(one) for one in sorted(found)}

    def outcome(self) -> dict[str, Any]:
        (one,) = self.outcomes().values()
        return one

    def trial(self) -> Path:
        (one,) = self.outcomes()
        return self.paths.cells / one

    def logged(self, what: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.paths.log.read_text().splitlines())
        return [one for one in lines if one["what"] == what]

    def processes(self) -> list[int]:
        """Everything alive that carries this run's token."""
        token = _json(self.paths.run)["id"] + "/"
        return processes.carriers(processes.mark(token, prefix=True))


def _json(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


class Host:
    """A host in a process of its own."""

    def __init__(self, study: Study) -> None:
        environment = {**os.environ, "PYTHONPATH": str(HERE / "acme")}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "host.py"), str(study.folder)],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def wait_for(self, what: str, **fields: object) -> dict[str, Any]:
        """Read what the host says until it says this."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            if said["what"] == what and all(said[name] == one for name, one in fields.items()):
                return said
        raise AssertionError(f"the host ended without saying {what} {fields}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        assert self.process.stdout is not None
        self.process.stdout.read()
        return self.process.wait(PATIENCE_S)

    def children(self) -> list[int]:
        """The agent, and whatever else this host started."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == self.process.pid:
                found.append(int(stat.parent.name))
        return found


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with what it holds."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


def bakeoff(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start the command line, which knows the unruly adapter."""
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(HERE / "acme")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_gone(pids: list[int]) -> None:
    """Wait on processes that are nobody's children here."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        gone = poll.poll(PATIENCE_S * 1000)
        os.close(descriptor)
        assert gone, f"process {pid} is still there"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


@pytest.fixture
def start_host(study: Study) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def start(other: Study = study) -> Host:
        hosts.append(Host(other))
        return hosts[-1]

    yield start
    for host in hosts:
        if host.process.poll() is None:
            host.process.kill()
        host.process.wait()
        assert host.process.stdout is not None
        host.process.stdout.close()


@pytest.fixture
def carried_out(study: Study, start_host: Callable[..., Host]) -> Callable[..., dict[str, Any]]:
    """Run a one-trial study to its end; give the outcome."""

    def run(how: str, *, ranks: int = 1, measure: str = "") -> dict[str, Any]:
        study.write(how, ranks=ranks, measure=measure)
        host = start_host()
        host.wait_for("result", done=1, total=1)
        assert host.end() == 0
        return study.outcome()

    return run
