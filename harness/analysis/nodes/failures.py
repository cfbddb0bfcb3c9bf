"""Tell on which nodes of a screen work fails that ends well on the others.

Such a node has no rate by which it could be named, and is the sickest of all. Where the others fail
too, it is the work that fails, and nobody is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.store.outcome import Ended
from harness.units import counted, listed
from harness.verdicts.results import TrialResult

_OFTEN = 1 / 2
"""Of a node's trials, from which on it is named."""
_MAJORITY = 2 / 3
"""Of the nodes, on which no trial may fail for one to be named."""
_LISTED = 4

Trials = Mapping[int, Mapping[int, tuple[TrialResult, ...]]]
"""By number of the node, and block: the one of it alone, or those of both pairs that it is in."""


@dataclass(frozen=True)
class Failure:
    """One node on which trials of one measure failed."""

    node: str
    measure: str
    trials: int
    """So many of them."""
    of: int
    reason: str
    """Of the first."""
    is_named: bool


def failures(measure: str, trials: Trials, names: Mapping[int, str]) -> tuple[Failure, ...]:
    """Give the nodes on which a measure's trials failed; in pairs, both of a block's."""
    failed: dict[int, list[TrialResult]] = {}
    counts: dict[int, int] = {}
    for node, blocks in trials.items():
        for some in blocks.values():
            counts[node] = counts.get(node, 0) + 1
            if all(one.outcome != Ended.OK for one in some):
                failed.setdefault(node, []).append(some[0])
    is_the_work = len(counts) - len(failed) < _MAJORITY * len(counts)
    return tuple(
        Failure(
            node=names[node],
            measure=measure,
            trials=len(some),
            of=counts[node],
            reason=some[0].reason,
            is_named=not is_the_work and len(some) >= _OFTEN * counts[node],
        )
        for node, some in sorted(failed.items())
    )


def in_words(found: tuple[Failure, ...]) -> tuple[str, ...]:
    """Say who is named, a line each; and of each measure, on which other nodes it failed."""
    said = [
        f"{one.node}: {one.measure} failed in {one.trials} of {counted(one.of, 'trial')}, "
        f"and hardly anywhere else. {one.reason}"
        for one in found
        if one.is_named
    ]
    others: dict[str, list[Failure]] = {}
    for one in found:
        if not one.is_named:
            others.setdefault(one.measure, []).append(one)
    for measure, some in others.items():
        where = listed([one.node for one in some], _LISTED)
        said.append(
            f"{measure} failed in {sum(one.trials for one in some)} of "
            f"{counted(sum(one.of for one in some), 'trial')} on {where}, which names nobody. "
            f"{some[0].reason}"
        )
    return tuple(said)
