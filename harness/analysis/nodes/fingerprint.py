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


@dataclass(frozen=True)
class Mismatch:
    """A node whose losses differ from those of the others."""

    node: str
    trials: int
    """In so many of its trials."""
    of: int
    step: int
    """The first that differed."""
    value: float
    expected: float


def mismatches(losses: Sequence[tuple[str, str, int, float]]) -> tuple[tuple[Mismatch, ...], str]:
    """Name the nodes that differ; and say what was compared. Node, trial, step, value."""
    by_step: dict[int, list[tuple[str, str, str]]] = {}
    for node, trial, step, value in losses:
        by_step.setdefault(step, []).append((node, trial, float(value).hex()))
    nodes = {node for node, *_ in losses}
    common = {step: some for step, some in by_step.items() if {one[0] for one in some} == nodes}
    if len(nodes) < 3 or not common:
        return (), "Losses were not compared: three nodes with losses of the same steps are needed."
    agreed: dict[int, str] = {}
    for step, some in common.items():
        agreed[step], _ = Counter(one[2] for one in some).most_common(1)[0]
        same = {node for node, _, found in some if found == agreed[step]}
        other = {node for node, _, found in some if found != agreed[step]}
        if len(same - other) < _MAJORITY * len(nodes):
            return (), (
                f"Losses say nothing: at step {step} only {len(same - other)} of {len(nodes)} "
                "nodes agree, so equal steps do not repeat here, or the nodes are not alike."
            )
    wrong: dict[str, dict[str, tuple[int, str]]] = {}
    trials: dict[str, set[str]] = {}
    for step in sorted(common):
        for node, trial, found in common[step]:
            trials.setdefault(node, set()).add(trial)
            if found != agreed[step]:
                wrong.setdefault(node, {}).setdefault(trial, (step, found))
    named = tuple(_mismatch(node, some, len(trials[node]), agreed) for node, some in wrong.items())
    equal = f"bit-equal on {len(nodes) - len(named)} of {len(nodes)} nodes"
    said = f"Losses of {counted(len(common), 'step')} are {equal}."
    return named, said


def _mismatch(
    node: str, wrong: dict[str, tuple[int, str]], trials: int, agreed: dict[int, str]
) -> Mismatch:
    step, found = min(wrong.values())
    expected = float.fromhex(agreed[step])
    return Mismatch(node, len(wrong), trials, step, float.fromhex(found), expected)
