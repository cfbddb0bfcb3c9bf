"""This file draws where the time of a step goes, one stacked bar per cell."""

from __future__ import annotations

from collections.abc import Sequence

from reports import numbers
from reports.charts.svg import element, picture, text
from reports.evidence import StepSplit

_WIDTH, _LEFT, _RIGHT, _ROW = 960.0, 230.0, 90.0, 30.0


def stacks(splits: Sequence[StepSplit], *, name: str) -> str:
    """Draw all cells on one axis; the same part has the same colour everywhere."""
    parts = list(dict.fromkeys(part for split in splits for part, _ in split.parts_s))
    longest = max(sum(seconds for _, seconds in split.parts_s) for split in splits) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    drawn, at = [], _LEFT
    for index, part in enumerate(parts):
        drawn.append(
            element("rect", class_=f"s{index % 8 + 1}", x=at, y=4.0, width=11.0, height=11.0)
        )
        drawn.append(text(at + 16, 14, part))
        at += 34 + 7 * len(part)
    for row, split in enumerate(splits):
        top, left = 28 + row * _ROW, _LEFT
        drawn.append(text(0, top + 14, split.name))
        for part, seconds in split.parts_s:
            title = element("title", f"{part}: {numbers.seconds(seconds)}")
            width = seconds * scale
            kind = f"s{parts.index(part) % 8 + 1}"
            drawn.append(
                element("rect", title, class_=kind, x=left, y=top, width=width, height=_ROW - 11)
            )
            left += width
        total = sum(seconds for _, seconds in split.parts_s)
        drawn.append(text(left + 8, top + 14, numbers.seconds(total)))
    height = 32 + len(splits) * _ROW
    return picture(_WIDTH, height, "".join(drawn), label="Where a step's time goes", name=name)
