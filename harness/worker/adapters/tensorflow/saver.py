"""Save what TensorFlow trains with tf.train.Checkpoint: an index and its data file."""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict

import tensorflow.compat.v2 as tf

_PREFIX = "state"


class TensorFlowSaver:
    """All variables of a trainer: weights, statistics, the optimiser's, the loss scale."""

    name = "tf.train.Checkpoint"
    together = False

    def __init__(self, variables: Dict[str, Any]) -> None:
        self._variables = variables
        # Named by their place in order: a name of ours may hold what a path may not.
        numbered = {"v{}".format(n): variables[name] for n, name in enumerate(sorted(variables))}
        self._checkpoint = tf.train.Checkpoint(**numbered)
        self._counter = self._checkpoint.save_counter  # made now, so that it is written too

    @property
    def bytes(self) -> int:
        """Add up the variables."""
        return sum(one.dtype.size * one.shape.num_elements() for one in self._variables.values())

    def save(self, folder: str) -> None:
        """Write the variables; training goes on when they are written."""
        self._checkpoint.write(os.path.join(folder, _PREFIX))

    def restore(self, folder: str) -> None:
        """Read every variable back."""
        # TensorFlow 1.15 has no read; there, restore takes what write wrote.
        read = getattr(self._checkpoint, "read", self._checkpoint.restore)
        read(os.path.join(folder, _PREFIX)).assert_existing_objects_matched()

    def digest(self) -> str:
        """Hash every variable by name."""
        whole = hashlib.sha256()
        for name in sorted(self._variables):
            whole.update(name.encode())
            whole.update(self._variables[name].numpy().tobytes())
        return whole.hexdigest()
