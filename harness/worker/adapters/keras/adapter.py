"""Open Keras on TensorFlow for a job: a framework of its own beside plain TensorFlow."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping

from harness.worker.adapters.tensorflow import settings
from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.place import Place

PROBED = settings.PROBED
POLICIES = {"bf16": "mixed_bfloat16", "fp16": "mixed_float16"}


def open(job: Job, place: Place) -> KerasAdapter:  # noqa: A001 - the contract's name
    """Import Keras with TensorFlow below it and set both up as the job's factors say."""
    if job.strategy != "none" or place.size > 1:
        raise Unsupported("keras adapter: no strategy '{}'".format(job.strategy))
    os.environ["KERAS_BACKEND"] = "tensorflow"
    settings.before_import(job.factors)
    settings.after_import(job.factors, job.seed)
    return KerasAdapter(job)


class KerasAdapter:
    """Keras in this process."""

    def __init__(self, job: Job) -> None:
        import keras

        if job.factors.get("layout") == "channels-first":
            raise Unsupported("the keras adapter is channels-last, Keras' own default")
        keras.utils.set_random_seed(job.seed)
        keras.config.set_dtype_policy(POLICIES.get(str(job.factors.get("precision")), "float32"))
        self._job = job
        self._trainer: Any = None
        self._mark: Mark = unmarked

    def versions(self) -> Mapping[str, str]:
        """Name Keras, TensorFlow and the libraries that decide their speed."""
        import keras

        return {"keras": keras.__version__, **settings.versions()}

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Build the model, trace its step and draw its batch."""
        import keras
        import tensorflow as tf

        from harness.worker.adapters.keras.lowering import KerasLowering
        from harness.worker.adapters.keras.training import KerasTrainer
        from harness.worker.adapters.tensorflow import failures
        from harness.worker.adapters.tensorflow.activity import TrainingActivity, draw

        try:
            lowering = KerasLowering(workload.network, is_dropping=True, mark=self._mark)
            self._trainer = KerasTrainer(workload, lowering, feed.batch_per_step)
            dtype = tf.as_dtype(keras.config.dtype_policy().compute_dtype)
            compiled = bool(self._job.factors.get("compile"))
            if feed.files is not None:
                from harness.worker.adapters.tensorflow.feeding import fed

                how = {"compiled": compiled, "autotune": bool(options.get("autotune"))}
                return fed(self._trainer, feed, workload.unit, lowering.arrangement, dtype, **how)
            batch = draw(feed, lowering.arrangement, dtype)
            return TrainingActivity(
                self._trainer, batch, {workload.unit: feed.batch_per_rank}, compiled
            )
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def facts(self) -> Mapping[str, Any]:
        """Say what this process used."""
        import keras

        facts: Dict[str, Any] = settings.facts(self._job.factors)
        facts["dtype_policy"] = keras.config.dtype_policy().name
        return facts

    def examine(self, workload: Any, precision: str) -> Any:
        """Build a workload for the gate: every number in float64, or as it is timed."""
        import keras
        import tensorflow as tf

        from harness.worker.adapters.keras.training import KerasSubject
        from harness.worker.adapters.tensorflow.subject import TensorFlowSubject

        if precision == "float64":
            keras.config.set_floatx("float64")
            keras.config.set_dtype_policy("float64")
        policy = keras.config.dtype_policy()
        types = tf.as_dtype(policy.compute_dtype), tf.as_dtype(policy.variable_dtype)
        compiled = bool(self._job.factors.get("compile"))
        return TensorFlowSubject(KerasSubject(workload, *types), compiled)

    def probe(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a few steps under observation and say which kernels ran."""
        from harness.worker.adapters.tensorflow import probing

        activity = self.activity(workload, feed, options)
        return {**self.facts(), **probing.observe(activity)}

    def attribute(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Say which layer and pass took which share of a step."""
        from harness.worker.adapters.tensorflow.tracing import attribution
        from harness.worker.attribution.steps import NOT_ON_GPU

        if settings.has_gpu():
            raise Unsupported(NOT_ON_GPU)
        self._mark = attribution.marking(workload.network)
        return attribution.attribute(self.activity(workload, feed, options), workload.network)

    def close(self) -> None:
        """Drop the model; its memory goes with it."""
        self._trainer = None
