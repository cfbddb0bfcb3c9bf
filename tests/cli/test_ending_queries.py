"""A query that takes long ends at a signal, with one line and the shell's exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.runs import Behaviour, RecordedCell, write_run

ENDLESS = (
    "select count(*) from range(1000000) a, range(1000000) b where (a.range * b.range) % 7 = 3"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("again", [0, 1], ids=["once", "twice"])
def test_a_signal_in_a_query_is_no_stack_trace(
    tmp_path: Path, number: signal.Signals, again: int
) -> None:
    run = write_run(tmp_path, [RecordedCell(behaviour=Behaviour(windows=5, warmup=2))])
    command = [sys.executable, "-m", "harness.cli", "sql", str(run), ENDLESS]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as asked:
        process = psutil.Process(asked.pid)
        while process.num_threads() == 1:  # a database works in a thread of its own
            time.sleep(0.01)
            assert asked.poll() is None
        while again and process.cpu_times().user < 2:  # well into the query, which never ends
            time.sleep(0.01)
            assert asked.poll() is None
        asked.send_signal(number)
        if again:  # as a batch system does that has no patience
            time.sleep(0.01)
            asked.send_signal(signal.SIGTERM)
        _, said = asked.communicate(timeout=60)
    assert said.strip() == "Interrupted."
    ended_late = (143, -signal.SIGTERM) if again else ()  # the second one came as Python ended
    assert asked.returncode in (128 + number, *ended_late)
