"""What an optimiser's moments say of one update: the gradient it was given, and how far it moves.

A moment after an update is what it was, decayed, plus the gradient (of SGD also the weight decay).
A decay is often smaller than what a gradient or a movement may be off. But it lies along the
weights in every item, which rounding does not: over a whole tensor it is read by least squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.exact.layer import Array
from harness.exact.training import change_of
from harness.gate.proof.untrained import Untrained
from harness.worker.network.shapes import decayed
from harness.worker.network.workload import SGD, Adam, Training

_SECOND = 1e-3
"""Of a tensor's largest second moment, how far one may be off."""
_DECAY = 0.25
"""Of the decay, how far what is read may be off."""
_LEGIBLE = 0.05
"""Of the decay, how uncertain what is read may be."""
_LOST = 2.0**-22
"""What a weight loses by a decay in one update that fp32 rounds away, as a share of it."""


@dataclass(frozen=True)
class Update:
    """One update, as many items of each tensor as a trial gives back."""

    number: int
    before: Mapping[str, Array]
    after: Mapping[str, Array]


def known_parts(workload: Training, name: str, one: Update) -> tuple[list[Array], list[float], str]:
    """Give what a moment holds beside the gradient, with its shares, and the moment's name."""
    optimiser = workload.optimiser
    if isinstance(optimiser, SGD):
        decay = optimiser.weight_decay if name in decayed(workload.network) else 0.0
        key = f"{name}/velocity"
        return [one.before[key], one.before[name]], [optimiser.momentum, decay], key
    return [one.before[f"{name}/first"]], [optimiser.beta1], f"{name}/first"


def gradient_share(workload: Training) -> float:
    """Say with what share a gradient enters a moment."""
    optimiser = workload.optimiser
    return 1.0 if isinstance(optimiser, SGD) else 1 - optimiser.beta1


def rest_of(workload: Training, name: str, one: Update) -> tuple[Array, Array]:
    """Give what a moment holds beyond its known parts, and how large those are."""
    parts, shares, key = known_parts(workload, name, one)
    known = sum((share * part for share, part in zip(shares, parts, strict=True)), np.zeros(()))
    terms = sum(
        (abs(share) * np.abs(part) for share, part in zip(shares, parts, strict=True)), np.zeros(())
    )
    rest: Array = one.after[key] - known
    return rest, np.asarray(terms)


def gradient_of(workload: Training, name: str, one: Update) -> Array:
    """Give the gradient that an update was made with."""
    found: Array = rest_of(workload, name, one)[0] / gradient_share(workload)
    return found


def movement(workload: Training, name: str, one: Update, batch: int) -> Array:
    """Say from the moments after an update how far it moves a weight."""
    optimiser = workload.optimiser
    if isinstance(optimiser, SGD):
        scaled = batch / optimiser.rate_batch if optimiser.rate_batch else 1.0
        moved: Array = optimiser.rate * scaled * one.after[f"{name}/velocity"]
        return moved
    kept = {f"{name}/{moment}": one.before[f"{name}/{moment}"] for moment in ("first", "second")}
    step = int(one.before["step"][0]) + 1
    return change_of(workload, batch, kept)(
        name, one.before[name], gradient_of(workload, name, one), step
    )


def refuse_other_second(workload: Training, name: str, one: Update) -> None:
    """Refuse a second moment that is another than the rule makes of the gradient that was found.

    The movement tells what it was as the weight moved, not what is kept for the next update.
    """
    optimiser = workload.optimiser
    if isinstance(optimiser, SGD):
        return
    key, beta = f"{name}/second", optimiser.beta2
    should = beta * one.before[key] + (1 - beta) * np.square(gradient_of(workload, name, one))
    if np.max(np.abs(one.after[key] - should)) <= _SECOND * np.max(should):
        return
    times = float(one.after[key] @ should) / float(should @ should)
    raise Untrained(
        f"the optimiser keeps another second moment of {name} than its rule makes: "
        f"{times:.3g} times as large after update {one.number}"
    )


def refuse_other_decay(
    workload: Training, name: str, one: Update, batch: int, gradient: Array | None
) -> None:
    """Refuse another weight decay, where it shows beside rounding: of SGD, whose velocity holds it,
    beside the ``gradient`` that it should be, and there alone.
    """
    optimiser, weight = workload.optimiser, one.before[name]
    if isinstance(optimiser, Adam) or not optimiser.weight_decay:
        return
    asked = optimiser.weight_decay if name in decayed(workload.network) else 0.0
    if not isinstance(optimiser, SGD):
        rate = optimiser.rate
        beside = movement(workload, name, one, batch) - rate * asked * weight
        rest, others = (weight - one.after[name] - beside) / rate, [beside]
    elif gradient is not None and asked:
        (velocity, _), (kept, _), key = known_parts(workload, name, one)
        rate, rest = 1.0, one.after[key] - kept * velocity - gradient
        others = [velocity, gradient]
    else:
        return
    found, error = _share(rest, weight, others)
    most = optimiser.weight_decay
    if rate * most < _LOST or error > _LEGIBLE * most or abs(found - asked) <= _DECAY * most:
        return
    found = found if abs(found) > _DECAY * most else 0.0
    raise Untrained(f"weight decay is {found:.3g} where {asked:.3g} is asked ({name})")


def _share(values: Array, along: Array, others: Sequence[Array]) -> tuple[float, float]:
    """Say what share of ``along`` values hold beside others, and how uncertain that is."""
    table = np.stack([along, *others], axis=1)
    norms = np.linalg.norm(table, axis=0)
    if len(values) <= 2 * table.shape[1] or not norms[0]:
        return 0.0, np.inf
    norms[norms == 0] = 1.0
    table = table / norms
    squares = table.T @ table
    inverse = np.linalg.pinv(squares)
    fitted = inverse @ (table.T @ values)
    left = values - table @ fitted
    variance = float(left @ left) / (len(values) - table.shape[1]) * float(inverse[0, 0])
    return float(fitted[0] / norms[0]), float(np.sqrt(variance) / norms[0])
