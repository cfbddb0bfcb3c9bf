"""Train on several devices in one process, as tf.distribute.MirroredStrategy does.

Every device holds all variables and takes an equal part of the rank's batch; gradients are averaged
over TensorFlow's collectives (NCCL between GPUs). Batch norm normalises each device's own part;
running statistics stay each device's own, and the first one's are saved.

On a CPU the devices are logical ones: they share the rank's cores and memory. They show that the
strategy is right and what it costs, not what further devices would bring.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ContextManager, List, Mapping, Tuple

from harness.worker.adapters.tensorflow.strategies.strategies import Replicated
from harness.worker.contracts import Unsupported


class Mirrored(Replicated):
    """A rank that drives several devices."""

    def __init__(self, count: int, is_gpu: bool, bucket_mb: Any) -> None:
        import tensorflow.compat.v2 as tf

        self._tf = tf
        self._is_gpu = is_gpu
        self.replicas = count
        _take_gpus(count) if is_gpu else _divide_cpu(count)
        kind = "GPU" if is_gpu else "CPU"
        self._devices = ["{}:{}".format(kind, number) for number in range(count)]
        self._options = tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=0 if bucket_mb is None else int(bucket_mb) * 2**20
        )
        self._strategy = tf.distribute.MirroredStrategy(self._devices)

    def scope(self) -> ContextManager[Any]:
        """Make variables on every device: what is learned mirrored, all else each device's own."""
        tf = self._tf

        def own(make: Any, **given: Any) -> Any:
            if not given.get("trainable", True):
                given["synchronization"] = tf.VariableSynchronization.ON_READ
                given["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
            return make(**given)

        both = ExitStack()
        both.enter_context(self._strategy.scope())
        both.enter_context(tf.variable_creator_scope(own))
        return both

    def spread(self, batch: Tuple[Any, ...]) -> Tuple[List[Any], ...]:
        """Put an equal part of each tensor on each device."""
        return tuple([self._part(one, n) for n in range(self.replicas)] for one in batch)

    def _part(self, whole: Any, replica: int) -> Any:
        each, rest = divmod(int(whole.shape[0]), self.replicas)
        if rest:
            raise Unsupported(
                "a batch of {} does not divide over {} devices".format(
                    whole.shape[0], self.replicas
                )
            )
        with self._tf.device(self._devices[replica]):
            return self._tf.identity(whole[replica * each : (replica + 1) * each])

    def own(self, batch: Tuple[List[Any], ...]) -> Tuple[Any, ...]:
        """Give the parts of the device whose step is being traced."""
        context = self._tf.distribute.get_replica_context()
        replica = int(self._tf.get_static_value(context.replica_id_in_sync_group))
        return tuple(parts[replica] for parts in batch)

    def run(self, step: Any) -> Any:
        """Run the step on every device; what it gives is averaged."""
        mean = self._tf.distribute.ReduceOp.MEAN

        def everywhere() -> Any:
            given = self._strategy.run(step)
            return None if given is None else self._strategy.reduce(mean, given, axis=None)

        return everywhere

    def on(self, replica: int, variable: Any) -> Any:
        """Give one device's copy of a variable."""
        return self._strategy.experimental_local_results(variable)[replica]

    def facts(self) -> Mapping[str, Any]:
        """Name the devices, and what carried the gradients."""
        return {
            "collectives": "nccl" if self._is_gpu else "within the process",
            "sync_batch_norm": False,
            "replicas": self.replicas,
            "replica_devices": "GPUs" if self._is_gpu else "logical CPUs on shared cores",
        }


def _divide_cpu(count: int) -> None:
    import tensorflow.compat.v2 as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    parts = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    tf.config.set_logical_device_configuration(cpu, parts)


def _take_gpus(count: int) -> None:
    import tensorflow.compat.v2 as tf

    seen = tf.config.list_physical_devices("GPU")
    if len(seen) < count:
        raise Unsupported("needs {} GPUs: TensorFlow sees {}".format(count, len(seen)))
    tf.config.set_visible_devices(seen[:count], "GPU")
