"""Read requirement expressions such as "gpus >= 2 and memory >= 16 GiB".

An expression compares names with values. What is unknown about a platform rules nothing out: a
requirement fails only on what is known.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness import units
from harness.errors import nearest
from harness.study.factors import FACTORS

OF_A_PLATFORM = {
    "gpus": "accelerators of one node",
    "cpus": "CPUs of one node that may be used",
    "memory": "memory of one node",
    "gpu_memory": "memory of one accelerator",
    "available_nodes": "nodes that the platform has",
}

_TERM = re.compile(r"^\s*([a-z_]+)\s*(>=|<=|!=|=|>|<)\s*(.+?)\s*$")

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

_WORDS: Mapping[str, Any] = {"true": True, "false": False}


@dataclass(frozen=True)
class Term:
    """One comparison."""

    name: str
    sign: str
    value: Any

    def holds(self, known: Mapping[str, Any]) -> bool:
        """Judge it on what is known; the unknown rules nothing out."""
        actual = known.get(self.name)
        if actual is None:
            return True
        return _COMPARE[self.sign](actual, self.value)


@dataclass(frozen=True)
class Requirement:
    """What must hold for cells with these factors, and why."""

    when: tuple[tuple[str, tuple[Any, ...]], ...]
    needs: tuple[Term, ...]
    why: str

    def concerns(self, known: Mapping[str, Any]) -> bool:
        """Say whether a cell is one that this requirement speaks of."""
        return all(known.get(name) in values for name, values in self.when)

    def fails(self, known: Mapping[str, Any]) -> str | None:
        """Give the reason why a cell cannot run, or None."""
        if not self.concerns(known) or all(term.holds(known) for term in self.needs):
            return None
        return self.why


def parse_needs(text: str) -> tuple[Term, ...]:
    """Read an expression; a ValueError says what is wrong with it."""
    return tuple(_term(part) for part in re.split(r"\s+and\s+", text))


def _term(text: str) -> Term:
    match = _TERM.match(text)
    if match is None:
        raise ValueError(f"'{text}' is not a comparison, for example \"gpus >= 2\"")
    name, sign, word = match.groups()
    known = (*OF_A_PLATFORM, *FACTORS)
    if name not in known:
        raise ValueError(f"'{name}' is nothing that can be required.{nearest(name, known)}")
    value = _value(word)
    if sign not in ("=", "!=") and (isinstance(value, bool | str)):
        raise ValueError(f"'{text}' compares sizes, but '{word}' is not a number")
    return Term(name, sign, value)


def _value(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if word.isdigit():
        return int(word)
    if word[0].isdigit():
        return units.size_bytes(word)
    return word.strip("'\"")
