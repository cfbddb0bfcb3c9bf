"""Read event files of ranks: windows as arrays, the other events as objects.

Nearly all of a large file is windows, which ``window_lines.py`` reads, and values that are not
needed here, one line each, of which ``frequent_lines.py`` finds the damaged ones. Lines that hold
no event are left out, and named.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from harness.store.events.frequent_lines import unusual_lines
from harness.store.events.known_events import fault_of, usable
from harness.store.events.window_lines import (
    LONGEST,
    MEASURED,
    UNREAD,
    WARM_UP,
    column_of,
    parsed,
    read_windows,
)

if TYPE_CHECKING:
    from harness.store.events.window_lines import Integers

Line = tuple[int, bytes]
"""With its number in its file."""
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
_NEWLINE = 10


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
    data = b"".join((*whole, bytes(LONGEST)))
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE) + 1
    begins = np.concatenate(([0], ends[:-1]))
    files = np.searchsorted(begins, np.cumsum([0, *map(len, whole)]))
    windows, frequent, others = _kinds(data, begins)
    unusual = unusual_lines(data, begins, ends, frequent)[:_MOST_EXAMINED]
    others = np.sort(np.concatenate((others, unusual))) if len(unusual) else others
    columns, phases = read_windows(data, begins[windows], ends[windows])
    unread = windows[phases == UNREAD][:_MOST_EXAMINED]
    parts: list[list[Any]] = []
    for phase in (MEASURED, WARM_UP):
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
            column, phase = column_of(event)
            if phase == MEASURED:
                measured = _with(measured, column)
            elif phase == WARM_UP:
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


def _kinds(data: bytes, begins: Integers) -> tuple[Integers, Integers, Integers]:
    """Number the lines that are windows, those as frequent, and those to be looked at each."""
    import numpy as np

    words = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    windows: list[Integers] = []
    frequent: list[Integers] = []
    others = np.arange(len(begins))
    for start in _STARTS:
        codes = words[begins[others] + len(start)]
        is_window = codes == _WINDOW
        is_frequent = np.isin(codes, _MANY)
        windows.append(others[is_window])
        frequent.append(others[is_frequent])
        others = others[~(is_window | is_frequent)]
    return _joined(windows), _joined(frequent), others


def _joined(kinds: Sequence[Integers]) -> Integers:
    import numpy as np

    return kinds[0] if not len(kinds[1]) else np.sort(np.concatenate(kinds))


def _events(lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], bool]:
    """Read lines as JSON, all at once if none is torn; tell whether nothing of them is left out."""
    try:
        events = json.loads(b"[%s]" % b",".join(lines))
    except (ValueError, RecursionError):
        events = []
    if len(events) < len(lines):
        events = [parsed(line) for line in lines]
    read = [usable(event) for event in events]
    return [one for one in read if one is not None], read == events


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
