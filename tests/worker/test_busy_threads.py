"""Count the threads that computed, in a process that has no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of threads")

SHORT = """
from harness.worker.facts.busy_threads import Threads
for _ in range(50):
    threads = Threads()
    sum(range(1000))
    assert threads.busy() == 1
"""
WAITING = """
import threading
from harness.worker.facts.busy_threads import Threads
done, ready = threading.Event(), threading.Event()
def wait():
    ready.set()
    done.wait()
waiting = threading.Thread(target=wait)
waiting.start()
ready.wait()
threads = Threads()
sum(range(1_000_000))
assert threads.busy() == 1
done.set()
waiting.join()
"""


@pytest.mark.parametrize("spell", [SHORT, WAITING], ids=["shorter than a tick", "beside a waiter"])
def test_only_threads_that_computed_are_busy(spell: str) -> None:
    ended = subprocess.run([sys.executable, "-c", spell], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
