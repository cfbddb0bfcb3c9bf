"""Feed JAX from files: what a loader read becomes a batch on the device, in its layout.

JAX has no loader of its own; the plain threads and the asynchronous reader serve it. Cast, scale
and layout are one compiled function on the device, dispatched as every step is: while it runs, the
next batch is already waited for.
"""

from __future__ import annotations

from typing import Any, Tuple

import jax
import numpy
from jax import numpy as jnp

from harness.worker.adapters.jax.lowering.network import Lowered
from harness.worker.adapters.jax.training import Given
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.input.epochs import Epochs
from harness.worker.input.open import loader_of, opened


class Feeder:
    """One rank's batches."""

    def __init__(self, feed: Feed, net: Lowered) -> None:
        dataset, files = opened(feed)
        shape = tuple(feed.input)
        if dataset.shape != shape:
            raise Unsupported(
                "the files hold samples of {}, and the network takes {}".format(
                    dataset.shape or "encoded pictures", shape
                )
            )
        loader = loader_of(dataset, files, feed.batch_per_rank)
        self.epochs = Epochs(dataset, files, loader, feed.batch_per_rank, whole=False)
        self._kind = numpy.dtype(dataset.manifest["dtype"])
        if dataset.is_text:
            self._prepared: Any = jax.jit(_texts)
            self._targets: Any = None
            return
        scale = float(dataset.manifest["scale"])
        length = dataset.manifest["target_length"]
        targets = numpy.array(dataset.targets())
        self._targets = targets.reshape(-1, length) if length else targets.astype(numpy.int32)

        def prepared(stored: jax.Array) -> jax.Array:
            values = net.activation_in(stored.reshape(-1, *shape))
            made: jax.Array = values.astype(jnp.float32) / scale
            return made

        self._prepared = jax.jit(prepared)

    def next(self) -> Given:
        """Wait for the next batch, and bring it to the device."""
        batch = self.epochs.next()
        # a copy: the loader's buffers are filled anew while JAX still reads what it was handed
        stored = numpy.stack([numpy.frombuffer(one, self._kind) for one in batch.data])
        if self._targets is None:
            return Given(*self._prepared(stored))
        return Given(self._prepared(stored), jnp.asarray(self._targets[list(batch.samples)]))


def _texts(stored: jax.Array) -> Tuple[jax.Array, jax.Array]:
    """Give texts, and the token behind each of theirs."""
    tokens = stored.astype(jnp.int32)
    return tokens[:, :-1], tokens[:, 1:]
