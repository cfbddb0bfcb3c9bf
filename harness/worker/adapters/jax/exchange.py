"""Exchange messages in JAX: a compiled collective over the mesh of all ranks.

All-reduce adds float32, as gradients are; the other operations move bytes. JAX lowers its broadcast
for GPUs only; what it offers between CPUs (``multihost_utils``) is an all-reduce with zeros.
"""

from __future__ import annotations

from typing import Any, List, Tuple

from harness.worker.contracts import Unsupported


class Exchange:
    """Messages through XLA's collectives."""

    def __init__(self, operation: str, message: int, strategy: Any, size: int) -> None:
        import jax

        is_broadcast = operation == "broadcast"
        if is_broadcast and strategy.mesh.devices.flat[0].platform == "cpu":
            raise Unsupported("JAX broadcasts between GPUs only; all-gather comes nearest")
        self.agree = strategy.agree
        self._jax = jax
        self._strategy = strategy
        self._parts = size if operation == "all-gather" else 1
        is_sum = operation == "all-reduce"
        self._type = jax.numpy.float32 if is_sum else jax.numpy.uint8
        self._count = message // (4 if is_sum else 1) // self._parts
        spec = jax.sharding.PartitionSpec

        def exchanged(mine: Any) -> Any:
            if is_sum:
                return jax.lax.psum(mine, "ranks")
            if operation == "all-gather":
                return jax.lax.all_gather(mine, "ranks", tiled=True)
            if is_broadcast:
                return jax.lax.pbroadcast(mine, ("ranks",), 0)
            ring = [(rank, (rank + 1) % size) for rank in range(size)]
            return jax.lax.ppermute(mine, "ranks", ring)

        self._step = jax.jit(
            jax.shard_map(
                exchanged,
                mesh=strategy.mesh,
                in_specs=spec("ranks"),
                out_specs=spec("ranks"),
                check_vma=False,
            )
        )
        self._sent: Any = None
        self._arrived: Any = None

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value."""
        mine = self._jax.numpy.full((self._count,), value, self._type)
        self._sent = self._strategy.share(mine)
        self._arrived = None

    def step(self) -> None:
        """Enqueue one exchange."""
        self._arrived = self._step(self._sent)

    def sync(self) -> None:
        """Wait for the last one."""
        self._jax.block_until_ready(self._arrived)

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived here."""
        import numpy

        (own,) = self._arrived.addressable_shards
        parts = numpy.asarray(own.data).reshape(self._parts, -1)
        return [(float(part.min()), float(part.max())) for part in parts]
