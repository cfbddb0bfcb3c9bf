"""Hold updates to what the optimiser makes of the framework's own gradients.

A framework without float64 cannot be compared whole: its gradients drift from the reference's where
kinks flip. So the rule alone is compared: each update is made again in float64, of the gradients
that the framework says it took, and held against the state that it came to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise

import numpy as np

from harness.exact.layer import Array
from harness.exact.training import change_of
from harness.gate import tolerances as arithmetic
from harness.gate.semantics import TensorComparison, off_by
from harness.gate.tensors import folders
from harness.worker.gate.tensors import Folder
from harness.worker.network.workload import SGD, Optimiser, Training

EPSILON = "optimiser/epsilon"
"""What a framework declares to differ if it adds Adam's epsilon before the second moment is
corrected for having begun at 0: at step t it counts 1 / sqrt(1 - beta2^t) times as much."""
_ROUNDING = 2.0**-24
_SUMMED = 2.0**-17
"""Of a change: a product and a few sums in fp32."""
_CORRECTED = 2.0**-10
"""Of Adam's: 1 - beta2^t loses the digits that beta2^t has of 1."""


def judge(
    workload: Training, samples: int, made: Folder, declared: Sequence[str]
) -> TensorComparison | None:
    """Compare each update; None where the framework gave none. ``samples`` are those of a step."""
    states = _states(made)
    if not states:
        return None
    rule = workload.optimiser
    is_declared = not isinstance(rule, SGD) and any(fnmatch(EPSILON, one) for one in declared)
    share = _SUMMED if isinstance(rule, SGD) else _CORRECTED
    most = 2 * share
    worst, named = 0.0, False
    plain: dict[str, Array] = {}
    other: dict[str, Array] = {}
    for number, (before, after) in enumerate(pairwise(states), start=1):
        gradients = made.under(f"own/{number}/gradient/")
        change = change_of(workload, samples, plain)
        late = replace(workload, optimiser=_with_late_epsilon(rule, number))
        change_late = change_of(late, samples, other)
        for name, tensor in gradients.items():
            gradient = folders.array(tensor)
            moved = before[name] - after[name]
            expected = change(name, before[name], gradient, number)
            scale = _rounded_away(after[name], share)
            off = arithmetic.error(moved, expected, scale=scale)
            if is_declared:
                late_expected = change_late(name, before[name], gradient, number)
                if off > most:
                    expected = late_expected
                    off = arithmetic.error(moved, expected, scale=scale)
                    named = named or off <= most
            if off > most:
                path, _, kind = name.rpartition("/")
                words = f"the optimiser: {path}'s {kind} after update {number} of its own gradients"
                return TensorComparison(worst, off_by(words, moved, expected, off, most))
            worst = max(worst, off)
    return TensorComparison(worst, named=named, has_updates=True)


def _states(made: Folder) -> list[Mapping[str, Array]]:
    states: list[Mapping[str, Array]] = []
    while held := made.under(f"own/{len(states)}/after/"):
        states.append({name: folders.array(tensor) for name, tensor in held.items()})
    return states


def _rounded_away(after: Array, share: float) -> float:
    """Give the size of changes of which rounding the new value loses a ``share``."""
    return float(np.max(np.abs(after), initial=0.0)) * _ROUNDING / share


def _with_late_epsilon(rule: Optimiser, number: int) -> Optimiser:
    if isinstance(rule, SGD):
        return rule
    return replace(rule, epsilon=rule.epsilon / math.sqrt(1 - rule.beta2**number))
