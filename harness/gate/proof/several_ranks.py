"""Hold ranks that train together to each other, and say how they share their gradients.

After an update all of them have one network, but for the running statistics of batch norms that see
a rank's own part of the batch. The gradient of the last bias is a sum over samples, so that of each
rank alone is known: it tells a gradient that was not exchanged from one that is only wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.exact.layer import Array
from harness.gate.proof.expected_updates import Gradients
from harness.gate.proof.given_back import thinned_further
from harness.gate.proof.moments import Update, gradient_of
from harness.gate.proof.untrained import Untrained
from harness.worker.network.shapes import sites, statistic_shapes
from harness.worker.network.workload import Training

_OFF = 1e-5
"""Of what an update changes: each rank may add up in another order."""
_ROUNDING = 2.0**-22
_NEAR = 0.1
"""How near a gradient comes to one that explains it, of its largest item."""


@dataclass(frozen=True)
class Ranks:
    """One update of all ranks, or devices, that train together; perhaps of one alone."""

    updates: Sequence[Update]
    called: str

    def refuse_unlike(self, workload: Training, expected: Gradients | None = None) -> None:
        """Refuse ranks that are different networks; without dropout it is known what to expect."""
        apart = {name for site in sites(workload.network) for name, _ in statistic_shapes(site)}
        first = self.updates[0]
        for number, other in enumerate(self.updates[1:], start=1):
            for name in first.after:
                if name in apart or _are_alike(first, other, name):
                    continue
                if expected is not None and self._keep_their_own(workload, expected):
                    raise Untrained(
                        f"gradients are not exchanged in update {first.number}: "
                        f"each {self.called} moves by its own"
                    )
                raise Untrained(
                    f"{self.called} {number} is another network than {self.called} 0 "
                    f"after update {first.number}: {name} differs"
                )

    def sharing(self, workload: Training, expected: Gradients) -> str | None:
        """Say how a wrong gradient was made from those of all ranks, if that shows."""
        count = len(self.updates)
        if count == 1 or len(expected.slopes) == 1:  # of the one sample that has a gradient
            return None
        found = _of_last_bias(workload, self.updates[0], expected)
        if found is None:
            return None
        own = _own_gradients(expected, count)
        for number, alone in enumerate(own):
            if _is_near(found, alone):
                return f"every {self.called} moves by the gradient of {self.called} {number} alone"
        if _is_near(found, own.sum(axis=0)):
            return f"the gradients of {count} {self.called}s are added up, not averaged"
        if _is_near(found, own.mean(axis=0) / count):
            return f"the average of {count} {self.called}s' gradients is divided once more"
        return None

    def _keep_their_own(self, workload: Training, expected: Gradients) -> bool:
        found = [_of_last_bias(workload, one, expected) for one in self.updates]
        own = _own_gradients(expected, len(self.updates))
        return all(
            one is not None and _is_near(one, alone) for one, alone in zip(found, own, strict=True)
        )


def _are_alike(first: Update, other: Update, name: str) -> bool:
    held = thinned_further(first.after[name])
    before = other.before.get(name, np.zeros(1))
    allowed = _OFF * float(np.max(np.abs(held - before)))
    allowed += _ROUNDING * float(np.max(np.abs(held)))
    return float(np.max(np.abs(other.after[name] - held))) <= allowed


def _own_gradients(expected: Gradients, count: int) -> Array:
    """Give the gradient of the last bias that each rank has alone."""
    return np.stack([count * part.sum(axis=0) for part in np.split(expected.slopes, count)])


def _of_last_bias(workload: Training, one: Update, expected: Gradients) -> Array | None:
    """Give the gradient that says whose samples an update saw, if outputs have a bias each."""
    name = f"{sites(workload.network)[-1].path}/bias"
    if name not in one.before or one.before[name].shape != expected.slopes.shape[1:]:
        return None
    return gradient_of(workload, name, one)


def _is_near(found: Array, right: Array) -> bool:
    if found.size != right.size:  # a further rank gives back a part
        right = thinned_further(right)
    return float(np.max(np.abs(found - right))) <= _NEAR * float(np.max(np.abs(right)))
