"""Read an XSpace, the trace that JAX's and TensorFlow's profiler writes (``*.xplane.pb``).

Field numbers as in tsl/profiler/protobuf/xplane.proto. Of each line only events with a
length are kept, in nanoseconds since its trace began.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from harness.worker.attribution.protobuf import Fields, by_number, integer, message, messages, text

MODULES = "/host:metadata"
HOST = "/host:CPU"
GPU, STREAM = "/device:GPU:", "Stream #"
"""A GPU's plane, and its lines of what ran; others say the same again, by program and step."""
CALL = "correlation_id"
"""A number that a call of the driver shares with what it launched."""
PICOSECONDS = 1000


class Event(NamedTuple):
    """One event on one line."""

    name: str
    start: int
    end: int
    line: int
    stats: Mapping[str, str]
    """Those that are texts, and the number of a call."""


class Trace(NamedTuple):
    """What is needed of one trace."""

    events: List[Event]
    modules: List[memoryview]
    """``HloProto`` of each program that XLA compiled."""
    device: Sequence[Event] = ()
    """What ran on GPUs."""


def read(folder: str) -> Trace:
    """Read what the profiler left in a folder; raises ValueError where it left no trace."""
    found = sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(folder)
        for name in names
        if name.endswith(".xplane.pb")
    )
    if not found:
        raise ValueError("the profiler wrote no trace")
    with open(found[-1], "rb") as file:
        space = by_number(memoryview(file.read()))
    planes = [by_number(one) for one in messages(space, 1)]
    events: List[Event] = []
    device: List[Event] = []
    modules: List[memoryview] = []
    for plane in planes:
        name = text(plane, 2)
        if name == HOST:
            events += _events(plane)
        elif name == MODULES:
            modules += _modules(plane)
        elif name.startswith(GPU):
            device += _events(plane, STREAM)
    return Trace(events, modules, device)


def _events(plane: Fields, lines: str = "") -> Iterator[Event]:
    """Give the events of the lines whose names begin so."""
    known = {integer(one, 1): text(one, 2) for one in _map(plane, 4)}
    stats = {integer(one, 1): text(one, 2) for one in _map(plane, 5)}
    for number, line in enumerate(map(by_number, messages(plane, 3))):
        if not text(line, 2).startswith(lines):
            continue
        began = integer(line, 3) * PICOSECONDS
        for event in map(by_number, messages(line, 4)):
            length = integer(event, 3)
            if length <= 0:
                continue
            start = began + integer(event, 2)
            yield Event(
                known.get(integer(event, 1), ""),
                start // PICOSECONDS,
                (start + length) // PICOSECONDS,
                number,
                _texts(event, stats),
            )


def _texts(event: Fields, names: Mapping[int, str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for stat in map(by_number, messages(event, 4)):
        name = names.get(integer(stat, 1), "")
        if 5 in stat:
            found[name] = text(stat, 5)
        elif 7 in stat:
            found[name] = names.get(integer(stat, 7), "")
        elif name == CALL:
            found[name] = str(integer(stat, 3) or integer(stat, 4))
    return found


def _modules(plane: Fields) -> Iterator[memoryview]:
    names = {integer(one, 1): text(one, 2) for one in _map(plane, 5)}
    for module in _map(plane, 4):
        for stat in map(by_number, messages(module, 5)):
            if names.get(integer(stat, 1), "").lower().replace(" ", "_") == "hlo_proto":
                yield messages(stat, 6)[-1]


def _map(plane: Fields, number: int) -> List[Any]:
    """Give the values of a map field: each entry is a message of key and value."""
    entries = [by_number(one) for one in messages(plane, number)]
    return [message(one, 2) for one in entries if 2 in one]
