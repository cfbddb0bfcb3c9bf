"""Keep the operations of a few traced steps, as they ran, for those who look at them one by one.

``traced.json`` beside the events: version, traced_by, kinds (site, phase, name, type, shapes), and
steps: number, length_ns, operations (kind, start_ns, length_ns, from where the step began) and
left_out, how many operations it had beyond those.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from harness.worker.redaction.redact import redact_values

VERSION = 1  # 1: first
FILE = "traced.json"
MOST_OPERATIONS = 10_000
"""Of all steps that are kept: about 300 kB."""
LONGEST_TEXT = 160


class Operation(NamedTuple):
    """One operation of a step."""

    kind: Tuple[str, str, str, str, str]
    """Of which layer's path, in which phase; its name, type and shapes."""
    start: int
    end: int


class Step(NamedTuple):
    """One traced step."""

    number: int
    start: int
    end: int
    operations: List[Operation]
    left_out: int = 0


def chosen(steps: Sequence[Step]) -> List[Step]:
    """Choose whole steps, the quickest first, as many as may be kept; of a long one a part.

    They come in the order in which they ran. Of a step that is too long the operations that took
    longest are kept.
    """
    found: List[Step] = []
    left = MOST_OPERATIONS
    for step in sorted(steps, key=lambda one: one.end - one.start):
        if len(step.operations) > left:
            break
        found.append(step)
        left -= len(step.operations)
    if steps and not found:
        quickest = min(steps, key=lambda one: one.end - one.start)
        longest = sorted(quickest.operations, key=lambda one: one.start - one.end)[:left]
        in_order = sorted(longest, key=lambda one: one.start)
        more = len(quickest.operations) - left
        found = [quickest._replace(operations=in_order, left_out=more)]
    return sorted(found, key=lambda one: one.number)


def write(path: str, traced_by: str, steps: Sequence[Step]) -> None:
    """Write what is kept."""
    kinds: Dict[Tuple[str, ...], int] = {}
    told: List[Dict[str, Any]] = []
    for step in steps:
        rows = [
            (kinds.setdefault(one.kind, len(kinds)), one.start - step.start, one.end - one.start)
            for one in step.operations
        ]
        told.append(
            {
                "number": step.number,
                "length_ns": step.end - step.start,
                "operations": rows,
                "left_out": step.left_out,
            }
        )
    whole = {
        "version": VERSION,
        "traced_by": traced_by,
        "kinds": redact_values([[text[:LONGEST_TEXT] for text in kind] for kind in kinds]),
        "steps": told,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(whole, file, separators=(",", ":"))
