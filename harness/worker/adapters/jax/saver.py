"""Save what JAX trains with orbax: a folder of arrays in the OCDBT format.

Random keys are saved as the numbers that they are. The asynchronous form writes from a copy: a step
is given its state's memory to compute the next one in.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Callable, Dict, Optional

import jax
import numpy

from harness.worker.contracts import Unsupported

_FOLDER = "state"


class OrbaxSaver:
    """Weights, statistics, moments, step and key of an activity."""

    together = False

    def __init__(self, activity: Any, is_asynchronous: bool) -> None:
        try:
            from orbax import checkpoint
        except ImportError as error:
            raise Unsupported(
                "no orbax here: {}; `bakeoff env create jax[orbax]`".format(error)
            ) from error
        if jax.process_count() > 1:
            raise Unsupported("checkpoints of several JAX processes are not taken yet")
        self._orbax = checkpoint
        self._activity = activity
        self._is_asynchronous = is_asynchronous
        self.name = "orbax, asynchronous" if is_asynchronous else "orbax"
        make = checkpoint.AsyncCheckpointer if is_asynchronous else checkpoint.Checkpointer
        self._checkpointer = make(checkpoint.StandardCheckpointHandler())

    @property
    def bytes(self) -> int:
        """Add up the arrays."""
        return sum(array.nbytes for array in jax.tree.leaves(self._saved()))

    def save(self, folder: str) -> Optional[Callable[[], None]]:
        """Write the arrays; asynchronously, from a copy."""
        state = self._saved()
        if self._is_asynchronous:
            state = jax.block_until_ready(jax.tree.map(jax.numpy.copy, state))
        self._checkpointer.save(
            os.path.join(os.path.abspath(folder), _FOLDER),
            args=self._orbax.args.StandardSave(state),
        )
        return self._checkpointer.wait_until_finished if self._is_asynchronous else None

    def restore(self, folder: str) -> None:
        """Read the arrays back to where they were."""
        there = jax.tree.map(self._orbax.utils.to_shape_dtype_struct, self._saved())
        found = self._checkpointer.restore(
            os.path.join(os.path.abspath(folder), _FOLDER),
            args=self._orbax.args.StandardRestore(there),
        )
        state = self._activity.trained
        key = jax.random.wrap_key_data(found.pop("key"))
        self._activity.trained = jax.block_until_ready(state._replace(key=key, **found))

    def digest(self) -> str:
        """Hash every array by its place."""
        whole = hashlib.sha256()
        for path, array in jax.tree_util.tree_flatten_with_path(self._saved())[0]:
            whole.update(jax.tree_util.keystr(path).encode())
            whole.update(numpy.ascontiguousarray(array).tobytes())
        return whole.hexdigest()

    def _saved(self) -> Dict[str, Any]:
        fields = self._activity.trained._asdict()
        fields["key"] = jax.random.key_data(fields["key"])
        return {name: value for name, value in fields.items() if value is not None}
