"""Pack a plan's trials into allocations: cells of one shape run in one, by turns.

Trials of one node do not wait in an allocation of sixteen: a shape is a number of nodes. Where more
shapes are left than jobs are wanted, those whose joining wastes least share the larger one's nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from harness.plan.duration import Estimate
from harness.plan.plan import Plan

_SLACK, _MARGIN_S = 1.5, 300.0
_PROOF_S = 120.0
"""What the gate may take for one network in one environment, if it never examined that before."""


@dataclass(frozen=True)
class Allocation:
    """Nodes that are asked for once, and the cells whose trials run on them one after another."""

    nodes: int
    keys: tuple[str, ...]
    trials: int
    seconds: float
    """What they are guessed to take."""
    parts: int = 1
    """Over how many allocations, one after another, its blocks are dealt."""
    proof_s: float = 0.0
    """What is kept for the gate, which examines the job's cells before their first trials."""

    @property
    def minutes(self) -> int:
        """Give the time limit of a part: 1.5 times the estimate, and the reserve."""
        return ceil((self.seconds / self.parts * _SLACK + _MARGIN_S + self.proof_s) / 60)

    @property
    def node_hours(self) -> float:
        """Give the estimated cost in node hours."""
        return self.nodes * self.seconds / 3600

    @property
    def most_node_hours(self) -> float:
        """Give the cost in node hours if it runs into its time limit."""
        return self.nodes * self.minutes * self.parts / 60


def allocations(
    plan: Plan,
    guess: Estimate,
    waiting: Mapping[str, int],
    *,
    most: int | None = None,
    parts: int = 1,
) -> tuple[Allocation, ...]:
    """Pack the waiting trials, counted by cell, into at most so many jobs; the smallest first.

    Each job's blocks are dealt over so many ``parts``, or as many as there are blocks.
    """
    shapes: dict[int, Allocation] = {}
    for cell in plan.cells:
        count = waiting.get(cell.key, 0)
        if not count:
            continue
        nodes = cell.scale.nodes
        before = shapes.get(nodes, Allocation(nodes, (), 0, 0.0))
        seconds = before.seconds + count * guess.trial_s[cell.key]
        shapes[nodes] = Allocation(nodes, (*before.keys, cell.key), before.trials + count, seconds)
    found = [shapes[nodes] for nodes in sorted(shapes)]
    while most is not None and len(found) > max(1, most):
        place = min(range(len(found) - 1), key=lambda at: _waste(found, at))
        found[place : place + 2] = [_joined(found[place], found[place + 1])]
    found = [replace(one, proof_s=_proof_s(plan, one.keys)) for one in found]
    dealt = min(parts, len({block for _, block in plan.order}))
    return tuple(replace(one, parts=dealt) for one in found)


def _proof_s(plan: Plan, keys: Sequence[str]) -> float:
    some = [cell for cell in plan.cells if cell.key in keys and cell.parameters]
    return _PROOF_S * len({(cell.workload, cell.environment, cell.strategy) for cell in some})


def blocks_of(order: Sequence[tuple[str, int]], part: int, parts: int) -> frozenset[int]:
    """Give the blocks of part ``number`` of so many, counted from 1; each part is contiguous."""
    blocks = sorted({block for _, block in order})
    return frozenset(
        block for at, block in enumerate(blocks) if at * parts // len(blocks) == part - 1
    )


def _waste(found: Sequence[Allocation], place: int) -> float:
    small, large = found[place], found[place + 1]
    return small.seconds * (large.nodes - small.nodes)


def _joined(small: Allocation, large: Allocation) -> Allocation:
    return Allocation(
        nodes=large.nodes,
        keys=(*small.keys, *large.keys),
        trials=small.trials + large.trials,
        seconds=small.seconds + large.seconds,
    )
