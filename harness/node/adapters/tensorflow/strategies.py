"""This file is how ranks train together in TensorFlow, each the way a custom loop does it.

``multiworker`` sums gradients over collectives of TensorFlow's own (rings over gRPC between CPUs,
NCCL between GPUs); ``horovod`` through Horovod's. Every rank starts from the same seeded weights
and takes the same averaged update, so all stay equal. Batch norm normalises each rank's own batch,
and running statistics stay each rank's own.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from harness.node import horovod as meeting
from harness.node.contracts import Unsupported
from harness.node.job import Job
from harness.node.place import Place


class Strategy:
    """A rank that trains alone."""

    communicates = True
    """Whether ranks exchange gradients; else each goes its own way, to see what that costs."""

    def averaged(self, gradients: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the mean of all ranks' gradients; belongs inside a traced function."""
        return gradients

    def run(self, step: Any) -> Any:
        """Give the step as it has to be called in this strategy."""
        return step

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


class MultiWorker(Strategy):
    """A worker of tf.distribute.MultiWorkerMirroredStrategy."""

    def __init__(self, place: Place, is_gpu: bool, bucket_mb: Any) -> None:
        import tensorflow.compat.v2 as tf

        kinds = tf.distribute.experimental.CommunicationImplementation
        self._collectives = "nccl" if is_gpu else "ring over grpc"
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

    def averaged(self, gradients: Mapping[str, Any]) -> Dict[str, Any]:
        """Sum over all replicas at once, so that TensorFlow can pack, and divide."""
        if not self.communicates:
            return dict(gradients)
        mean = self._tf.distribute.ReduceOp.MEAN
        context = self._tf.distribute.get_replica_context()
        made = context.all_reduce(mean, list(gradients.values()), self._options)
        return dict(zip(gradients, made))

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
        }
        if operation not in found:
            raise Unsupported(
                "a TensorFlow replica can ask for no {}; Horovod has broadcasts".format(operation)
            )
        return found[operation]

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


def join(job: Job, place: Place) -> Strategy:
    """Meet the other ranks, before TensorFlow starts its devices."""
    is_gpu = job.factors.get("device") == "gpu"
    if place.size > 1 and is_gpu:
        _take_own_gpu(place)
    joined = _joined(job, place, is_gpu)
    joined.communicates = job.factors.get("communicate") is not False
    return joined


def _joined(job: Job, place: Place, is_gpu: bool) -> Strategy:
    if job.strategy == "none":
        return Strategy()
    if job.strategy == "multiworker":
        import tensorflow.compat.v2 as tf

        if tf.version.VERSION.startswith("1."):
            raise Unsupported("multiworker needs TensorFlow 2.4 or later; 1.15 can use horovod")
        return MultiWorker(place, is_gpu, job.factors.get("bucket_mb"))
    if job.strategy == "horovod":
        return _horovod(job, place)
    raise Unsupported("tensorflow adapter: no strategy '{}'".format(job.strategy))


def _horovod(job: Job, place: Place) -> Horovod:
    there = meeting.prepare(job.factors, place)
    try:
        import horovod.tensorflow as horovod
    except ImportError as error:
        raise Unsupported("no Horovod here: {}; {}".format(error, meeting.CURE)) from error
    there.open(horovod)
    return Horovod(horovod, there)


def _take_own_gpu(place: Place) -> None:
    """Leave TensorFlow the GPU of this rank alone."""
    import tensorflow.compat.v2 as tf

    seen = tf.config.experimental.list_physical_devices("GPU")
    if place.local_rank >= len(seen):
        raise Unsupported(
            "local rank {} has no GPU of its own: TensorFlow sees {}".format(
                place.local_rank, len(seen)
            )
        )
    tf.config.experimental.set_visible_devices([seen[place.local_rank]], "GPU")
