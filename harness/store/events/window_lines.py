"""Read the lines of windows as columns, those of one length at once.

Lines of one length are laid under each other as a table of bytes and read fifty times as fast as
JSON; where one of them differs from the others in more than digits, all of that length are read as
JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

from harness.store.events.known_events import usable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Integers = NDArray[np.int64]

_NUMBERS = ("first", "steps", "start", "end", "waited")
UNKNOWN = -1
"""In place of the waiting time, where a window has none."""
UNREAD, WARM_UP, MEASURED = 0, 1, 2
_PHASES = {"warm-up": WARM_UP, "measure": MEASURED}
_ZEROS = re.compile(rb"0+")
_TO_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ZERO = 48
_PHASE = len(b'{"event":"window","phase":"')
"""Where phases differ, if not sooner or later by spaces."""
_MOST_DIGITS = 18
"""More do not fit into 64 bits."""
_EXACT_DIGITS = 15
_FEW = 5
"""So few lines of one length are read faster as JSON."""
LONGEST = 400
"""Longer lines are read as JSON."""
_WIDE = 8
"""So many lines side by side: extremes of long rows are found faster than those of short ones."""


def read_windows(
    data: bytes, begins: Integers, ends: Integers
) -> tuple[Integers, NDArray[np.int8]]:
    """Read the lines of windows as columns, and their phases."""
    import numpy as np

    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    phase_words = words[begins + _PHASE]
    # "warm-up" is as long as "measure"
    alike = 2 * (ends - begins) + (phase_words == phase_words[-1:])
    columns = np.full((len(_NUMBERS), len(begins)), UNKNOWN, dtype=np.int64)
    phases = np.full(len(begins), UNREAD, dtype=np.int8)
    alone: list[int] = []
    for kind in np.flatnonzero(np.bincount(alike)).tolist():
        places = np.flatnonzero(alike == kind)
        phase, length = UNREAD, kind // 2
        if len(places) >= _FEW and length <= LONGEST:
            lines = np.ndarray(
                (len(data) - length + 1,), dtype=f"V{length}", buffer=data, strides=(1,)
            )[begins[places]]
            table = lines.view(np.uint8).reshape(-1, length)
            phases[places] = phase = _read_alike(table, columns, places)
        if phase == UNREAD:
            alone += places.tolist()
    for place in alone:
        columns[:, place], phases[place] = column_of(parsed(data[begins[place] : ends[place]]))
    return columns, phases


def _read_alike(lines: Bytes, columns: Integers, places: Integers) -> int:
    """Read lines of one length into columns, and tell their phase, if they differ in digits only.

    Whatever lies between the least and the greatest digit of a place is a digit.
    """
    least, most = _extremes(lines)
    low, high = least.tobytes(), most.tobytes()
    form = low.translate(_TO_ZEROS)
    if form != high.translate(_TO_ZEROS):
        return UNREAD
    phase, spans = _spans(form)
    if any(low[begin] == _ZERO and end - begin > 1 for begin, end in spans.values()):
        return UNREAD  # JSON knows no leading zeros
    for row, (begin, end) in spans.items():
        if low[begin:end] == high[begin:end]:
            columns[row, places] = int(low[begin:end])
        else:
            powers, zeros = _powers(end - begin)
            columns[row, places] = lines[:, begin:end].astype(powers.dtype) @ powers - zeros
    return phase


def _extremes(lines: Bytes) -> tuple[Bytes, Bytes]:
    """Give the least and the greatest byte of each column."""
    import numpy as np

    whole = len(lines) // _WIDE
    if whole < _WIDE:
        return np.minimum.reduce(lines), np.maximum.reduce(lines)
    length, rest = lines.shape[1], lines[whole * _WIDE :]
    wide = lines[: whole * _WIDE].reshape(whole, _WIDE * length)
    least = np.concatenate((np.minimum.reduce(wide).reshape(_WIDE, length), rest))
    most = np.concatenate((np.maximum.reduce(wide).reshape(_WIDE, length), rest))
    return np.minimum.reduce(least), np.maximum.reduce(most)


@lru_cache(maxsize=1024)
def _spans(form: bytes) -> tuple[int, Mapping[int, tuple[int, int]]]:
    """Find the phase of a window and the places of its numbers, from its line with all digits 0.

    Each row of digits is replaced by its number, and the line is read: what comes out as a whole
    positive number is one of them, without a sign, a point or an exponent.
    """
    spans = [spans_by_row.span() for spans_by_row in _ZEROS.finditer(form)]
    numbers = count(1)
    event = parsed(_ZEROS.sub(lambda _: b"%d" % next(numbers), form))
    column, phase = column_of(event)
    spans_by_row = {
        row: spans[number - 1] for row, number in enumerate(column) if 1 <= number <= len(spans)
    }
    named = [name for name in _NUMBERS if name in event]
    is_long = any(end - begin > _MOST_DIGITS for begin, end in spans_by_row.values())
    return (UNREAD, {}) if is_long or len(spans_by_row) < len(named) else (phase, spans_by_row)


@lru_cache(maxsize=_MOST_DIGITS)
def _powers(digits: int) -> tuple[NDArray[Any], int]:
    """Give the power of ten of each digit, and the sum that the character code of "0" adds.

    Up to 15 digits a float holds every sum exactly, and is multiplied faster.
    """
    import numpy as np

    powers = 10 ** np.arange(digits - 1, -1, -1, dtype=np.int64)
    zeros = _ZERO * int(powers.sum())
    return (powers.astype(np.float64) if digits <= _EXACT_DIGITS else powers), zeros


def column_of(event: Mapping[str, Any]) -> tuple[list[int], int]:
    """Give the numbers of a window and its phase; it is unread if it lacks one of them."""
    values = [event.get(name) for name in _NUMBERS]
    column = [value if type(value) is int else UNKNOWN for value in values]
    if usable(event) is None or event["event"] != "window":
        return [UNKNOWN] * len(_NUMBERS), UNREAD
    return column, _PHASES.get(str(event.get("phase")), UNREAD)


def parsed(line: bytes) -> dict[str, Any]:
    """Read one line as JSON; empty where it is torn, or no object."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
