"""Let a rank of TensorFlow join the others, as the job's strategy says."""

from __future__ import annotations

from harness.worker import horovod as meeting
from harness.worker.adapters.tensorflow.strategies.mirrored import Mirrored
from harness.worker.adapters.tensorflow.strategies.servers import ParameterServers
from harness.worker.adapters.tensorflow.strategies.strategies import Horovod, MultiWorker, Strategy
from harness.worker.contracts import Unsupported
from harness.worker.job import Job
from harness.worker.place import Place


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
    if job.strategy == "parameter-server":
        return ParameterServers(place, is_gpu)
    if job.strategy == "mirrored":
        return _mirrored(job, place, is_gpu)
    raise Unsupported("tensorflow adapter: no strategy '{}'".format(job.strategy))


def _mirrored(job: Job, place: Place, is_gpu: bool) -> Strategy:
    import tensorflow.compat.v2 as tf

    if tf.version.VERSION.startswith("1."):
        raise Unsupported("mirrored needs TensorFlow 2.4 or later; 1.15 can use horovod")
    if place.size > 1:
        raise Unsupported("mirrored has one rank, with several devices; multiworker has several")
    return Mirrored(job.scale.devices_per_rank, is_gpu, job.factors.get("bucket_mb"))


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
