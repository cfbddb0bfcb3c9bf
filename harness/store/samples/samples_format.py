"""The samples format: what a collector reads on one node, appended as it happens.

``docs/samples-format.md`` explains it. A file is MAGIC, then frames; a frame is the length of its
body (u32), its kind (u8), its body, and the CRC-32 of kind and body (u32), all little-endian. A
reader stops at the first frame that is short or damaged: what a killed collector had written before
is whole.

    H  header    JSON: version, node, boot, clock, pid …                          always first
    G  group     JSON: id, source, period_ns, first_due_ns, channels
    S  sample    u16 group, u32 tick, i64 t_before, i64 t_after, then an i64 for each channel
    A  anchor    i64 monotonic before, i64 wall, i64 monotonic after
    N  note      JSON: what, and what there is to know about it

Times are nanoseconds of the node's monotonic clock, which the workers' events use too. A tick was
due at ``first_due_ns + tick * period_ns``; ticks that are not there were missed. A channel's value
is ``raw * scale`` in its unit; the lowest raw numbers are gaps, and say why.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from harness.store.typed import read

VERSION = 1  # 1: first
MAGIC = b"BAKEOFF-SAMPLES\n"

NOT_READ = -(1 << 63)
UNSUPPORTED = NOT_READ + 1
DENIED = NOT_READ + 2
LOST = NOT_READ + 3
ENDED = NOT_READ + 4
OUT_OF_RANGE = NOT_READ + 5
GAPS = {
    NOT_READ: "not read",
    UNSUPPORTED: "unsupported",
    DENIED: "denied",
    LOST: "lost",
    ENDED: "ended",
    OUT_OF_RANGE: "out of range",
}
HIGHEST_GAP = max(GAPS)

_HEAD = struct.Struct("<IB")
_CHECK = struct.Struct("<I")
_SAMPLE_HEAD = "IBHIqq"
_TICK = struct.Struct("<HIqq")
_ANCHOR = struct.Struct("<qqq")
_HEADER, _GROUP, _SAMPLE, _ANCHORED, _NOTE = b"HGSAN"


@dataclass(frozen=True)
class Channel:
    """One quantity of one thing."""

    name: str
    """What is read, for example "cpu.user"."""
    unit: str
    """Of ``raw * scale``: s, bytes, W, 1 …"""
    kind: str
    """counter: its growth counts. gauge: its value does. flags: its bits do."""
    scope: str
    """Whose: node, core:0, rank:1, gpu:GPU-…, disk:vda, observer …"""
    scale: float = 1.0
    wraps: int | None = None
    """A counter that starts again from 0 after this many."""
    meaning: str = ""
    """What a reader might mistake."""


_DEFAULTS = {"scale": 1.0, "wraps": None, "meaning": ""}


@dataclass(frozen=True)
class Declared:
    """A source's channels, read together at one rate."""

    id: int
    source: str
    period_ns: int
    first_due_ns: int
    channels: tuple[Channel, ...]


@dataclass(frozen=True)
class Sample:
    """One reading of one group."""

    group: int
    tick: int
    t_before: int
    t_after: int
    raw: tuple[int, ...]

    def is_of(self, group: Declared | None) -> bool:
        """Tell whether a declaration that was read fits; it may have been damaged."""
        return group is not None and len(self.raw) == len(group.channels)


@dataclass(frozen=True)
class Anchor:
    """The wall clock between two readings of the monotonic one."""

    before: int
    wall: int
    after: int


@dataclass(frozen=True)
class Header:
    """A file's header: version, clock and facts."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Note:
    """A note of an event, such as a source that cannot be read."""

    facts: Mapping[str, Any]


Frame = Header | Declared | Sample | Anchor | Note


def _frame(kind: int, body: bytes) -> bytes:
    kinded = bytes((kind,)) + body
    return _HEAD.pack(len(body), kind) + body + _CHECK.pack(zlib.crc32(kinded))


def _json(kind: int, value: Any) -> bytes:
    return _frame(kind, json.dumps(value, separators=(",", ":")).encode())


def header(**facts: Any) -> bytes:
    """Write a file's header."""
    return MAGIC + _json(_HEADER, {"version": VERSION, **facts})


def declare(group: Declared) -> bytes:
    """Declare the channels of a group's samples."""
    channels = [
        {name: value for name, value in vars(one).items() if _DEFAULTS.get(name, ...) != value}
        for one in group.channels
    ]
    return _json(_GROUP, {**vars(group), "channels": channels})


@cache
def _whole_sample(width: int) -> struct.Struct:
    return struct.Struct(f"<{_SAMPLE_HEAD}{width}q")


def sample(group: int, tick: int, t_before: int, t_after: int, raw: Sequence[int]) -> bytes:
    """Write one reading; a number too large for the format becomes a gap."""
    form = _whole_sample(len(raw))
    head = (form.size - _HEAD.size, _SAMPLE, group, tick, t_before, t_after)
    try:
        whole = form.pack(*head, *raw)
    except struct.error:
        limit = 1 << 63
        fitting = [n if -limit <= n < limit else OUT_OF_RANGE for n in raw]
        whole = form.pack(*head, *fitting)
    return whole + _CHECK.pack(zlib.crc32(whole[_HEAD.size - 1 :]))


def anchor(before: int, wall: int, after: int) -> bytes:
    """Write the wall clock's time beside the monotonic clock's."""
    return _frame(_ANCHORED, _ANCHOR.pack(before, wall, after))


def note(what: str, **facts: Any) -> bytes:
    """Write a note of an event."""
    return _json(_NOTE, {"what": what, **facts})


def frames(data: bytes) -> Iterator[tuple[Frame, int]]:
    """Give each whole frame and where it ends, up to the first that is torn or damaged.

    Raises ValueError if this is no samples file, or one that a newer version wrote.
    """
    if not data.startswith(MAGIC):
        raise ValueError("not a samples file")
    yield from frames_from(data, len(MAGIC))


def frames_from(data: bytes, at: int) -> Iterator[tuple[Frame, int]]:
    """Give each whole frame from an offset at which one begins, up to one that is damaged."""
    while at + _HEAD.size + _CHECK.size <= len(data):
        length, kind = _HEAD.unpack_from(data, at)
        begin = at + _HEAD.size
        end = begin + length + _CHECK.size
        if end > len(data):
            return
        (checksum,) = _CHECK.unpack_from(data, end - _CHECK.size)
        if zlib.crc32(data[begin - 1 : begin + length]) != checksum:
            return
        try:
            frame = _read(kind, data[begin : begin + length])
        except (struct.error, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return
        if isinstance(frame, Header) and frame.facts["version"] > VERSION:
            raise ValueError(
                f"version {frame.facts['version']}; this bakeoff reads up to {VERSION}. "
                "Update bakeoff."
            )
        if frame is not None:
            yield frame, end
        at = end


def _read(kind: int, body: bytes) -> Frame | None:
    """Read one frame's body; None for a kind that a later version may have added."""
    if kind == _SAMPLE:
        group, tick, before, after = _TICK.unpack_from(body)
        raw = struct.unpack_from(f"<{(len(body) - _TICK.size) // 8}q", body, _TICK.size)
        return Sample(group, tick, before, after, raw)
    if kind == _ANCHORED:
        return Anchor(*_ANCHOR.unpack(body))
    if kind == _GROUP:
        return _declared(json.loads(body))
    if kind == _HEADER:
        facts = json.loads(body)
        return Header({**facts, "version": int(facts["version"])})
    return Note({"what": "", **json.loads(body)}) if kind == _NOTE else None


def _declared(raw: dict[str, Any]) -> Declared:
    """Read a group; a counter of 64 bits wraps at one more than other numbers here may be."""
    wraps = [one.pop("wraps", None) for one in raw["channels"]]
    if not all(at is None or (type(at) is int and 0 < at <= 1 << 64) for at in wraps):
        raise ValueError("a counter wraps where none can")
    group = read(Declared, raw)
    both = zip(group.channels, wraps, strict=True)
    return replace(group, channels=tuple(replace(channel, wraps=at) for channel, at in both))
