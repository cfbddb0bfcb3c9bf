"""The equivalence gate's measures of error and their tolerances.

Semantics are compared in float64, one number per tensor: the largest difference over the largest
reference value. Element by element would be wrong: what cancels to almost nothing has no digits
left. Gradients that are zero in exact arithmetic (a bias before a batch norm) are pure rounding; so
where reference and difference both stay below a floor, 1e-9 of the norm of all gradients together,
there is no error.

The timed lowering is compared layer by layer, on inputs that its precision holds exactly. What is
left is rounding: of each output once, and of sums of n products whose errors grow like sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

TOLERANCE = 1e-8
FLOOR = 1e-9

GROWTH = 10.0
"""How much more an update may be off that goes on from what the one before left: torch's ResNet-50
in two layouts, at 3×64×64, is 1.2e-8 apart in a running variance after five such. One that starts
from the reference's state is held to the tolerance."""

_FEW_ROUNDINGS = 4.0
"""An output is rounded after a product, again after a bias, a scale and a shift."""
_ROUNDINGS_OF_A_CHAIN = 8.0
"""A GELU multiplies its input with itself, adds, takes a hyperbolic tangent and multiplies again;
all of it rounds where a framework computes in the narrow type, and once more in its slope."""
_SUMMATION = 16.0
"""Blocked sums and Winograd's transforms lose a few bits more than a plain sum."""
_DEPTH = 2.0
"""Batch norms of few samples amplify what came before them."""
_DEVIATIONS = 6.0
"""A dropout this many standard deviations off its rate is not chance."""
_CHANCE = 1e-9
"""Masks of two samples that are equal with less than this probability are one mask."""


@dataclass(frozen=True)
class Rounding:
    """What one precision loses: on storing a number, and on adding one to a sum."""

    stored: float
    summed: float


ROUNDINGS = {
    "fp32": Rounding(2.0**-24, 2.0**-24),
    "tf32": Rounding(2.0**-11, 2.0**-24),
    "bf16": Rounding(2.0**-8, 2.0**-24),
    "bf16-pure": Rounding(2.0**-8, 2.0**-24),
    "fp16": Rounding(2.0**-11, 2.0**-24),
}


def floor(gradients: Iterable[Array]) -> float:
    """Give the size below which a gradient is nothing but rounding."""
    return FLOOR * math.sqrt(math.fsum(float(np.vdot(one, one)) for one in gradients))


def error(made: Array, reference: Array, *, floor: float = 0.0, scale: float = 0.0) -> float:
    """Give max|difference| / max|reference|; infinite where shapes or numbers are impossible.

    ``scale`` is the size of the terms where a sum may cancel to less than any of them.
    """
    if made.shape != reference.shape:
        return math.inf
    if not made.size:
        return 0.0
    difference, largest = _largest(np.subtract(made, reference)), _largest(reference)
    if math.isnan(difference):
        return math.inf
    if difference <= floor and largest <= floor:
        return 0.0
    if difference == 0:
        return 0.0
    return difference / max(largest, scale) if max(largest, scale) else math.inf


def _largest(values: Array) -> float:
    """Give the largest size; no number where one is none."""
    return float(max(np.max(values), -np.min(values)))


def layer_tolerance(precision: str, terms: int, *, is_chain: bool = False) -> float:
    """Give the tolerance of one layer's tensor whose items sum ``terms`` products."""
    rounding = ROUNDINGS[precision]
    roundings = _ROUNDINGS_OF_A_CHAIN if is_chain else _FEW_ROUNDINGS
    return roundings * rounding.stored + _SUMMATION * rounding.summed * math.sqrt(terms)


def network_tolerance(precision: str, depth: int, terms: int) -> float:
    """Give the tolerance of the output after ``depth`` layers of up to ``terms`` products."""
    return _DEPTH * math.sqrt(depth) * layer_tolerance(precision, terms)


def loss_slope_tolerance(allowed: float, output: Array) -> float:
    """Say how far the gradient of a loss may be off whose ``output`` may be ``allowed`` off.

    A softmax moves by at most half of what its logits move by, and those are not around 1.
    """
    return allowed * max(1.0, float(np.max(np.abs(output))) / 2)


def size_of_sums(terms: Array, precision: str) -> float:
    """Say against what to hold sums over all but axis 1, which often cancel to nothing.

    Random signs lose little: the norm. But the terms of a sum that is zero in exact arithmetic (a
    bias before a batch norm: a few large ones, and many equal ones that make up for them) are
    rounded in one direction; then only the sum of their sizes bounds what is left (Higham, 4.2).
    """
    others = tuple(axis for axis in range(terms.ndim) if axis != 1)
    sizes = np.abs(terms).sum(axis=others)
    if np.max(np.abs(terms.sum(axis=others))) <= ROUNDINGS[precision].stored * np.max(sizes):
        return float(np.max(sizes))
    return math.sqrt(float(np.vdot(terms, terms)) / len(sizes))


def sizes_of_norm(inputs: Array, gradient: Array, gamma: Array, epsilon: float) -> dict[str, float]:
    """Say against what to hold what a batch norm gives, by its parts.

    It takes a mean away: where that is large beside the deviation, as with few samples of single
    positions, what is left has lost as many digits.
    """
    others = tuple(axis for axis in range(inputs.ndim) if axis != 1)
    deviation = np.sqrt(inputs.var(axis=others) + epsilon)
    lost = np.abs(inputs.mean(axis=others)) / deviation
    slopes = np.abs(gradient).max(axis=others)
    norms = np.sqrt(np.square(gradient).sum(axis=others))
    return {
        "output": float(np.max(np.abs(gamma) * lost)),
        "input-gradient": float(np.max(np.abs(gamma) / deviation * slopes * np.maximum(1, lost))),
        "gradient/gamma": float(np.max(norms * lost)),
    }


def moments(inputs: Array) -> dict[str, tuple[Array, float]]:
    """Give a batch's mean and corrected variance by channel, and the size of what they add up.

    A variance may be taken as the mean of squares less the square of the mean: it loses what the
    mean takes away.
    """
    others = tuple(axis for axis in range(inputs.ndim) if axis != 1)
    square = float(np.max(np.square(inputs).mean(axis=others)))
    count = inputs.size // inputs.shape[1]
    mean, variance = inputs.mean(axis=others), inputs.var(axis=others) * (count / (count - 1))
    return {"mean": (mean, math.sqrt(square)), "variance": (variance, square)}


def moved_error(
    made: Array, before: Array, batch: Array, momentum: float, size: float, precision: str = "fp32"
) -> float:
    """Say how far a running statistic is off, of the ``size`` of what the batch added to it.

    What rounding the statistic itself may have lost is no error.
    """
    if made.shape != before.shape:
        return math.inf
    moved = (1 - momentum) * before + momentum * batch
    off = float(np.max(np.abs(made - moved)))
    if math.isnan(off):
        return math.inf
    lost = _FEW_ROUNDINGS * ROUNDINGS[precision].stored * float(np.max(np.abs(moved)))
    return max(0.0, off - lost) / (momentum * size) if off > lost else 0.0


def biased_variance(
    variance: Array, before: Array, *, momentum: float, updates: int, count: int
) -> Array:
    """Give the running variance that a framework without Bessel's correction reaches.

    ``variance`` is the corrected one after that many updates from ``before``; ``count`` is how many
    values each batch variance was taken of.
    """
    kept = (1 - momentum) ** updates * before
    result: Array = kept + (variance - kept) * ((count - 1) / count)
    return result


def dropout_fault(given: Array, made: Array, rate: float, tolerance: float) -> str | None:
    """Describe a fault in a dropout's scale or rate; empty if there is none."""
    if made.shape != given.shape:
        return f"shape {made.shape}, not {given.shape}"
    dropped = made == 0
    scaled = np.where(dropped, 0.0, given / (1 - rate))
    off = error(made, scaled)
    if off > tolerance:
        return f"what stays is {off:.1e} off x / (1 - {rate:g})"
    is_tested = given != 0
    count = int(np.count_nonzero(is_tested))
    share = float(np.count_nonzero(dropped & is_tested)) / max(1, count)
    spread = math.sqrt(rate * (1 - rate) / max(1, count))
    if abs(share - rate) > _DEVIATIONS * spread:
        return f"drops {share:.4f} of {count} values, not {rate:g}"
    return None


def mask_fault(
    forward: tuple[Array, Array], backward: tuple[Array, Array], rate: float
) -> str | None:
    """Say what is wrong with a dropout's masks: another one backward, or one for all samples.

    Each pass is what entered and what left; what entered as 0 tells nothing.
    """
    (given, made), (slope, returned) = forward, backward
    dropped, is_tested = made == 0, given != 0
    both = is_tested & (slope != 0)
    others = int(np.count_nonzero(both & (dropped != (returned == 0))))
    if others:
        return (
            f"the gradient of its input drops others than the output does: {others} of "
            f"{int(np.count_nonzero(both))} values"
        )
    compared = is_tested[1:] & is_tested[:1]
    chance = max(rate, 1 - rate) ** int(np.count_nonzero(compared))
    if chance < _CHANCE and not np.any(compared & (dropped[1:] != dropped[:1])):
        return "one mask is shared by all samples"
    return None
