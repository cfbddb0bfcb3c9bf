"""Compare the losses of equal training steps on several nodes, bit by bit.

Equal software on equal nodes gives equal numbers. A node whose losses differ from what all others
agree on computes something else: silent corruption, or another processor than theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.units import counted

_MAJORITY = 2 / 3

Loss = tuple[str, str, int, int, float]
"""Node, trial, rank, step, value."""
Place = tuple[int, int]
"""Step and rank."""


@dataclass(frozen=True)
class Mismatch:
    """A node whose losses differ from those of the others."""

    node: str
    trials: int
    """In so many of its trials."""
    of: int
    step: int
    """The first that differed."""
    rank: int | None
    """The first of the node's ranks that differed there; None where it has one alone."""
    value: float
    expected: float


def mismatches(losses: Sequence[Loss]) -> tuple[tuple[Mismatch, ...], str]:
    """Name the nodes that differ, and say what was compared: each rank with its like elsewhere."""
    by_step: dict[Place, list[tuple[str, str, str]]] = {}
    for node, trial, rank, step, value in losses:
        by_step.setdefault((step, rank), []).append((node, trial, float(value).hex()))
    nodes = {node for node, *_ in losses}
    common = {place: some for place, some in by_step.items() if {one[0] for one in some} == nodes}
    if len(nodes) < 3 or not common:
        return (), "Losses were not compared: three nodes with losses of the same steps are needed."
    agreed: dict[Place, str] = {}
    for place, some in common.items():
        # By nodes: the quickest has most trials that came so far, and it may be the sick one.
        of_nodes = {(node, found) for node, _, found in some}
        agreed[place], _ = Counter(found for _, found in of_nodes).most_common(1)[0]
        same = {node for node, _, found in some if found == agreed[place]}
        other = {node for node, _, found in some if found != agreed[place]}
        if len(same - other) < _MAJORITY * len(nodes):
            return (), (
                f"Losses say nothing: at step {place[0]} only {len(same - other)} of {len(nodes)} "
                "nodes agree, so equal steps do not repeat here, or the nodes are not alike."
            )
    wrong: dict[str, dict[str, tuple[Place, str]]] = {}
    trials: dict[str, set[str]] = {}
    for place in sorted(common):
        for node, trial, found in common[place]:
            trials.setdefault(node, set()).add(trial)
            if found != agreed[place]:
                wrong.setdefault(node, {}).setdefault(trial, (place, found))
    several = len({rank for _, rank in common}) > 1
    named = tuple(
        _mismatch(node, some, len(trials[node]), agreed, several=several)
        for node, some in wrong.items()
    )
    equal = f"bit-equal on {len(nodes) - len(named)} of {len(nodes)} nodes"
    steps = len({step for step, _ in common})
    said = f"Losses of {counted(steps, 'step')} are {equal}."
    return named, said


def _mismatch(
    node: str,
    wrong: dict[str, tuple[Place, str]],
    trials: int,
    agreed: dict[Place, str],
    *,
    several: bool,
) -> Mismatch:
    place, found = min(wrong.values())
    step, rank = place
    expected = float.fromhex(agreed[place])
    where = rank if several else None
    return Mismatch(node, len(wrong), trials, step, where, float.fromhex(found), expected)
