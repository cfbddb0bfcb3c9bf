"""Say by what runs in them where a difference lies that is spread over many small parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.store.record_readers.attribution import Operation


class Kind(NamedTuple):
    """Parts in which the same operation takes most, and what they add to the difference."""

    operation: str
    parts: int
    difference_s: float


def kinds(parts: Iterable[tuple[float, Sequence[Operation]]]) -> tuple[Kind, ...]:
    """Sort parts, each with its difference and its operations, by what takes most in each."""
    found = defaultdict[str, list[float]](list)
    for difference_s, operations in parts:
        shares = defaultdict[str, float](float)
        for one in operations:
            shares[one.name] += one.share
        if shares:
            found[max(shares, key=lambda name: shares[name])].append(difference_s)
    every = (Kind(name, len(each), sum(each)) for name, each in found.items())
    return tuple(sorted(every, key=lambda one: -one.difference_s))
