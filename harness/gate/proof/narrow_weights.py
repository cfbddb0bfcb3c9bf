"""Hold updates of weights that are bfloat16 themselves, by what rounding leaves of them.

A number that is rounded to bfloat16 is at most half a unit of its last place off, which is at most
2**-8 of itself: its significand has 8 bits. From that all bounds follow, for the form of an
optimiser's rule that rounds most often, torch's plain one:

- a moment is rounded when it is decayed, and when the gradient is added: 2**-8 of what was kept and
  2**-8 of what it is then. Less the known parts it is the gradient, which is legible where both
  together are a small share of a typical one (the quiet items of ``starting_moments.py``);
- a weight is rounded when it is decayed (AdamW), and when it is moved: 2 · 2**-8 of the larger of
  what it was and is. What moves it is reckoned from moments that are rounded themselves, by their
  root, its correction, epsilon and their ratio: 4 · 2**-8 of the movement. An update below half a
  unit in a weight's last place is lost, as the precision has it, and within that bound.
"""

from __future__ import annotations

import numpy as np

from harness.exact.layer import Array
from harness.exact.training import change_of
from harness.gate.proof.expected_updates import Gradients
from harness.gate.proof.gradient_errors import Legible
from harness.gate.proof.moments import (
    Update,
    gradient_share,
    known_parts,
    movement,
    rest_of,
)
from harness.gate.proof.untrained import Untrained
from harness.gate.tensors import draws
from harness.worker.network.workload import MOMENTS, SGD, Training

UNIT = 2.0**-8
"""Half a unit in the last place of a number in bfloat16, of the number, at most."""
_OF_A_WEIGHT = 2.0
_OF_A_MOVEMENT = 4.0
_LEGIBLE = 0.25
"""Of a typical gradient, what rounding may take of one that is still read."""
_SHOWS = 4.0
"""Movements of so many half units leave a weight as it was in no rounding."""


def lost(workload: Training, name: str, one: Update) -> Array:
    """Say how much of a gradient at most is rounded away where its moment is kept."""
    _, terms = rest_of(workload, name, one)
    after = one.after[known_parts(workload, name, one)[2]]
    found: Array = UNIT * (terms + np.abs(after)) / gradient_share(workload)
    return found


def legible(workload: Training, name: str, one: Update, expected: Gradients) -> Legible:
    """Say of which items the gradient can be read."""
    typical = float(np.sqrt(np.mean(np.square(expected.gradients[name]))))
    rounded = lost(workload, name, one)
    items = rounded <= _LEGIBLE * typical
    return Legible(items, float(np.linalg.norm(rounded[items])))


def refuse_wide(workload: Training, name: str, one: Update) -> None:
    """Refuse a weight, or what is kept of it, that bfloat16 could not hold."""
    for kept in (name, *(f"{name}/{moment}" for moment in MOMENTS[type(workload.optimiser)])):
        if not np.array_equal(draws.to("bf16", one.after[kept]), one.after[kept]):
            raise Untrained(f"{kept} is held in more digits than bfloat16 has")


def moments_off(workload: Training, name: str, one: Update, expected: Gradients) -> float:
    """Say how far moments are off what is kept of them and any gradient, of what that allows."""
    rest, _ = rest_of(workload, name, one)
    share = gradient_share(workload)
    allowed = share * (lost(workload, name, one) + expected.sizes[name])
    off = np.abs(rest - share * expected.gradients[name]) / np.maximum(allowed, 1e-300)
    worst = float(np.max(off))
    if isinstance(workload.optimiser, SGD):
        return worst
    kept, found = (part[f"{name}/second"] for part in (one.before, one.after))
    decay = workload.optimiser.beta2
    added = (1 - decay) * (2 * expected.sizes[name]) ** 2
    allowed = UNIT * (decay * kept + found) + added
    return max(worst, float(np.max(np.abs(found - decay * kept) / np.maximum(allowed, 1e-300))))


def movement_of(workload: Training, name: str, one: Update, batch: int) -> tuple[Array, Array]:
    """Say from the moments that were found how far weights move, and how far that may be off."""
    if isinstance(workload.optimiser, SGD):
        moved = movement(workload, name, one, batch)
    else:  # the rule replaces what it keeps: it is given what leaves just what was found
        step = int(one.before["step"][0]) + 1
        first, second = (one.after[f"{name}/{moment}"] for moment in ("first", "second"))
        beta1, beta2 = workload.optimiser.beta1, workload.optimiser.beta2
        kept = {f"{name}/first": first / beta1, f"{name}/second": second / beta2}
        nothing = np.zeros_like(first)
        moved = change_of(workload, batch, kept)(name, one.before[name], nothing, step)
    largest = np.maximum(np.abs(one.before[name]), np.abs(one.after[name]))
    return moved, UNIT * (_OF_A_WEIGHT * largest + _OF_A_MOVEMENT * np.abs(moved))


def moves_visibly(workload: Training, name: str, one: Update, batch: int) -> bool:
    """Say whether moments move any weight by more than rounding could hide."""
    moved, _ = movement_of(workload, name, one, batch)
    return bool(np.any(np.abs(moved) > _SHOWS * UNIT * np.abs(one.before[name])))
