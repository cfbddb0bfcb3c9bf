"""Read a trace file of torch (``export_chrome_trace``) as what its profiler gives while it runs.

    python -m tests.adapters.torch.kineto_file FILE.json[.gz]

says of a file that was recorded on a GPU how much of what ran there is joined to an operator by its
number, and to how much of that the same operator is found around the call that launched it.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.worker.adapters.torch.tracing import events

HOST, CALLS = ("cpu_op", "user_annotation"), ("cuda_runtime", "cuda_driver")


class FromFile:
    """One event of a file, asked as ``torch._C._autograd._KinetoEvent`` is asked."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.said = said
        self.own: Mapping[str, Any] = said.get("args", {})

    def name(self) -> str:
        name: str = self.said["name"]
        return name

    def activity_type(self) -> str:
        kind: str = self.said["cat"]
        return kind

    def device_type(self) -> str:
        is_host = self.said["cat"] in (*HOST, *CALLS, "overhead")
        return "DeviceType.CPU" if is_host else "DeviceType.CUDA"

    def start_ns(self) -> int:
        return round(self.said["ts"] * 1000)

    def duration_ns(self) -> int:
        return round(self.said["dur"] * 1000)

    def start_thread_id(self) -> int:
        thread: int = self.said["tid"]
        return thread

    def sequence_nr(self) -> int:
        number: int = self.own.get("Sequence number", -1)
        return number

    def dtypes(self) -> list[str]:
        types: list[str] = self.own.get("Input type", [])
        return types

    def shapes(self) -> list[Any]:
        shapes: list[Any] = self.own.get("Input Dims", [])
        return shapes

    def correlation_id(self) -> int:
        number: int = self.own.get("External id" if self._is_host else "correlation", 0)
        return number

    def linked_correlation_id(self) -> int:
        number: int = 0 if self._is_host else self.own.get("External id", 0)
        return number

    @property
    def _is_host(self) -> bool:
        return self.said["cat"] in HOST


class Untold(FromFile):
    """The same in a torch that does not say what kind of event one is."""

    activity_type = None


def from_file(path: Path) -> list[FromFile]:
    """Give the events of a file that last."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return from_json(json.loads(text))


def from_json(trace: Mapping[str, Any], kind: type[FromFile] = FromFile) -> list[FromFile]:
    """Give the events of a trace that last."""
    lasting = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    return [kind(one) for one in lasting if one.get("cat") not in (None, "Trace")]


def joined(found: Iterable[FromFile]) -> dict[str, int]:
    """Count what ran on the device, what is joined, and what launches agree with that."""
    by_thread: dict[int, list[FromFile]] = defaultdict(list)
    device, numbers = [], set()
    for one in found:
        kind = one.activity_type()
        if kind in HOST:
            numbers.add(one.correlation_id())
        if kind == "cpu_op" or kind in CALLS:
            by_thread[one.start_thread_id()].append(one)
        elif kind in events.OF_DEVICE:
            device.append(one)
    around = {number: own for each in by_thread.values() for number, own in _around(each)}
    agreeing = sum(
        around.get(one.correlation_id()) == one.linked_correlation_id() for one in device
    )
    return {
        "on_device": len(device),
        "joined": sum(one.linked_correlation_id() in numbers for one in device),
        "around_the_launch": agreeing,
    }


def _around(thread: list[FromFile]) -> Iterator[tuple[int, int]]:
    """Give each call's number with that of the innermost operator around it."""
    open_ones: list[FromFile] = []
    for one in sorted(thread, key=lambda each: (each.start_ns(), -each.duration_ns())):
        while open_ones and _end(open_ones[-1]) <= one.start_ns():
            open_ones.pop()
        if one.activity_type() not in CALLS:
            open_ones.append(one)
        elif open_ones:
            yield one.correlation_id(), open_ones[-1].correlation_id()


def _end(one: FromFile) -> int:
    return one.start_ns() + one.duration_ns()


if __name__ == "__main__":
    print(json.dumps(joined(from_file(Path(sys.argv[1])))))
