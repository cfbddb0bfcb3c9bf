"""Read a samples file into series: one per channel, on the node's monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import DamagedFile
from harness.store.contained import MOST_SAMPLES, Contained
from harness.store.samples import samples_format
from harness.store.samples.samples_format import Anchor, Channel, Declared, Header, Note, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

_COVERED = 0.5
"""A mean over a span needs readings over this share of it."""


@dataclass(frozen=True)
class Series:
    """One channel over time."""

    source: str
    channel: Channel
    period_ns: int
    before_ns: Integers
    after_ns: Integers
    raw: Integers

    @cached_property
    def times_ns(self) -> Integers:
        """When each reading was: midway between the two looks at the clock."""
        middle: Integers = self.before_ns + (self.after_ns - self.before_ns) // 2
        return middle

    @cached_property
    def values(self) -> Floats:
        """Readings in the channel's unit, gaps not a number; counters grow from 0, unwrapped."""
        import numpy as np

        known = self.raw > samples_format.HIGHEST_GAP
        values = np.full(len(self.raw), np.nan)
        if self.channel.kind == "counter" and known.any():
            steps = np.diff(self.raw[known], prepend=self.raw[known][:1])
            fell = steps < 0
            # where a counter without a known end fell, it began anew: nothing is known of that span
            wraps = self.channel.wraps
            grown = steps.astype(np.float64)
            grown[fell] = grown[fell] + wraps if wraps else 0.0
            values[known] = np.cumsum(grown)
        else:
            values[known] = self.raw[known]
        result: Floats = values * self.channel.scale
        return result

    def mean(self, start_ns: int, end_ns: int) -> float | None:
        """Give a counter's growth per second, or a gauge's mean; None where too little was read."""
        import numpy as np

        known = np.isfinite(self.values)
        times, values = self.times_ns[known], self.values[known]
        if len(times) < 2:
            return None
        if self.channel.kind == "counter":
            start, end = max(start_ns, int(times[0])), min(end_ns, int(times[-1]))
            if end <= start or end - start < _COVERED * (end_ns - start_ns):
                return None
            first, last = np.interp([start, end], times, values)
            return float(last - first) / ((end - start) / 1e9)
        inside = values[(times >= start_ns) & (times <= end_ns)]
        return float(inside.mean()) if len(inside) else None

    def peak(self, start_ns: int, end_ns: int) -> float | None:
        """Give the highest value between two moments; None for counters."""
        import numpy as np

        if self.channel.kind == "counter":
            return None
        inside = self.values[(self.times_ns >= start_ns) & (self.times_ns <= end_ns)]
        inside = inside[np.isfinite(inside)]
        return float(inside.max()) if len(inside) else None

    def rates(self) -> tuple[Floats, Floats]:
        """Give the growth per second between readings, and the seconds at which each span ended."""
        import numpy as np

        known = np.isfinite(self.values)
        times, values = self.times_ns[known] / 1e9, self.values[known]
        spans = np.diff(times)
        return times[1:], np.divide(
            np.diff(values), spans, where=spans > 0, out=np.zeros_like(spans)
        )


@dataclass(frozen=True)
class Recording:
    """Everything that one samples file holds."""

    facts: Mapping[str, Any]
    series: tuple[Series, ...]
    notes: tuple[Mapping[str, Any], ...]
    anchors: tuple[Anchor, ...]
    whole: bool
    """Whether the collector ended it; else it was cut off, and holds what came before."""
    index: Mapping[tuple[str, str], Series] = field(repr=False)

    def find(self, scope: str, name: str) -> Series | None:
        """Give the channel ``name`` of one scope: a node, core, rank or device."""
        return self.index.get((scope, name))

    def named(self, name: str) -> Iterator[Series]:
        """Give the channel ``name`` of every scope that has it."""
        return (series for series in self.series if series.channel.name == name)

    def noted(self, what: str) -> Iterator[Mapping[str, Any]]:
        """Give the notes of one kind."""
        return (note for note in self.notes if note["what"] == what)

    def unread(self) -> Iterator[tuple[str, str]]:
        """Name the sources that could not be read, or not always, and say why."""
        for note in self.noted("unavailable"):
            yield note["source"], note["reason"]
        for note in self.noted("failing"):
            yield note["source"], f"a reading failed: {note['reason']}"


def read_recording(path: Path, files: Contained | None = None) -> Recording | None:
    """Read a samples file; None if there is none, or none that can be read.

    One of a run is read through the run's ``files``.
    """
    files = files or Contained(path.parent)
    try:
        data = files.read_bytes(path, MOST_SAMPLES)
    except (FileNotFoundError, DamagedFile):
        return None
    facts: Mapping[str, Any] = {}
    declared: dict[int, Declared] = {}
    taken: dict[int, list[Sample]] = {}
    notes, anchors = [], []
    try:
        for frame, _ in samples_format.frames(data):
            if isinstance(frame, Sample):
                if not frame.is_of(declared.get(frame.group)):
                    break  # what declared it is damaged
                taken[frame.group].append(frame)
            elif isinstance(frame, Declared):
                declared[frame.id] = frame
                taken[frame.id] = []
            elif isinstance(frame, Anchor):
                anchors.append(frame)
            elif isinstance(frame, Note):
                notes.append(frame.facts)
            elif isinstance(frame, Header):
                facts = frame.facts
    except ValueError:
        return None
    series = [one for group in declared.values() for one in _series(group, taken[group.id])]
    return Recording(
        facts=facts,
        series=tuple(series),
        notes=tuple(notes),
        anchors=tuple(anchors),
        whole=any(note["what"] == "ends" for note in notes),
        index={(one.channel.scope, one.channel.name): one for one in series},
    )


def _series(group: Declared, taken: list[Sample]) -> Iterator[Series]:
    import numpy as np

    raw = np.array([one.raw for one in taken], dtype=np.int64).reshape(-1, len(group.channels))
    before = np.array([one.t_before for one in taken], dtype=np.int64)
    after = np.array([one.t_after for one in taken], dtype=np.int64)
    for at, channel in enumerate(group.channels):
        yield Series(group.source, channel, group.period_ns, before, after, raw[:, at])
