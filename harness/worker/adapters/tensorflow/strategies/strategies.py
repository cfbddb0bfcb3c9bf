"""How ranks train together in TensorFlow, each the way a custom loop does it.

``multiworker`` sums gradients over collectives of TensorFlow's own (rings over gRPC between CPUs,
NCCL between GPUs); ``horovod`` through Horovod's; ``mirrored`` (several devices of one rank) has a
file of its own. Every rank starts from the same seeded weights
and takes the same averaged update, so all stay equal. Batch norm normalises each rank's own batch,
and running statistics stay each rank's own.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, ContextManager, Dict, Mapping

from harness.worker import horovod as meeting
from harness.worker.contracts import Unsupported
from harness.worker.place import Place

OWN_GROUP = 7001
"""Of ranks that broadcast; the strategy counts its own groups from one."""


class Strategy:
    """A rank that trains alone."""

    communicates = True
    """Whether ranks exchange gradients; else each goes its own way, to see what that costs."""

    replicas = 1
    """How many devices this rank drives."""

    def scope(self) -> ContextManager[Any]:
        """Give what variables have to be made in."""
        return ExitStack()

    def spread(self, batch: Any) -> Any:
        """Divide a batch among this rank's devices."""
        return batch

    def own(self, batch: Any) -> Any:
        """Give what ``spread`` made for the device whose step is being traced."""
        return batch

    def averaged(self, gradients: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the mean of all ranks' gradients; belongs inside a traced function."""
        return gradients

    def run(self, step: Any) -> Any:
        """Give the step as it has to be called in this strategy."""
        return step

    def on(self, replica: int, variable: Any) -> Any:
        """Give a variable as one of this rank's devices holds it."""
        del replica  # there is one
        return variable

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return value

    def collective(self, operation: str) -> Callable[[Any], Any]:
        """Give what exchanges one message; belongs inside a traced function that is ``run``."""
        raise Unsupported("one rank has nobody to exchange messages with")

    def facts(self) -> Mapping[str, Any]:
        """Say what carried the gradients."""
        return {}

    def close(self) -> None:
        """Leave the other ranks."""


class Replicated(Strategy):
    """Replicas of tf.distribute, which average among themselves."""

    _tf: Any
    _options: Any

    def averaged(self, gradients: Mapping[str, Any]) -> Dict[str, Any]:
        """Sum over all replicas at once, so that TensorFlow can pack, and divide."""
        if not self.communicates:
            return dict(gradients)
        mean = self._tf.distribute.ReduceOp.MEAN
        context = self._tf.distribute.get_replica_context()
        made = context.all_reduce(mean, list(gradients.values()), self._options)
        return dict(zip(gradients, made))


class MultiWorker(Replicated):
    """A worker of tf.distribute.MultiWorkerMirroredStrategy."""

    def __init__(self, place: Place, is_gpu: bool, bucket_mb: Any) -> None:
        import tensorflow.compat.v2 as tf

        kinds = tf.distribute.experimental.CommunicationImplementation
        self._collectives = "nccl" if is_gpu else "ring over grpc"
        self._hint = "nccl" if is_gpu else "ring"
        self._options = tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=0 if bucket_mb is None else int(bucket_mb) * 2**20,
            implementation=kinds.NCCL if is_gpu else kinds.RING,
        )
        self._tf = tf
        self._place = place
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=self._options
        )
        self._offers: Any = None
        self._all: Any = None

    def run(self, step: Any) -> Any:
        """Call the step as a replica."""
        return lambda: self._strategy.run(step)

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers: each puts its own into a row of all."""
        tf = self._tf
        if self._all is None:
            self._offers = tf.Variable(tf.zeros([self._place.size], tf.float64))

            def summed() -> Any:
                context = tf.distribute.get_replica_context()
                return context.all_reduce(tf.distribute.ReduceOp.SUM, self._offers.read_value())

            self._all = tf.function(lambda: self._strategy.run(summed), autograph=False)
        row = [0.0] * self._place.size
        row[self._place.rank] = value
        self._offers.assign(row)
        return float(max(self._all().numpy()))

    def collective(self, operation: str) -> Callable[[Any], Any]:
        """Exchange messages as a replica."""
        distribute, options = self._tf.distribute, self._options
        context, total = distribute.get_replica_context, distribute.ReduceOp.SUM
        found: Dict[str, Callable[[Any], Any]] = {
            "all-reduce": lambda value: context().all_reduce(total, value, options),
            "all-gather": lambda value: context().all_gather(value, 0, options),
            "broadcast": self._broadcast,
        }
        if operation not in found:
            raise Unsupported(
                "TensorFlow's collectives are between all ranks, never between two; "
                "parameter-server reads what another rank holds"
            )
        return found[operation]

    def _broadcast(self, value: Any) -> Any:
        """Do as the strategy itself does where the first rank's variables become all ranks'."""
        same = {
            "group_size": self._place.size,
            "group_key": OWN_GROUP,
            "instance_key": 1,
            "communication_hint": self._hint,
        }
        if self._place.rank == 0:
            return self._tf.raw_ops.CollectiveBcastSendV2(input=value, **same)
        return self._tf.raw_ops.CollectiveBcastRecvV2(T=value.dtype, shape=value.shape, **same)

    def facts(self) -> Mapping[str, Any]:
        """Name what carried the gradients."""
        return {"collectives": self._collectives, "sync_batch_norm": False}


class Horovod(Strategy):
    """A rank of Horovod's."""

    def __init__(self, horovod: Any, place: meeting.Meeting) -> None:
        self._horovod = horovod
        self._meeting = place

    def averaged(self, gradients: Mapping[str, Any]) -> Dict[str, Any]:
        """Reduce each by its name; Horovod fuses them."""
        if not self.communicates:
            return dict(gradients)
        return {
            name: self._horovod.allreduce(
                value, op=self._horovod.Average, name="gradient." + name.replace("/", ".")
            )
            for name, value in gradients.items()
        }

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        import tensorflow.compat.v2 as tf

        said = tf.constant([value], tf.float64)
        found = self._horovod.allreduce(said, op=self._horovod.Max, name="bakeoff.agree")
        return float(found[0])

    def collective(self, operation: str) -> Callable[[Any], Any]:
        """Exchange messages through Horovod, which has no pairs of ranks."""
        horovod, name = self._horovod, "bakeoff.message"
        found: Dict[str, Callable[[Any], Any]] = {
            "all-reduce": lambda value: horovod.allreduce(value, op=horovod.Sum, name=name),
            "all-gather": lambda value: horovod.allgather(value, name=name),
            "broadcast": lambda value: horovod.broadcast(value, 0, name=name),
        }
        if operation not in found:
            raise Unsupported("Horovod exchanges between all ranks, never between two")
        return found[operation]

    def facts(self) -> Mapping[str, Any]:
        """Name what carried the gradients."""
        return {**meeting.facts(self._horovod), "sync_batch_norm": False}

    def close(self) -> None:
        """Leave the other ranks."""
        self._horovod.shutdown()
        self._meeting.close()
