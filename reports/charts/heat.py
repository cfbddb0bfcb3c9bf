"""Draw a timeline as a heat map: one line per device, phases and steps above it.

The cells are one small picture of palette colours, so that an hour of 64 devices stays small.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from harness.analysis.evidence import Mark, Timeline
from harness.analysis.timelines.time_grid import MOST_STEPS, BinnedTimeline, steps_apart
from reports.charts.svg import Scale, coordinate, element, picture, text, ticks

_LEFT, _RIGHT = 110.0, 16.0
WIDE, NARROW = 1040.0, 354.0
_ACROSS = WIDE - _LEFT - _RIGHT
_LEVELS = 63
_PALE, _DEEP = (222, 235, 247), (3, 34, 84)


def _palette() -> bytes:
    """Interpolate from pale to deep blue; entry 0 is the gap, which is transparent."""
    shares = [level / (_LEVELS - 1) for level in range(_LEVELS)]
    return bytes(3) + bytes(
        round(pale + (deep - pale) * share)
        for share in shares
        for pale, deep in zip(_PALE, _DEEP, strict=True)
    )


def _png(pixels: Any) -> bytes:
    """Write a palette picture: PNG's own format, no library needed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    height, width = pixels.shape
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", _palette())
        + chunk(b"tRNS", b"\0")
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def _pixels(timeline: Timeline, grid: BinnedTimeline) -> Any:
    import numpy as np

    share = (grid.mean - timeline.low) / ((timeline.high - timeline.low) or 1.0)
    level = 1 + np.clip(np.nan_to_num(share) * (_LEVELS - 1), 0, _LEVELS - 1).round()
    return np.where(np.isnan(grid.mean), 0, level).astype(np.uint8)


def _marks(marks: Sequence[Mark], at: Scale, top: float) -> list[str]:
    drawn = []
    phases = [mark for mark in marks if mark.kind == "phase"]
    groups = list(dict.fromkeys(mark.group or mark.name for mark in phases))
    for mark in phases:
        left, right = at(mark.start_s), at(mark.end_s)
        title = element("title", f"{mark.start_s:.1f} to {mark.end_s:.1f} s")
        kind = f"p{groups.index(mark.group or mark.name) % 8 + 1} band"
        drawn.append(
            element("rect", title, class_=kind, x=left, y=top, width=right - left, height=16.0)
        )
        if right - left > 6.5 * len(mark.name):
            drawn.append(text(left + 4, top + 12, mark.name))
    steps = steps_apart(marks, MOST_STEPS * (at.end - at.start) / _ACROSS)
    if steps:
        ticked = "".join(f"M{coordinate(at(mark.start_s))} {top + 18:.0f}v6" for mark in steps)
        drawn.append(element("path", class_="axis", d=ticked))
    return drawn


def heat(
    timeline: Timeline,
    grid: BinnedTimeline,
    *,
    name: str,
    width: float = WIDE,
    axis: tuple[float, float] | None = None,
) -> str:
    """Draw a timeline's means; gaps show the hatching behind.

    ``axis`` is what the drawings of one recording span together, this one's own times without it.
    """
    rows = len(timeline.channels)
    height = max(4.0, min(18.0, 440.0 / max(rows, 1)))
    top = 28.0 if timeline.marks else 4.0
    bottom = top + rows * height
    stop = grid.stop_s
    first, last = axis or (grid.start_s, stop)
    at = Scale(first, last, _LEFT, width - _RIGHT)
    data = base64.b64encode(_png(_pixels(timeline, grid))).decode()
    across, down = width - _LEFT - _RIGHT, bottom - top
    area: dict[str, Any] = {"x": _LEFT, "y": top, "width": across, "height": down}
    read = {**area, "x": at(grid.start_s), "width": at(stop) - at(grid.start_s)}
    hatch = element("path", class_="axis", d="M0 6L6 0")
    pattern = element(
        "pattern", hatch, id=f"gap-{name}", width="6", height="6", patternUnits="userSpaceOnUse"
    )
    drawn = [
        element("defs", pattern),
        element("rect", fill=f"url(#gap-{name})", class_="gap", **area),
        element(
            "image",
            href=f"data:image/png;base64,{data}",
            preserveAspectRatio="none",
            class_="heat",
            data_start=f"{grid.start_s:.9g}",
            data_stop=f"{stop:.9g}",
            **read,
        ),
        element("g", "".join(_marks(timeline.marks, at, 0.0)), class_="phases"),
    ]
    every = max(1, round(11 / height))
    for row in range(0, rows, every):
        middle = top + (row + 0.5) * height + 4
        label = timeline.channels[row].name
        drawn.append(text(_LEFT - 8, middle, label, text_anchor="end"))
    for value in ticks(first, last, 8 if width == WIDE else 4):
        drawn.append(
            element("line", class_="axis", x1=at(value), x2=at(value), y1=bottom, y2=bottom + 4)
        )
        # the last one may stand at the very edge
        anchor = "middle" if at(value) < width - 3 * _RIGHT else "end"
        drawn.append(
            text(at(value), bottom + 17, f"{value:g} s", text_anchor=anchor, class_="soft")
        )
    label = f"{timeline.full_title}: {rows} lines over {stop - grid.start_s:.0f} s"
    return picture(width, bottom + 24, "".join(drawn), label=label, name=name)
