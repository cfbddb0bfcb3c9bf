"""Follow a samples file as it grows: what each channel reads now, without numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import DamagedFile
from harness.store.contained import MOST_SAMPLES, Contained
from harness.store.samples import samples_format
from harness.store.samples.samples_format import MAGIC, Channel, Declared, Header, Note, Sample


@dataclass(frozen=True)
class CurrentReading:
    """The latest reading of one channel: a gauge's value, or a counter's growth per second."""

    channel: Channel
    value: float
    t_ns: int

    @property
    def unit(self) -> str:
        """Unit of the value; a counter's is per second."""
        return f"{self.channel.unit}/s" if self.channel.kind == "counter" else self.channel.unit


class Follower:
    """Reads what was appended since the last call; a file that does not exist yet is empty."""

    def __init__(self, path: Path, files: Contained | None = None) -> None:
        self._path = path
        self._files = files or Contained(path.parent)
        self._at = 0
        self._declared: dict[int, Declared] = {}
        self._last: dict[int, tuple[Sample | None, Sample]] = {}
        self.facts: Mapping[str, object] = {}
        self.notes: list[Mapping[str, object]] = []

    def look(self) -> dict[tuple[str, str], CurrentReading]:
        """Read new frames; give every channel's latest reading by scope and name."""
        try:
            with self._files.reading(self._path) as file:
                file.seek(self._at)
                data = file.read(MOST_SAMPLES)
        except (FileNotFoundError, DamagedFile):
            data = b""
        start = len(MAGIC) if self._at == 0 else 0
        if self._at > 0 or data.startswith(MAGIC):
            read = start
            for frame, end in samples_format.frames_from(data, start):
                self._take(frame)
                read = end
            self._at += read
        return {(now.channel.scope, now.channel.name): now for now in self._now()}

    def _take(self, frame: samples_format.Frame) -> None:
        if isinstance(frame, Sample) and frame.is_of(self._declared.get(frame.group)):
            before = self._last.get(frame.group)
            self._last[frame.group] = (None if before is None else before[1], frame)
        elif isinstance(frame, Declared):
            self._declared[frame.id] = frame
        elif isinstance(frame, Header):
            self.facts = frame.facts
        elif isinstance(frame, Note):
            self.notes.append(frame.facts)

    def _now(self) -> list[CurrentReading]:
        readings = []
        for group, (before, after) in self._last.items():
            for at, channel in enumerate(self._declared[group].channels):
                raw = after.raw[at]
                if raw <= samples_format.HIGHEST_GAP:
                    continue
                if channel.kind != "counter":
                    readings.append(CurrentReading(channel, raw * channel.scale, after.t_before))
                    continue
                if before is None or before.raw[at] <= samples_format.HIGHEST_GAP:
                    continue
                grown = raw - before.raw[at]
                if grown < 0:
                    grown += channel.wraps or -grown
                seconds = (after.t_before - before.t_before) / 1e9
                if seconds > 0:
                    readings.append(
                        CurrentReading(channel, grown * channel.scale / seconds, after.t_before)
                    )
        return readings
