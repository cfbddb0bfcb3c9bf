"""Set up what computes for Keras: TensorFlow, JAX or torch, each by the switches of its adapter."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Callable, Mapping, Tuple, Union

from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.place import Place

Attribution = Tuple[Any, Callable[..., Any]]


class OnTensorFlow:
    """Keras on TensorFlow, whose activity and examination are that adapter's."""

    def __init__(self, job: Job, _place: Place) -> None:
        from harness.worker.adapters.tensorflow import settings

        os.environ["KERAS_BACKEND"] = "tensorflow"
        settings.before_import(job.factors)
        settings.after_import(job.factors, job.seed)
        self._settings: Any = settings
        self._factors = job.factors
        self._trainer: Any = None

    def versions(self) -> Mapping[str, str]:
        """Name TensorFlow and its libraries."""
        versions: Mapping[str, str] = self._settings.versions()
        return versions

    def activity(self, workload: Any, lowering: Any, feed: Feed, options: Any) -> Any:
        """Trace the step and draw its batch, or read it."""
        import keras
        import tensorflow as tf

        from harness.worker.adapters.keras.on_tensorflow import TensorFlowTrainer
        from harness.worker.adapters.tensorflow import failures
        from harness.worker.adapters.tensorflow.activity import TrainingActivity, draw

        try:
            self._trainer = TensorFlowTrainer(workload, lowering, feed.batch_per_step)
            dtype = tf.as_dtype(keras.config.dtype_policy().compute_dtype)
            compiled = bool(self._factors.get("compile"))
            if feed.files is not None:
                from harness.worker.adapters.tensorflow.feeding import fed

                how = {"compiled": compiled, "autotune": bool(options.get("autotune"))}
                return fed(self._trainer, feed, workload.unit, lowering.arrangement, dtype, **how)
            batch = draw(feed, lowering.arrangement, dtype)
            units = {workload.unit: feed.work_per_rank}
            return TrainingActivity(self._trainer, batch, units, compiled)
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def subject(self, workload: Any) -> Any:
        """Open a workload to the gate."""
        import keras
        import tensorflow as tf

        from harness.worker.adapters.keras.on_tensorflow import KerasSubject
        from harness.worker.adapters.tensorflow.subject import TensorFlowSubject

        policy = keras.config.dtype_policy()
        types = tf.as_dtype(policy.compute_dtype), tf.as_dtype(policy.variable_dtype)
        compiled = bool(self._factors.get("compile"))
        return TensorFlowSubject(KerasSubject(workload, *types), compiled)

    def observe(self, activity: Any) -> Mapping[str, Any]:
        """Say which kernels a step ran."""
        from harness.worker.adapters.tensorflow import probing

        return probing.observe(activity)

    def attribution(self, network: Any) -> Attribution:
        """Give the marks of layers, and what reads them back."""
        from harness.worker.adapters.tensorflow.tracing import attribution
        from harness.worker.attribution.steps import NOT_ON_GPU

        if self._settings.has_gpu():
            raise Unsupported(NOT_ON_GPU)
        return attribution.marking(network), attribution.attribute

    def facts(self) -> Mapping[str, Any]:
        """Say what TensorFlow used."""
        facts: Mapping[str, Any] = self._settings.facts(self._factors)
        return facts

    def close(self) -> None:
        """Drop the model."""
        self._trainer = None


class Stepping:
    """Keras on JAX or torch: an activity and an examination over a stepper of that backend's.

    ``below`` is that framework's own adapter, which knows its switches, versions and facts.
    """

    def __init__(self, below: Any, start: Callable[[Any, Any, int], Any]) -> None:
        self._below = below
        self._start = start

    def versions(self) -> Mapping[str, str]:
        """Name the framework below and its libraries."""
        versions: Mapping[str, str] = self._below.versions()
        return versions

    def activity(self, workload: Any, lowering: Any, feed: Feed, _options: Any) -> Any:
        """Make the step and draw its batch."""
        from harness.worker.adapters.keras.activity import KerasActivity

        if feed.files is not None:
            raise Unsupported("Keras reads files on TensorFlow only")
        stepper = self._start(workload, lowering, feed.batch_per_step)
        return KerasActivity(stepper, feed, workload.unit)

    def subject(self, workload: Any) -> Any:
        """Open a workload to the gate."""
        from harness.worker.adapters.keras.subject import KerasSubject

        return KerasSubject(workload, partial(self._start, workload))

    def observe(self, activity: Any) -> Mapping[str, Any]:
        """Say what a step is made of."""
        found: Mapping[str, Any] = activity.stepper.observe(activity)
        return found

    def attribution(self, _network: Any) -> Attribution:
        """Refuse: marks of layers are read back on TensorFlow alone."""
        raise Unsupported("a step of Keras is divided among layers on TensorFlow only")

    def facts(self) -> Mapping[str, Any]:
        """Say what the framework below used."""
        facts: Mapping[str, Any] = self._below.facts()
        return facts

    def close(self) -> None:
        """Give back the device's memory."""
        self._below.close()


def keep_64_bits() -> None:
    """Let what is float64 stay so in this process, which Keras does on TensorFlow alone.

    On JAX and torch its rules of promotion make float32 of it, as JAX does by default: no layer
    could be examined in float64. The operations are the same; no timed process comes here.
    """
    from keras.src.backend.common import dtypes

    dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"


def _on_jax(job: Job, place: Place) -> Stepping:
    from harness.worker.adapters.jax import adapter

    if not job.factors.get("compile"):
        raise Unsupported("Keras' step on JAX is compiled: compile = true")
    os.environ["KERAS_BACKEND"] = "jax"
    below = adapter.open(job, place)

    def start(workload: Any, lowering: Any, batch_per_step: int) -> Any:
        from harness.worker.adapters.keras.on_jax import JaxStepper
        from harness.worker.adapters.keras.training import Trainer

        return JaxStepper(Trainer(workload, lowering, batch_per_step))

    return Stepping(below, start)


def _on_torch(job: Job, place: Place) -> Stepping:
    from harness.worker.adapters.torch import adapter

    if job.factors.get("compile"):
        raise Unsupported("Keras' step on torch is not compiled: compile = false")
    os.environ["KERAS_BACKEND"] = "torch"
    below = adapter.TorchAdapter(job, place)
    os.environ["KERAS_TORCH_DEVICE"] = str(below.settings.device)

    def start(workload: Any, lowering: Any, batch_per_step: int) -> Any:
        from harness.worker.adapters.keras.on_torch import ParallelTextbookAdam, TorchStepper
        from harness.worker.adapters.keras.training import Trainer

        trainer = Trainer(workload, lowering, batch_per_step, ParallelTextbookAdam)
        return TorchStepper(trainer, below.settings)

    return Stepping(below, start)


_OTHERS: Mapping[str, Callable[[Job, Place], Stepping]] = {"jax": _on_jax, "torch": _on_torch}


def chosen(job: Job, place: Place) -> Union[OnTensorFlow, Stepping]:
    """Set up the backend that the environment is named after; TensorFlow where it names none."""
    variant = job.environment.partition("[")[0].partition("@")[2]
    if variant not in _OTHERS:
        return OnTensorFlow(job, place)
    if job.factors.get("precision") == "fp16":
        raise Unsupported("Keras scales losses on TensorFlow only, as this adapter steps")
    return _OTHERS[variant](job, place)
