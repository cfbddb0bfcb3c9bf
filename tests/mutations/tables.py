"""Tables of what ``make mutations`` found: a row for each fault, and one for each clean network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

Found = dict[str, Any]
KINDS = {"fault", "seed"}
"""What a test tells of a planted fault, and of a clean network."""


def planted(found: Iterable[Found]) -> str:
    """Lay out a row for each fault, and what all come to; named as in its first framework."""
    ones = [one for one in found if "fault" in one]
    rows = sorted(ones, key=lambda one: (one["fault"], one["framework"]))
    lines = ["| fault | planted in | caught by | named as |", "|---|---|---|---|"]
    for fault, group in groupby(rows, key=lambda one: str(one["fault"])):
        ones = list(group)
        where = ", ".join(dict.fromkeys(one["framework"] + _fate(one) for one in ones))
        by = ", ".join(dict.fromkeys(name for one in ones for name in one["by"].split(", ")))
        named = next((one["named"] for one in ones if one["named"]), "–").replace("|", "\\|")
        lines.append(f"| {fault} | {where} | {by} | {named} |")
    return "\n".join([*lines, "", *_counts(rows), ""])


def seeded(found: Iterable[Found]) -> str:
    """Lay out a row for each clean network in each framework and way of training."""
    ones = [one for one in found if "seed" in one]
    rows = sorted(ones, key=lambda one: (one["way"], one["network"], one["seed"]))
    lines = ["| trained by | network | seeds proved | worst error | bar |", "|---|---|---|---|---|"]
    for (way, network), group in groupby(rows, key=lambda one: (one["way"], one["network"])):
        ones = list(group)
        passed = sum(one["passed"] for one in ones)
        errors = [one["error"] for one in ones if one["error"] is not None]
        worst = f"{max(errors):.0e}" if errors else "–"
        lines.append(
            f"| {way} | {network} | {passed} of {len(ones)} | {worst} | {ones[0]['bar']} |"
        )
    passed = sum(one["passed"] for one in rows)
    return "\n".join([*lines, "", f"{passed} of {len(rows)} trials of clean networks proved.", ""])


def untold(tests: Sequence[str]) -> str:
    """Name the tests that failed before they told what they found: of what is in no table."""
    if not tests:
        return ""
    return "\n".join(["", f"{len(tests)} failed before they told what they found:", "", *tests, ""])


def _fate(one: Found) -> str:
    if one["named"] is None:
        return " (**missed**)"
    return "" if one["passed"] else " (**named otherwise**)"


def _counts(rows: Sequence[Found]) -> Iterator[str]:
    caught = sum(one["named"] is not None for one in rows)
    right = sum(one["passed"] for one in rows)
    faults = len({one["fault"] for one in rows})
    by = Counter(one["framework"] for one in rows)
    each = ", ".join(f"{name} {count}" for name, count in sorted(by.items()))
    yield f"{faults} faults, planted {len(rows)} times ({each}): {caught} caught, {right} named."
