"""Check a trace against the published trace-event format (Duca and Sinclair, "Trace Event Format").

What it says of the JSON object format, of metadata, complete and counter events is checked, and no
other kind of event is allowed: Bakeoff writes none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from math import isfinite
from typing import Any

METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def faults(text: str) -> list[str]:
    """Say what is wrong with a trace; nothing for one that fits the format."""
    try:
        whole = json.loads(text, parse_constant=lambda name: f"no JSON: {name}")
    except ValueError as fault:
        return [f"it is no JSON: {fault}"]
    if not isinstance(whole, dict) or not isinstance(whole.get("traceEvents"), list):
        return ["it has no array of traceEvents"]
    found = []
    if whole.get("displayTimeUnit", "ms") not in ("ms", "ns"):
        found.append("displayTimeUnit is neither ms nor ns")
    if not isinstance(whole.get("otherData", {}), dict):
        found.append("otherData is no object")
    events = whole["traceEvents"]
    for number, event in enumerate(events):
        found += [f"event {number}: {one}" for one in _of_event(event)]
    return found or _badly_nested(events)


def _of_event(event: Any) -> list[str]:
    if not isinstance(event, dict):
        return ["it is no object"]
    found = [
        f"{key} is no {kind.__name__}"
        for key, kind in (("name", str), ("ph", str), ("pid", int), ("tid", int), ("args", dict))
        if not isinstance(event.get(key), kind) or isinstance(event.get(key), bool)
    ]
    if not _is_moment(event.get("ts")):
        found.append("ts is no moment")
    if found:
        return found
    kinds = {"X": _complete, "C": _counter, "M": _metadata}
    check = kinds.get(event["ph"])
    return check(event) if check else [f"ph {event['ph']!r} is not written by us"]


def _complete(event: dict[str, Any]) -> list[str]:
    found = [] if _is_moment(event.get("dur")) else ["dur is no length of time"]
    return found if isinstance(event.get("cat"), str) else [*found, "cat is no text"]


def _counter(event: dict[str, Any]) -> list[str]:
    values = list(event["args"].values())
    is_right = bool(values) and all(_is_number(one) for one in values)
    return [] if is_right else ["a counter's series are numbers"]


def _metadata(event: dict[str, Any]) -> list[str]:
    key, kind = METADATA.get(event["name"], ("", object))
    if not key:
        return [f"there is no metadata {event['name']!r}"]
    return [] if isinstance(event["args"].get(key), kind) else [f"args.{key} is wrong"]


def _badly_nested(events: list[dict[str, Any]]) -> list[str]:
    """A thread's complete events lie one within another, or one after another."""
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    found = []
    for thread, spans in threads.items():
        around: list[float] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while around and around[-1] <= start + 1e-6:
                around.pop()
            if around and end > around[-1] + 1e-6:
                found.append(f"thread {thread}: an event ends after the one around it")
            around.append(end)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_moment(value: Any) -> bool:
    return _is_number(value) and value >= 0
