"""What `bakeoff doctor` says of the machine: what is missing, what would spoil numbers."""

from __future__ import annotations

from collections import Counter

from tests.gpu.answer import Answer
from tests.gpu.day import Day

LIMIT_S = 120.0


def look(day: Day) -> Answer:
    """Ask the doctor; what it says must be repaired is a fault."""
    told = day.bakeoff("doctor", "--json", limit_s=LIMIT_S).json()
    findings = [one for part in told.values() if isinstance(part, list) for one in part]
    count = Counter(one["level"] for one in findings)
    telling = [one for one in findings if one["level"] in ("warning", "fault")]
    return Answer(
        lines=(
            ", ".join(f"{number} {level}" for level, number in count.most_common()),
            *(f"{one['level']}: {one['check']}: {one['seen']}" for one in telling),
        ),
        measured=told,
        faults=tuple(
            f"{one['check']}: {one['seen']}" for one in findings if one["level"] == "fault"
        ),
    )
