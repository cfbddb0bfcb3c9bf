"""This file reads the event file of one rank: its windows as arrays, and what it said of itself.

Nearly all of a large file is windows, one line each and all alike. Their numbers are read by one
pass over the bytes, twenty times as fast as JSON; where the first and the last of them are not what
JSON says, or a line is torn, every line is read as JSON, and what is torn is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_NUMBERS = ("first", "steps", "start", "end")
_KEYS = ["event", "phase", *_NUMBERS]
_FORMS = (b'"phase":"measure"', b'"phase": "measure"')
_MEASURED = re.compile(rb'"phase": ?"measure"')
_TELLS = re.compile(rb'\s*{\s*"event"\s*:\s*"(units|versions|facts)"')
_DIGITS = bytes(byte if chr(byte).isdigit() else 32 for byte in range(128)) + b" " * 128


@dataclass(frozen=True)
class Spoken:
    """What one rank said; windows are rows of first step, steps, start and end."""

    measured: Integers
    warm_up: Integers
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """units, versions and facts."""


def read(file: Path) -> Spoken:
    """Read a file; damage costs the damaged lines only."""
    data = file.read_bytes()
    begin, end = _measured(data)
    rest = data[:begin].splitlines() + data[end:].splitlines()
    block = data[begin:end]
    measured = _alike(block)
    if measured is None:
        lines = block.splitlines()
        measured = _slowly([line for line in lines if b'"window"' in line])
        rest += [line for line in lines if b'"window"' not in line]
    told: dict[str, Mapping[str, Any]] = {}
    for line in rest:
        if _TELLS.match(line):
            event = _parsed(line)
            told[str(event.get("event"))] = event.get(str(event.get("event"))) or {}
    windows = [line for line in rest if b'"window"' in line]
    warm_up = _alike(b"\n".join(windows))
    return Spoken(
        _in_order(measured), _in_order(_slowly(windows) if warm_up is None else warm_up), told
    )


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

    count = block.count(b"\n") + 1
    if block.count(b'"window"') != count:
        return None
    found = np.fromstring(block.translate(_DIGITS), dtype=np.int64, sep=" ")
    if len(found) != 4 * count:
        return None
    rows: Integers = found.reshape(-1, 4)
    ends = block[: block.find(b"\n")] if count > 1 else block, block[block.rfind(b"\n") + 1 :]
    is_said = all(_is_said(line, list(rows[at])) for line, at in zip(ends, (0, -1), strict=True))
    return rows if is_said else None


def _slowly(lines: Sequence[bytes]) -> Integers:
    """Read windows as JSON, one by one, and leave out what is torn."""
    import numpy as np

    told = ([event.get(name) for name in _NUMBERS] for event in map(_parsed, lines))
    whole = [row for row in told if all(isinstance(value, int) for value in row)]
    return np.array(whole, dtype=np.int64).reshape(-1, 4)


def _is_said(line: bytes, row: Sequence[int]) -> bool:
    """Tell whether a line holds these numbers and nothing else."""
    event = _parsed(line)
    return list(event) == _KEYS and [event[name] for name in _NUMBERS] == row


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
