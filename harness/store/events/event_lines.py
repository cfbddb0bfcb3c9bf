"""Read event files of ranks: windows as arrays, the other events as objects.

Nearly all of a large file is windows, and values that are not needed here, one line each. Windows
of one length are laid under each other as a table of bytes and read fifty times as fast as JSON;
where one of them differs from the others in more than digits, all of that length are read as JSON.
Lines that hold no event are left out, and named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING, Any

from harness.store.events.known_events import fault_of, usable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Integers = NDArray[np.int64]

Line = tuple[int, bytes]
"""With its number in its file."""
_NUMBERS = ("first", "steps", "start", "end", "waited")
_NEEDED = _NUMBERS[:-1]
UNKNOWN = -1
"""In place of the waiting time, where a window has none."""
_UNREAD, _WARM_UP, _MEASURED = 0, 1, 2
_PHASES = {"warm-up": _WARM_UP, "measure": _MEASURED}
_STARTS = (b'{"event":', b'{"event": ')
"""How lines begin: as workers write them, and as other programs may."""
_WINDOW, *_MANY = (
    int.from_bytes(text, "little") for text in (b'"window"', b'"values"', b'"device-steps"'[:8])
)
"""Windows, and what is as frequent and not needed here."""
_KEPT_KINDS = re.compile(
    rb'\s*{\s*"event"\s*:\s*'
    rb'"(units|versions|facts|turn|epoch|checkpoint|checkpoint-state|restored|window)"'
)
_USUAL = re.compile(
    rb'{"event":"(?:phase","name":"[a-z-]+","t":|finished","t":'
    rb'|anchor",[^{}\\]*"size":[0-9]{1,18},[^{}\\]*"mono_ns":)[0-9]{1,18}}\n'
)
"""What needs no second look, of the lines that are not kept."""
NAMED = 3
"""So many damaged lines of one file are named; one more is found, to say that there are more."""
_MOST_EXAMINED = 10_000
"""So many lines of one file are looked at again: of files that hold nothing but damage."""
_PROPERTIES = ("units", "versions", "facts")
_ZEROS = re.compile(rb"0+")
_TO_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_NEWLINE, _ZERO = 10, 48
_PHASE = len(b'{"event":"window","phase":"')
"""Where phases differ, if not sooner or later by spaces."""
_MOST_DIGITS = 18
"""More do not fit into 64 bits."""
_EXACT_DIGITS = 15
_FEW = 5
"""So few lines of one length are read faster as JSON."""
_LONGEST = 400
"""Longer lines are read as JSON."""
_WIDE = 8
"""So many lines side by side: extremes of long rows are found faster than those of short ones."""


@dataclass(frozen=True)
class RankEvents:
    """The events of one rank; windows are columns: first step, steps, start, end, time waited."""

    measured: Integers
    warm_up: Integers
    properties: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """units, versions and facts."""
    epochs: tuple[Mapping[str, Any], ...] = ()
    """One event for each epoch, written at its end."""
    saves: tuple[Mapping[str, Any], ...] = ()
    """The events of checkpoints, in order."""
    turns: tuple[Mapping[str, Any], ...] = ()
    """One event for each turn, of a trial that took turns with others."""
    damaged: tuple[tuple[int, str], ...] = ()
    """Numbers of the first lines that are left out, or facts of which are, and what is wrong."""


def read_event_files(texts: Sequence[bytes]) -> list[RankEvents]:
    """Read several event files at once; damaged lines are left out."""
    import numpy as np

    if not texts:
        return []
    whole = [text if text.endswith(b"\n") else text + b"\n" for text in texts]
    data = b"".join((*whole, bytes(_LONGEST)))
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
    begins = np.concatenate(([0], ends[:-1]))
    files = np.searchsorted(begins, np.cumsum([0, *map(len, whole)]))
    windows, others = _kinds(data, begins)
    columns, phases = _windows(data, begins[windows], ends[windows])
    unread = windows[phases == _UNREAD][:_MOST_EXAMINED]
    parts: list[list[Any]] = []
    for phase in (_MEASURED, _WARM_UP):
        places = np.flatnonzero(phases == phase)
        bounds = np.searchsorted(windows[places], files).tolist()
        chosen = columns.take(places, axis=1)
        parts.append([chosen[:, first:last] for first, last in pairwise(bounds)])
    for places in (others, unread):
        bounds = np.searchsorted(places, files).tolist()
        firsts = files[:-1].repeat(np.diff(bounds))
        spans = zip(begins[places].tolist(), ends[places].tolist(), strict=True)
        numbers = (places - firsts + 1).tolist()
        lines = [(n, data[begin:end]) for n, (begin, end) in zip(numbers, spans, strict=True)]
        parts.append([lines[first:last] for first, last in pairwise(bounds)])
    return [_rank_events(*one) for one in zip(*parts, strict=True)]


def _rank_events(
    measured: Integers, warm_up: Integers, lines: Sequence[Line], unread: Sequence[Line]
) -> RankEvents:
    """Join the windows of one file with its other events; name the lines that are neither."""
    properties: dict[str, Mapping[str, Any]] = {}
    epochs: list[Mapping[str, Any]] = []
    turns: list[Mapping[str, Any]] = []
    saves: list[Mapping[str, Any]] = []
    kept: list[Line] = []
    suspects = [*unread]
    for one in lines:
        if _USUAL.fullmatch(one[1]):
            continue
        (kept if _KEPT_KINDS.match(one[1]) else suspects).append(one)
    events, is_whole = _events([line for _, line in kept])
    for event in events:
        kind = event.get("event")
        if kind in _PROPERTIES:
            properties[str(kind)] = event.get(str(kind)) or {}
        elif kind == "window":
            column, phase = _column(event)
            if phase == _MEASURED:
                measured = _with(measured, column)
            elif phase == _WARM_UP:
                warm_up = _with(warm_up, column)
        else:
            {"epoch": epochs, "turn": turns}.get(str(kind), saves).append(event)
    return RankEvents(
        _in_order(measured),
        _in_order(warm_up),
        properties,
        tuple(epochs),
        tuple(saves),
        tuple(turns),
        _damaged(suspects if is_whole else [*suspects, *kept]),
    )


def _damaged(suspects: Sequence[Line]) -> tuple[tuple[int, str], ...]:
    """Name the first lines that are damaged, of those that may be."""
    if not suspects:
        return ()
    examined = sorted(suspects)[:_MOST_EXAMINED]
    faults = ((number, fault_of(line)) for number, line in examined)
    found = ((number, fault) for number, fault in faults if fault is not None)
    return tuple(islice(found, NAMED + 1))


def _kinds(data: bytes, begins: Integers) -> tuple[Integers, Integers]:
    """Number the lines that are windows, and those that must be looked at one by one."""
    import numpy as np

    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    windows: list[Integers] = []
    others = np.arange(len(begins))
    for start in _STARTS:
        codes = words[begins[others] + len(start)]
        is_window = codes == _WINDOW
        windows.append(others[is_window])
        is_known = is_window
        for code in _MANY:
            is_known = is_known | (codes == code)
        others = others[~is_known]
    return windows[0] if not len(windows[1]) else np.sort(np.concatenate(windows)), others


def _windows(data: bytes, begins: Integers, ends: Integers) -> tuple[Integers, NDArray[np.int8]]:
    """Read the lines of windows as columns, and their phases."""
    import numpy as np

    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    phase_words = words[begins + _PHASE]
    # "warm-up" is as long as "measure"
    alike = 2 * (ends - begins) + (phase_words == phase_words[-1:])
    columns = np.full((len(_NUMBERS), len(begins)), UNKNOWN, dtype=np.int64)
    phases = np.full(len(begins), _UNREAD, dtype=np.int8)
    alone: list[int] = []
    for kind in np.flatnonzero(np.bincount(alike)).tolist():
        places = np.flatnonzero(alike == kind)
        phase, length = _UNREAD, kind // 2
        if len(places) >= _FEW and length <= _LONGEST:
            lines = np.ndarray(
                (len(data) - length + 1,), dtype=f"V{length}", buffer=data, strides=(1,)
            )[begins[places]]
            table = lines.view(np.uint8).reshape(-1, length)
            phases[places] = phase = _read_alike(table, columns, places)
        if phase == _UNREAD:
            alone += places.tolist()
    for place in alone:
        columns[:, place], phases[place] = _column(_parsed(data[begins[place] : ends[place]]))
    return columns, phases


def _read_alike(lines: Bytes, columns: Integers, places: Integers) -> int:
    """Read lines of one length into columns, and tell their phase, if they differ in digits only.

    Whatever lies between the least and the greatest digit of a place is a digit.
    """
    least, most = _extremes(lines)
    low, high = least.tobytes(), most.tobytes()
    form = low.translate(_TO_ZEROS)
    if form != high.translate(_TO_ZEROS):
        return _UNREAD
    phase, spans = _spans(form)
    if any(low[begin] == _ZERO and end - begin > 1 for begin, end in spans.values()):
        return _UNREAD  # JSON knows no leading zeros
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
    event = _parsed(_ZEROS.sub(lambda _: b"%d" % next(numbers), form))
    column, phase = _column(event)
    spans_by_row = {
        row: spans[number - 1] for row, number in enumerate(column) if 1 <= number <= len(spans)
    }
    named = [name for name in _NUMBERS if name in event]
    is_long = any(end - begin > _MOST_DIGITS for begin, end in spans_by_row.values())
    return (_UNREAD, {}) if is_long or len(spans_by_row) < len(named) else (phase, spans_by_row)


@lru_cache(maxsize=_MOST_DIGITS)
def _powers(digits: int) -> tuple[NDArray[Any], int]:
    """Give the power of ten of each digit, and the sum that the character code of "0" adds.

    Up to 15 digits a float holds every sum exactly, and is multiplied faster.
    """
    import numpy as np

    powers = 10 ** np.arange(digits - 1, -1, -1, dtype=np.int64)
    zeros = _ZERO * int(powers.sum())
    return (powers.astype(np.float64) if digits <= _EXACT_DIGITS else powers), zeros


def _column(event: Mapping[str, Any]) -> tuple[list[int], int]:
    """Give the numbers of a window and its phase; it is unread if it lacks one of them."""
    values = [event.get(name) for name in _NUMBERS]
    column = [value if type(value) is int else UNKNOWN for value in values]
    if usable(event) is None or event["event"] != "window":
        return [UNKNOWN] * len(_NUMBERS), _UNREAD
    return column, _PHASES.get(str(event.get("phase")), _UNREAD)


def _events(lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], bool]:
    """Read lines as JSON, all at once if none is torn; tell whether nothing of them is left out."""
    try:
        events = json.loads(b"[%s]" % b",".join(lines))
    except (ValueError, RecursionError):
        events = []
    if len(events) < len(lines):
        events = [_parsed(line) for line in lines]
    read = [usable(event) for event in events]
    return [one for one in read if one is not None], read == events


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _with(columns: Integers, column: Sequence[int]) -> Integers:
    import numpy as np

    return np.column_stack((columns, np.array(column, dtype=np.int64)))


def _in_order(columns: Integers) -> Integers:
    """Sort windows by their start; they nearly always are."""
    import numpy as np

    start = columns[2]
    if bool((start[1:] >= start[:-1]).all()):
        return columns
    ordered: Integers = columns[:, np.argsort(start, kind="stable")]
    return ordered
