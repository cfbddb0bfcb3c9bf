"""Hold what the timed step multiplied, as it was counted where it ran, to what training takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import units
from harness.store.events.rank_streams import Stream
from harness.verdicts.credibility.plausible import OPERATIONS_PER_MAC
from harness.verdicts.thresholds import THRESHOLDS, Finding


def amount_in_words(told: Mapping[str, Any] | None) -> str:
    """Say what a trial's step was found to multiply, or why it was not counted."""
    told = told or {}
    counted, asked = told.get("counted"), told.get("asked")
    if told.get("uncounted"):
        return f"not counted: {told['uncounted']}"
    if counted is None or not asked:
        return ""
    share = f"{counted / asked * 100:.1f} % of training's"
    return f"{share}{_twice(told)}, by {told.get('by', 'its framework')}"


def _twice(told: Mapping[str, Any]) -> str:
    return " with its blocks computed twice" if told.get("again") else ""


def judge_amount(streams: Sequence[Stream]) -> list[Finding]:
    """Find a step that multiplies more or less than its network does in training."""
    found = []
    for stream in streams:
        told = stream.facts.get("multiplications") or {}
        counted, asked = told.get("counted"), told.get("asked")
        if counted is None or not asked or abs(counted / asked - 1) <= THRESHOLDS["amount"].value:
            continue
        share = f"{abs(counted / asked - 1) * 100:.0f} % {'more' if counted > asked else 'less'}"
        made, right = (
            units.scaled(float(OPERATIONS_PER_MAC * one), "FLOP") for one in (counted, asked)
        )
        text = (
            f"a step as timed computes {made} in convolutions and products, {share} than the "
            f"{right} that training on its batch takes{_twice(told)}"
        )
        found.append(Finding("untrained", text))
    return found
