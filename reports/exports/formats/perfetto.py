"""Write cells as a native trace of Perfetto's, with the protobuf classes of its wheel.

It holds what ``trace.py`` writes; Perfetto reads it faster, and gives counters their units.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from harness.analysis.results import Results
from harness.errors import Unavailable
from reports.exports.tracks import Counter, Process, Slice, Track, processes

_CLASSES = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
_SEQUENCE = 1
"""All packets are of one writer."""


def of_results(results: Results) -> bytes:
    """Write all cells of the runs."""
    try:
        classes: Any = importlib.import_module(_CLASSES)
    except ModuleNotFoundError:
        raise Unavailable(
            "Perfetto's own format needs its wheel: pip install 'bakeoff[perfetto]'. "
            "`--to trace` needs nothing, and Perfetto reads that, too."
        ) from None
    writing = _Writing(classes)
    for number, one in enumerate(processes(results), 1):
        writing.process(one, number)
    whole: bytes = writing.trace.SerializeToString()
    return whole


class _Writing:
    """A trace that grows packet by packet."""

    def __init__(self, classes: Any) -> None:
        self.trace = classes.Trace()
        self._kinds = classes.TrackEvent
        self._tracks = 0

    def process(self, of: Process, pid: int) -> None:
        """Add one cell."""
        above = self._descriptor()
        above.process.pid = pid
        above.process.process_name = of.name
        above.process.process_labels.append(of.label)
        for rank, track in enumerate(of.tracks):
            below = self._below(above, track.name, rank)
            for at_ns, begun in _moments(track):
                self._slice(below.uuid, at_ns, begun)
        for rank, counter in enumerate(of.counters, len(of.tracks)):
            below = self._below(above, counter.name, rank)
            below.counter.unit_name = counter.unit
            self._points(below.uuid, counter)

    def _descriptor(self) -> Any:
        self._tracks += 1
        descriptor = self.trace.packet.add().track_descriptor
        descriptor.uuid = self._tracks
        return descriptor

    def _below(self, above: Any, name: str, rank: int) -> Any:
        descriptor = self._descriptor()
        descriptor.parent_uuid = above.uuid
        descriptor.name = name
        descriptor.sibling_order_rank = rank
        return descriptor

    def _event(self, track: int, at_ns: int, kind: int) -> Any:
        packet = self.trace.packet.add()
        packet.timestamp = at_ns
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.track_uuid = track
        packet.track_event.type = kind
        return packet.track_event

    def _slice(self, track: int, at_ns: int, begun: Slice | None) -> None:
        if begun is None:
            self._event(track, at_ns, self._kinds.TYPE_SLICE_END)
            return
        event = self._event(track, at_ns, self._kinds.TYPE_SLICE_BEGIN)
        event.name = begun.name
        event.categories.append(begun.category)
        for name, text in begun.about.items():
            note = event.debug_annotations.add()
            note.name, note.string_value = name, text

    def _points(self, track: int, counter: Counter) -> None:
        for at_ns, value in counter.points:
            event = self._event(track, at_ns, self._kinds.TYPE_COUNTER)
            event.double_counter_value = value


def _moments(track: Track) -> Iterator[tuple[int, Slice | None]]:
    """Give each slice where it begins, and None where the innermost one ends."""
    open_until: list[int] = []
    for one in track.slices:
        while open_until and open_until[-1] <= one.start_ns:
            yield open_until.pop(), None
        yield one.start_ns, one
        open_until.append(one.start_ns + one.length_ns)
    while open_until:
        yield open_until.pop(), None
