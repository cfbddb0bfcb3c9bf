"""Count the threads that computed."""

from __future__ import annotations

import sys
import threading

import pytest

from harness.worker.facts.busy_threads import Threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of threads")


def test_a_spell_shorter_than_the_scheduler_s_tick_is_work() -> None:
    for _ in range(50):
        threads = Threads()
        sum(range(1000))
        assert threads.busy() == 1


def test_threads_that_wait_are_not_busy() -> None:
    done, ready = threading.Event(), threading.Event()

    def wait() -> None:
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
