"""Say how far a gradient of the timed step is off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from harness.exact.layer import Array
from harness.gate.proof.expected_updates import Gradients, is_smooth
from harness.worker.network.precisions import precision_of
from harness.worker.network.shapes import has_dropout, parameter_shapes, sites
from harness.worker.network.workload import Training

TOLERANCES: Mapping[str, float] = {"fp32": 1e-3}
"""By precision, of the largest item of a gradient."""
_DEEP, _IN_DEEP = 40, 10.0
"""With more learned layers gradients may be so much farther off: each batch norm takes a mean away,
which is large beside the deviation where a start has no kinks."""
COSINE, COSINE_SMOOTH = 0.8, 0.99
LENGTH = 0.1
"""Of narrower precisions: in what direction a gradient may point, and how much longer it may be. A
network without kinks that is not deep is 1e-3 and 4 % off."""
_MIDDLE, _MIDDLE_ALONE, _OF_OTHERS = 5e-5, 1.3e-4, 1e-3
"""In fp32 half of the tensors are 3e-6 to 7e-6 off, as a norm; exchanged in fp16 each is 2e-4. So
little is held against them only where they have no more digits than fp16 has. Where masks are drawn
a squared error asks that all samples but one have no gradient: they have that of a rounded output,
and together the more the larger the batch (1e-4 of two ranks with 512 each)."""
_DIGITS, _NEARLY = 11, 2.0**-4
"""The bits of a number in fp16; and how far one may be from such a number, in its last bit."""
_CANCELLED = 1e-2
"""A gradient that is so small a share of its terms is mostly their rounding."""
_CANCELLED_PURE = 2 * 2.0**-8 / LENGTH
"""The same where nothing is wider than bfloat16: terms twice rounded move a sum so far."""


@dataclass(frozen=True)
class Legible:
    """What of a gradient can be read where its moment is rounded."""

    items: npt.NDArray[np.bool_]
    lost: float
    """Of them together, as a norm, what rounding may take or add."""


def allowed(workload: Training, precision: str) -> float:
    """Say how far a gradient may be off."""
    return TOLERANCES[precision] * _slack(workload) if precision in TOLERANCES else 1.0


def _slack(workload: Training) -> float:
    learned = sum(bool(parameter_shapes(site)) for site in sites(workload.network))
    return _IN_DEEP if learned > _DEEP else 1.0


def is_held_closely(workload: Training) -> bool:
    """Tell whether narrow precisions leave a network's gradients where they are."""
    return is_smooth(workload.network) and _slack(workload) == 1.0


def gradient_error(
    found: Array,
    expected: Gradients,
    name: str,
    precision: str,
    legible: Legible | None = None,
    *,
    closely: bool = False,
) -> float:
    """Say how far a gradient is off; of narrow precisions 1 less the cosine, 2 where its length is.

    What cancels to nothing has no direction, and what is not legible is left out; a length may be
    off by what rounding takes of the rest, too.
    """
    right, size = expected.gradients[name], expected.sizes[name]
    if legible is not None:
        found, right = found[legible.items], right[legible.items]
    if precision in TOLERANCES:
        return float(np.max(np.abs(found - right))) / size if size else float(np.any(found))
    length = float(np.linalg.norm(right))
    cancelled = _CANCELLED_PURE if precision_of(precision).is_pure else _CANCELLED
    if length <= cancelled * size:
        return 0.0
    cosine = float(found @ right) / (length * (float(np.linalg.norm(found)) or 1.0))
    least = COSINE_SMOOTH if closely else COSINE
    longest = LENGTH * length + (legible.lost if legible is not None else 0.0)
    if abs(float(np.linalg.norm(found)) - length) > longest or cosine < least:
        return 2.0
    return 1 - cosine


def rounding(
    workload: Training, found: Mapping[str, Array], expected: Gradients, precision: str, parts: int
) -> float | None:
    """Say how far gradients are off that were all rounded to half precision; None: they were not.

    Every item of them is off by a share of itself, also where a tensor's largest error is none.
    ``parts`` are what they were averaged over, after they were rounded.
    """
    if precision not in TOLERANCES:
        return None
    norms = {name: float(np.linalg.norm(right)) for name, right in expected.gradients.items()}
    largest = {name: float(np.max(np.abs(right))) for name, right in expected.gradients.items()}
    legible = [name for name, one in largest.items() if one > _CANCELLED * expected.sizes[name]]
    if not legible:
        return None
    middle = median(
        float(np.linalg.norm(found[name] - expected.gradients[name])) / norms[name]
        for name in legible
    )
    short = median(_short_share(found[name] * parts) for name in legible)
    if short > 0.5:
        most = _MIDDLE
    elif workload.loss == "mean-squared-error" and has_dropout(workload.network):
        most = _OF_OTHERS
    else:
        most = _MIDDLE_ALONE
    return middle if middle > most * _slack(workload) else None


def _short_share(found: Array) -> float:
    """Give the share of numbers that have no more digits than fp16 has: by chance an eighth.

    Small ones are left out: what is left of a moment beside its known parts has few digits there.
    """
    large = found[np.abs(found) > _CANCELLED * np.max(np.abs(found))]
    mantissas = np.ldexp(np.frexp(large)[0], _DIGITS)
    if not len(mantissas):
        return 0.0
    return float(np.mean(np.abs(mantissas - np.round(mantissas)) < _NEARLY))
