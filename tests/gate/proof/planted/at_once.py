"""Faults planted in how a step is parted: it computes the batch at once, though parts are asked."""

from __future__ import annotations

CHANGES: dict[str, tuple[str, tuple[str, str]]] = {
    "torch": (
        "harness/worker/adapters/torch/training.py",
        ("        count = self.settings.accumulate\n", "        count = 1\n"),
    ),
    "jax": (
        "harness/worker/adapters/jax/training.py",
        ("    if count == 1:\n        return slopes(", "    if True:\n        return slopes("),
    ),
    "tensorflow": (
        "harness/worker/adapters/tensorflow/training.py",
        ("        count = self._accumulate\n", "        count = 1\n"),
    ),
}
"""Of each framework that accumulates: the source, what stands there and what is put there."""
