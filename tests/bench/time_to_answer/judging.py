"""Judge answers by what was planted, and count shares with exact bounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from harness.stats.answers import EQUIVALENCE
from tests.bench.time_to_answer.settings import Setting
from tests.bench.time_to_answer.studies import Record
from tests.stats.losses_truth import bounds

RIGHT, FALSE, OPEN = "right", "false", "open"


def judged(answer: str, truth: float) -> str:
    """Say whether an answer is right: a small difference may be called same, or what it is."""
    is_small = 1 / (1 + EQUIVALENCE) <= truth <= 1 + EQUIVALENCE
    right = {"same"} if is_small else set()
    if truth != 1:
        right.add("slower" if truth < 1 else "faster")
    if answer in right:
        return RIGHT
    return FALSE if answer in ("same", "faster", "slower") else OPEN


def table(records: Sequence[Record], *, by_framework: bool) -> list[str]:
    """Give a row for each kind of study."""

    def kind(one: Record) -> tuple[str, str, float, str]:
        return one.condition, one.framework if by_framework else "", one.difference, one.method

    rows = []
    for _, some in groupby(sorted(records, key=kind), kind):
        rows.append(_row(list(some)))
    return rows


def _row(records: Sequence[Record]) -> str:
    first, count = records[0], len(records)
    frameworks = ", ".join(sorted({one.framework for one in records}))
    told = [judged(one.answer, one.truth) for one in records]
    loads = [
        first.condition,
        frameworks,
        f"{first.difference * 100:.0f} %",
        first.method,
        str(count),
        share(told.count(RIGHT), count),
        share(told.count(FALSE), count),
        f"{median(one.seconds for one in records):.0f}",
        f"{median(len(one.logs) for one in records):.0f}",
    ]
    return "| " + " | ".join(loads) + " |"


def share(found: int, of: int) -> str:
    """Write a share with its exact bounds."""
    low, high = bounds(found / of, of)
    return f"{found} of {of} [{low:.2f}, {high:.2f}]"


def named(setting: Setting) -> str:
    """Name the conditions of a setting as the table does."""
    return f"{setting.condition} | {setting.framework} | {setting.method}"
