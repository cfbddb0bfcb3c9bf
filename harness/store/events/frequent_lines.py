"""Find the damaged ones among the lines that come as often as windows, and are not needed.

Values and the device's own steps come once for each window. They are not read as JSON unless they
look otherwise than workers write them: at first it is only counted how many look so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.store.events.window_lines import Integers

_WHOLE = rb"(?:0|[1-9][0-9]{0,17}+)"
_NUMBER = rb"-?+(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?+[0-9]++)?+|NaN|Infinity)"
_VALUE = rb'"[ !#-\[\]-~]*+": ?+(?:' + _NUMBER + rb"|null)"


def _row(item: bytes) -> bytes:
    return rb"(?:" + item + rb"(?:, ?+" + item + rb")*+)?+"


_VALUES = rb'values", ?+"step": ?+' + _WHOLE + rb', ?+"values": ?+{' + _row(_VALUE) + rb"}}"
_STEPS = (
    rb'device-steps", ?+"last": ?+' + _WHOLE + rb', ?+"seconds": ?+\[' + _row(_NUMBER) + rb"\]}"
)
_USUAL = rb'{"event": ?+"(?:' + _VALUES + rb"|" + _STEPS + rb")"
_LINE = re.compile(_USUAL + rb"\n")
_COUNTED = re.compile(rb"\n" + _USUAL + rb"(?=\n)()")
"""It gives nothing but how often it is found: behind another line."""


def unusual_lines(data: bytes, begins: Integers, ends: Integers, frequent: Integers) -> Integers:
    """Give those of the frequent lines that must be looked at one by one: hardly ever any."""
    import numpy as np

    if not len(frequent):
        return frequent
    if frequent[0] > 0 and len(_COUNTED.findall(data)) == len(frequent):
        return frequent[:0]
    spans = zip(begins[frequent].tolist(), ends[frequent].tolist(), strict=True)
    is_usual = [_LINE.fullmatch(data, begin, end) is not None for begin, end in spans]
    unusual: Integers = frequent[~np.array(is_usual, dtype=bool)]
    return unusual
