"""Rules of sequences: how many tokens a cell's samples have, and why they cannot be so many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from harness import plugins
from harness.toml.values import Value
from harness.worker.network.alone import network_name
from harness.worker.network.asked_workload import at_length, most_tokens, own_length
from harness.worker.network.rule import ImpossibleNetwork


def complete(name: str, factors: dict[str, Value]) -> None:
    """Complete the tokens of a sample where the study leaves them open."""
    if factors["sequence"] is None:
        factors["sequence"] = _own(network_name(name))


def in_key(name: str, factors: Mapping[str, Value]) -> Mapping[str, Value]:
    """Give factors as a cell's key has them: it says nothing of the length described."""
    if factors["sequence"] != _own(network_name(name)):
        return factors
    return {**factors, "sequence": None}


def why_not(name: str, factors: Mapping[str, Any]) -> str | None:
    """Give the reason why a cell's samples cannot be so many tokens; None if they can."""
    return _why_not(network_name(name), factors["sequence"])


@cache
def _why_not(name: str, sequence: int | None) -> str | None:
    own = _own(name)
    if sequence in (None, own):
        return None
    if own is None:
        return f"{name} is fed no tokens: sequence is for {', '.join(_fed_tokens())}"
    workload = plugins.workload(name)
    most = most_tokens(workload)
    if most is not None and sequence > most:
        return f"{name} holds {most:,} positions: a sequence of {sequence:,} tokens is too long"
    try:
        at_length(workload, sequence)
    except ImpossibleNetwork as fault:
        return f"{name} has no form of {sequence:,} tokens: {fault}"
    return None


@cache
def _own(name: str) -> int | None:
    return own_length(plugins.workload(name))


def _fed_tokens() -> list[str]:
    return [name for name in plugins.workload_names() if _own(name) is not None]
