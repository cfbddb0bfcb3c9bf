"""This file reads the event file of one rank: its windows as arrays, and what it said of itself.

Nearly all of a large file is windows, one line each and alike but for their digits. Lines of one
length that follow each other are read as a table of bytes, fifty times as fast as JSON; where the
first of them is not what JSON says, another differs from it in more than digits, or a line is torn,
every line is read as JSON, and what is torn is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Integers = NDArray[np.int64]

_NUMBERS = ("first", "steps", "start", "end")
_KEYS = ["event", "phase", *_NUMBERS]
_FORMS = (b'"phase":"measure"', b'"phase": "measure"')
_MEASURED = re.compile(rb'"phase": ?"measure"')
_SAYS = re.compile(
    rb'\s*{\s*"event"\s*:\s*'
    rb'"(units|versions|facts|checkpoint|checkpoint-state|restored|window)"'
)
_TOLD = ("units", "versions", "facts")
_DIGITS = re.compile(rb"\d+")
_NEWLINE, _ZERO, _NINE = 10, 48, 57
_MOST_DIGITS = 18
"""More do not fit into 64 bits."""
_FEW = 12
"""So few lines of one length are read faster as JSON."""
_MOST_LENGTHS = 64
"""Lines that change their length more often are read as JSON."""


@dataclass(frozen=True)
class Spoken:
    """What one rank said; windows are rows of first step, steps, start and end."""

    measured: Integers
    warm_up: Integers
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """units, versions and facts."""
    saves: tuple[Mapping[str, Any], ...] = ()
    """What was said of checkpoints, in that order."""


def read(data: bytes) -> Spoken:
    """Read what a file holds; damage costs the damaged lines only."""
    begin, end = _measured(data)
    rest = data[:begin].splitlines() + data[end:].splitlines()
    block = data[begin:end]
    measured = _alike(block)
    if measured is None:
        lines = block.splitlines()
        measured = _rows(_events([line for line in lines if b'"window"' in line]))
        rest += [line for line in lines if b'"window"' not in line]
    told: dict[str, Mapping[str, Any]] = {}
    saves: list[Mapping[str, Any]] = []
    warm_up: list[Mapping[str, Any]] = []
    for event in _events([line for line in rest if _SAYS.match(line)]):
        kind = str(event.get("event"))
        if kind in _TOLD:
            told[kind] = event.get(kind) or {}
        else:
            (warm_up if kind == "window" else saves).append(event)
    return Spoken(_in_order(measured), _in_order(_rows(warm_up)), told, tuple(saves))


def _measured(data: bytes) -> tuple[int, int]:
    """Find the lines from the first measured window to the last."""
    first = _MEASURED.search(data)
    if first is None:
        return len(data), len(data)
    last = max(data.rfind(form) for form in _FORMS)
    end = data.find(b"\n", last)
    return data.rfind(b"\n", 0, first.start()) + 1, len(data) if end < 0 else end


def _alike(block: bytes) -> Integers | None:
    """Read lines that are all windows, and all of one form; None if any is not."""
    import numpy as np

    if not block:
        return None
    data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", dtype=np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    lengths = np.diff(ends, prepend=-1)
    firsts = np.flatnonzero(np.diff(lengths, prepend=-1))
    if len(firsts) > _MOST_LENGTHS:
        return None
    rows = np.empty((len(lengths), len(_NUMBERS)), dtype=np.int64)
    for first, last in zip(firsts, (*firsts[1:], len(lengths)), strict=True):
        length = int(lengths[first])
        begin = int(ends[first]) + 1 - length
        lines = data[begin : int(ends[last - 1]) + 1].reshape(-1, length)
        if len(lines) < _FEW:
            parsed = _rows(
                _events([line for line in lines.tobytes().splitlines() if b'"window"' in line])
            )
            if len(parsed) < len(lines):
                return None
            rows[first:last] = parsed
        elif not _read_alike(lines, rows[first:last]):
            return None
    return rows


def _read_alike(lines: Bytes, rows: Integers) -> bool:
    """Read lines of one length into rows; tell whether they differ from the first in digits only.

    Such lines have nothing between the digits that the first has not, nor digits anywhere else.
    """
    first = lines[0].tobytes()
    spans = [found.span() for found in _DIGITS.finditer(first)]
    if len(spans) != len(_NUMBERS):
        return False
    least, most = lines.min(axis=0), lines.max(axis=0)
    is_fixed = least == most
    is_digit = (least >= _ZERO) & (most <= _NINE)
    is_fit = is_fixed.copy()
    for place, (begin, end) in enumerate(spans):
        if end - begin > _MOST_DIGITS:
            return False
        if is_fixed[begin:end].all():
            rows[:, place] = int(first[begin:end])
            continue
        powers, zeros = _powers(end - begin)
        rows[:, place] = lines[:, begin:end] @ powers - zeros
        is_fit[begin:end] = is_digit[begin:end]
    return bool(is_fit.all()) and b'"window"' in first and _is_said(first, rows[0].tolist())


@cache
def _powers(digits: int) -> tuple[Integers, int]:
    """Give the worth of each place, and what characters are worth that are all zeros."""
    import numpy as np

    powers: Integers = 10 ** np.arange(digits - 1, -1, -1, dtype=np.int64)
    return powers, _ZERO * int(powers.sum())


def _rows(windows: Sequence[Mapping[str, Any]]) -> Integers:
    """Lay windows out as rows, and leave out those that lack a number."""
    import numpy as np

    told = ([event.get(name) for name in _NUMBERS] for event in windows)
    whole = [row for row in told if all(isinstance(value, int) for value in row)]
    return np.array(whole, dtype=np.int64).reshape(-1, 4)


def _is_said(line: bytes, row: Sequence[int]) -> bool:
    """Tell whether a line holds these numbers and nothing else."""
    event = _parsed(line)
    return list(event) == _KEYS and [event[name] for name in _NUMBERS] == row


def _events(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Read lines as JSON, all at once if none is torn; nothing stands for what is."""
    try:
        events = json.loads(b"[%s]" % b",".join(lines))
    except ValueError:
        events = []
    if len(events) < len(lines):
        return [event for line in lines if (event := _parsed(line))]
    return [event for event in events if isinstance(event, dict)]


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _in_order(rows: Integers) -> Integers:
    """Sort windows by their start; they nearly always are."""
    import numpy as np

    start = rows[:, 2]
    if np.all(start[1:] >= start[:-1]):
        return rows
    ordered: Integers = rows[np.argsort(start, kind="stable")]
    return ordered
