from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some

from harness.agent import protocol
from harness.agent.heartbeat import Watchers
from harness.agent.output import Capture

chunks = some.lists(some.binary(min_size=1, max_size=300), max_size=20)


def captured(folder: Path, written: list[bytes], limit: int) -> tuple[bytes, int]:
    file = folder / "stream"
    file.unlink(missing_ok=True)
    capture = Capture(str(file), limit)
    for chunk in written:
        os.write(capture.sink, chunk)
        capture.drain()
    capture.close()
    return (file.read_bytes() if file.exists() else b""), capture.dropped


@given(written=chunks, limit=some.integers(2, 1000))
def test_a_stream_keeps_its_beginning_and_its_end(tmp_path_factory, written, limit):
    folder = tmp_path_factory.getbasetemp()
    whole = b"".join(written)
    kept, dropped = captured(folder, written, limit)
    if len(whole) <= limit:
        assert (kept, dropped) == (whole, 0)
    else:
        head, tail = kept.split(b"[bakeoff: %d bytes left out here]\n" % dropped)
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert len(head) + len(tail) + dropped == len(whole)
        assert len(head) <= limit // 2
        assert len(head) + len(tail) <= limit
        assert head[-1:] in (b"", b"\n")
        assert tail == b"" or whole[-len(tail) - 1 : -len(tail)] == b"\n"


class Counting:
    period_ns = 100

    def __init__(self) -> None:
        self.due: list[int] = []
        self.begun = self.ended = 0

    def start(self, trial, pids) -> None:
        self.begun += 1

    def tick(self, due_ns: int) -> None:
        self.due.append(due_ns)

    def stop(self) -> None:
        self.ended += 1


def test_watchers_tick_without_drift_and_never_twice_to_catch_up():
    watcher = Counting()
    watch = Watchers((watcher,))
    assert watch.next_ns() is None
    watch.start(None, {}, 1000)  # type: ignore[arg-type]
    for now in (1099, 1101, 1203, 1650, 1651, 1700):
        watch.run(now)
    assert watcher.due == [1100, 1200, 1300, 1700]
    watch.stop()
    watch.run(9999)
    assert (watcher.begun, watcher.ended, watch.next_ns()) == (1, 1, None)


def test_messages_survive_any_cut_of_the_stream():
    stream = protocol.line("beat", due_ns=1) + protocol.line("ready", pid=2)
    for cut in range(len(stream)):
        lines = protocol.Lines()
        heard = lines.feed(stream[:cut]) + lines.feed(stream[cut:])
        assert [message["say"] for message in heard] == ["beat", "ready"]
