"""Check that an event says what its kind must say; one that does not is left out, like a torn line.

A run's events may be written by any program, and be damaged in any place: who reads an event that
passed here finds in it what ``harness/worker/events.py`` promises, of the right type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from harness.errors import DamagedFile
from harness.store.contained import MOST_EVENTS
from harness.store.json_text import parse_line
from harness.store.layout import TrialPaths
from harness.store.typed import read

_Number = float | None
_Numbers = Mapping[str, Any]
_NEEDED: Mapping[str, Mapping[str, Any]] = {
    "anchor": {"size": int},
    "phase": {"name": str, "t": int},
    "versions": {"versions": Mapping[str, str | int | float | None]},
    "units": {"units": Mapping[str, float]},
    "window": {"phase": str, "first": int, "steps": int, "start": int, "end": int},
    "turn": {
        **dict.fromkeys(("number", "round", "attempt", "start", "end"), int),
        "disturbed": str,
    },
    "epoch": {
        "phase": str,
        "first": int,
        "steps": int,
        "number": int,
        "samples": int,
        "bytes": int,
        "calls": _Number,
        "call_bytes": _Number,
        "cpu_s": float,
    },
    "checkpoint": {"phase": str, "step": int, "start": int, "end": int},
    "checkpoint-state": {"step": int, "state": str, "t": int},
    "restored": {"step": int, "start": int, "end": int},
    "values": {"values": Mapping[str, Any]},
    "facts": {"facts": Mapping[str, Any]},
    "attribution": {"traced_by": str, "step_s": tuple[float, ...]},
    "part": {
        "site": str,
        "phase": str,
        "shares": tuple[float, ...],
        "operations": tuple[Mapping[str, str | float], ...],
        "more": int,
    },
    "ceiling": {"kernel": str, "unit": str, "work": _Number, "why": str},
    "failed": {"kind": str, "message": str},
}
_OPTIONAL: Mapping[str, Mapping[str, Any]] = {
    "attribution": {"untraced_s": tuple[float, ...] | None},
    "window": {"waited": int | None, "turn": int | None},
    "turn": {
        **dict.fromkeys(("foreign_cores", "work_s"), _Number),
        "steps": int | None,
        "check": bool | None,
    },
    "epoch": {
        **dict.fromkeys(("cold_fraction", "cpus", "given_bytes", "read_bytes"), _Number),
        "cache": str | None,
    },
    "ceiling": {"cache_bytes": int | None},
    "checkpoint": {"bytes": _Number, "saver": str | None},
    "restored": {"bytes": _Number, "cold_fraction": _Number, "cache": str | None},
}
_FACTS: Mapping[str, Any] = {
    "variables": Mapping[str, str],
    **dict.fromkeys(("threads", "busy_threads", "interop_threads", "graph_breaks"), _Number),
    **dict.fromkeys(("peak_device_bytes", "peak_rss_bytes", "cpu_s", "compile_s"), _Number),
    **dict.fromkeys(("compiled_graphs", "cold_fraction"), _Number),
    **dict.fromkeys(("device", "device_name", "layout", "cache", "computed_by"), str | None),
    **dict.fromkeys(("computed", "onednn_primitives"), Mapping[str, float] | None),
    "network": Mapping[str, Mapping[str, int | None]] | None,
    "exchange_hooks": Mapping[str, Any] | None,
    "start": Mapping[str, str | None] | None,
    "restarts": tuple[float, ...] | None,
    "multiplications": Mapping[str, int | str] | None,
    "graph_break_reasons": tuple[str, ...] | None,
}
_LONGEST = 120
"""Of what is said about one line."""
_HIGHEST = 1 << 62
"""Of a moment or a count: differences of such numbers still have 64 bits."""


def event_of(line: bytes) -> dict[str, Any] | None:
    """Read one line as an event; None if it holds none that can be used."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return usable(event)


def first_rank_events(trial: TrialPaths, most: int = MOST_EVENTS) -> Iterator[dict[str, Any]]:
    """Read what the first rank said; what is damaged is left out, what came before it is whole."""
    with suppress(DamagedFile):
        for _, line in trial.files.lines(trial.events(0), most):
            event = event_of(line)
            if event is not None:
                yield event


def usable(event: Any) -> dict[str, Any] | None:
    """Give an event back if it says what it must, without the facts that have a wrong type."""
    try:
        _check(event)
    except ValueError:
        return None
    if event["event"] == "facts":
        facts = event["facts"]
        known = {name: facts[name] for name in facts if _of_fact(name, facts[name]) is None}
        return {**event, "facts": known}
    return dict(event)


def fault_of(line: bytes) -> str | None:
    """Say why a line is no event that can be used, or which facts of it cannot; None: it can."""
    try:
        event = parse_line(line)
        _check(event)
    except ValueError as fault:
        return _short(str(fault))
    if event["event"] != "facts":
        return None
    wrong = (_of_fact(*one) for one in event["facts"].items())
    return _short("; ".join(filter(None, wrong))) or None


def _short(fault: str) -> str:
    """Keep a message to one line that can be read: names in it are the file's."""
    line = " ".join(fault.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _check(event: Any) -> None:
    """Raise ValueError, with the key that is wrong, unless an event says what it must."""
    kind = event.get("event") if isinstance(event, dict) else None
    if not isinstance(kind, str):
        raise ValueError("it names no event")  # noqa: TRY004  each fault is a ValueError
    for name, form in _NEEDED.get(kind, {}).items():
        if name not in event:
            raise ValueError(f"{name} is missing")
        _read(event[name], form, name)
    for name, form in _OPTIONAL.get(kind, {}).items():
        _read(event.get(name), form, name)


def _of_fact(name: str, value: Any) -> str | None:
    try:
        _read(value, _FACTS.get(name, Any), f"facts.{name}")
    except ValueError as fault:
        return str(fault)
    return None


def _read(value: Any, form: Any, where: str) -> None:
    read(form, value, where)
    if type(value) is int and not -_HIGHEST < value < _HIGHEST:
        raise ValueError(f"{where} is beyond 63 bits")
