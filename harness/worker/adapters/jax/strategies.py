"""How ranks train together in JAX: one compiled step over all ranks' devices.

``data-parallel`` shards the batch over a mesh of every rank's device and leaves the weights whole
on each; XLA puts the all-reduces where gradients meet, over gloo between CPUs and NCCL between
GPUs. A batch norm so written takes its means over the whole batch: it is synchronised, unlike in
frameworks whose ranks see only their own share.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Tuple

from harness.worker.contracts import Unsupported
from harness.worker.job import Job
from harness.worker.place import Place


class Strategy:
    """A rank that trains alone."""

    def replicate(self, tree: Any) -> Any:
        """Give what every rank holds whole."""
        return tree

    def share(self, tree: Any) -> Any:
        """Give the batch of all ranks, of which this one holds its share."""
        return tree

    def own(self, tree: Any) -> Any:
        """Give what this rank holds of it."""
        return tree

    def jit(self, step: Any) -> Any:
        """Compile a step: (state, batch) -> (state, loss)."""
        import jax

        return jax.jit(step, donate_argnums=0)

    def programs(self, step: Any) -> Optional[int]:
        """Count what a step was compiled to."""
        return int(step._cache_size())

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return value

    def exchange(self, operation: str, message: int) -> Any:
        """Give an exchange of so many bytes, as ``harness/worker/collective.py`` steps it."""
        raise Unsupported("one rank has nobody to exchange messages with")

    def facts(self) -> Mapping[str, Any]:
        """Say what carried the gradients."""
        return {}

    def close(self) -> None:
        """Leave the other ranks."""


class DataParallel(Strategy):
    """A rank whose device is part of a mesh."""

    def __init__(self, jax: Any, place: Place, collectives: str, communicates: bool) -> None:
        import numpy

        self._communicates = communicates
        self._jax = jax
        self._size = place.size
        self._collectives = collectives
        each = [jax.local_devices(process_index=rank)[0] for rank in range(place.size)]
        self.mesh = mesh = jax.sharding.Mesh(numpy.array(each), ("ranks",))
        spec = jax.sharding.PartitionSpec
        self._whole = jax.sharding.NamedSharding(mesh, spec())
        self._shared = jax.sharding.NamedSharding(mesh, spec("ranks"))
        self._largest = jax.jit(lambda values: values.max(), out_shardings=self._whole)

    def replicate(self, tree: Any) -> Any:
        """Put the same values on every rank's device."""
        if not self._communicates:
            return tree
        return self._jax.tree.map(lambda one: self._made(self._whole, one, one.shape), tree)

    def share(self, tree: Any) -> Any:
        """Join every rank's part along the first dimension."""
        if not self._communicates:
            return tree

        def joined(one: Any) -> Any:
            shape: Tuple[int, ...] = (one.shape[0] * self._size, *one.shape[1:])
            return self._made(self._shared, one, shape)

        return self._jax.tree.map(joined, tree)

    def own(self, tree: Any) -> Any:
        """Give what this rank holds of it."""
        if not self._communicates:
            return tree
        return self._jax.tree.map(lambda one: one.addressable_data(0), tree)

    def _made(self, sharding: Any, local: Any, shape: Tuple[int, ...]) -> Any:
        jax = self._jax
        if local.sharding == sharding:  # it was made before
            return local
        if jax.dtypes.issubdtype(local.dtype, jax.dtypes.prng_key):
            bits = jax.random.key_data(local)
            return jax.random.wrap_key_data(self._made(sharding, bits, bits.shape))
        return jax.make_array_from_single_device_arrays(shape, sharding, [local])

    def jit(self, step: Any) -> Any:
        """Compile a step whose state and loss every rank holds whole."""
        if not self._communicates:
            return super().jit(step)
        whole = (self._whole, self._whole)
        return self._jax.jit(step, donate_argnums=0, out_shardings=whole)

    def programs(self, step: Any) -> Optional[int]:
        """Count nothing: among several ranks JAX notes two ways to call one program."""
        return None

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        import numpy

        local = self._jax.numpy.asarray(numpy.array([value], numpy.float32))
        return float(self._largest(self._made(self._shared, local, (self._size,))))

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages over the mesh."""
        from harness.worker.adapters.jax.exchange import Exchange

        return Exchange(operation, message, self, self._size)

    def facts(self) -> Dict[str, Any]:
        """Name what carried the gradients."""
        return {"collectives": self._collectives, "sync_batch_norm": True}

    def close(self) -> None:
        """Leave the coordinator."""
        self._jax.distributed.shutdown()


def meet(job: Job, place: Place) -> None:
    """Meet the other ranks, before JAX starts its devices."""
    if job.strategy == "none":
        return
    if job.strategy != "data-parallel":
        raise Unsupported("jax adapter: no strategy '{}'".format(job.strategy))
    import jax

    is_gpu = job.factors.get("device") == "gpu"
    if not is_gpu:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address="{MASTER_ADDR}:{MASTER_PORT}".format(**os.environ),
        num_processes=place.size,
        process_id=place.rank,
        local_device_ids=[place.local_rank] if is_gpu else None,
    )


def join(job: Job, place: Place) -> Strategy:
    """Form the mesh."""
    if job.strategy == "none":
        return Strategy()
    import jax

    collectives = "nccl" if job.factors.get("device") == "gpu" else "gloo"
    communicates = job.factors.get("communicate") is not False
    return DataParallel(jax, place, collectives, communicates)
