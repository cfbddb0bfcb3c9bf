"""Check that an event says what its kind must say; one that does not is left out, like a torn line.

A run's events may be written by any program, and be damaged in any place: who reads an event that
passed here finds in it what ``harness/worker/events.py`` promises, of the right type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
    "failed": {"kind": str, "message": str},
}
_OPTIONAL: Mapping[str, Mapping[str, Any]] = {
    "window": {"waited": int | None, "turn": int | None},
    "turn": {"foreign_cores": _Number},
    "epoch": {
        **dict.fromkeys(("cold_fraction", "cpus", "given_bytes", "read_bytes"), _Number),
        "cache": str | None,
    },
    "checkpoint": {"bytes": _Number, "saver": str | None},
    "restored": {"bytes": _Number, "cold_fraction": _Number, "cache": str | None},
}
_FACTS: Mapping[str, Any] = {
    **dict.fromkeys(("threads", "busy_threads", "interop_threads", "graph_breaks"), _Number),
    **dict.fromkeys(("peak_device_bytes", "peak_rss_bytes", "cpu_s", "compile_s"), _Number),
    **dict.fromkeys(("compiled_graphs", "cold_fraction"), _Number),
    **dict.fromkeys(("device", "layout", "cache", "computed_by"), str | None),
    **dict.fromkeys(("computed", "onednn_primitives"), Mapping[str, float] | None),
    "network": Mapping[str, Mapping[str, int | None]] | None,
    "exchange_hooks": Mapping[str, Any] | None,
    "graph_break_reasons": tuple[str, ...] | None,
}
_HIGHEST = 1 << 62
"""Of a moment or a count: differences of such numbers still have 64 bits."""


def event_of(line: bytes) -> dict[str, Any] | None:
    """Read one line as an event; None if it holds none that can be used."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return usable(event)


def usable(event: Any) -> dict[str, Any] | None:
    """Give an event back if it says what it must, without the facts that have a wrong type."""
    kind = event.get("event") if isinstance(event, dict) else None
    if not isinstance(kind, str):
        return None
    needed = _NEEDED.get(kind, {})
    if not all(name in event and _is(event[name], form) for name, form in needed.items()):
        return None
    if not all(_is(event.get(name), form) for name, form in _OPTIONAL.get(kind, {}).items()):
        return None
    if kind == "facts":
        facts = event["facts"]
        known = {name: facts[name] for name in facts if _is(facts[name], _FACTS.get(name, Any))}
        return {**event, "facts": known}
    return dict(event)


def _is(value: Any, form: Any) -> bool:
    try:
        read(form, value)
    except ValueError:
        return False
    return type(value) is not int or -_HIGHEST < value < _HIGHEST
