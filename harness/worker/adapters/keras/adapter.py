"""Open Keras for a job, on the backend that the environment is named after.

One lowering for all three; each backend has its own way of taking a step (``backends.py``), since
Keras' guides write the custom step once for each.
"""

from __future__ import annotations

from typing import Any, Mapping

from harness.worker.adapters.keras import backends
from harness.worker.adapters.tensorflow import settings
from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.place import Place

PROBED = settings.PROBED
POLICIES = {"bf16": "mixed_bfloat16", "fp16": "mixed_float16"}


def open(job: Job, place: Place) -> KerasAdapter:  # noqa: A001 - the contract's name
    """Import Keras with its backend below it and set both up as the job's factors say."""
    if job.strategy != "none" or place.size > 1:
        raise Unsupported("keras adapter: no strategy '{}'".format(job.strategy))
    return KerasAdapter(job, backends.chosen(job, place))


class KerasAdapter:
    """Keras in this process."""

    def __init__(self, job: Job, backend: Any) -> None:
        import keras

        if job.factors.get("layout") == "channels-first":
            raise Unsupported("the keras adapter is channels-last, Keras' own default")
        # Keras' own defaults: a user's keras.json would change what is computed, and say nothing.
        keras.config.set_floatx("float32")
        keras.config.set_epsilon(1e-7)
        keras.config.set_image_data_format("channels_last")
        keras.utils.set_random_seed(job.seed)
        keras.config.set_dtype_policy(POLICIES.get(str(job.factors.get("precision")), "float32"))
        self._backend = backend
        self._mark: Mark = unmarked

    def versions(self) -> Mapping[str, str]:
        """Name Keras, what computes for it and the libraries that decide its speed."""
        import keras

        return {"keras": keras.__version__, **self._backend.versions()}

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Build the model and its step, and draw its batch."""
        from harness.worker.adapters.keras.lowering import KerasLowering

        lowering = KerasLowering(workload.network, is_dropping=True, mark=self._mark)
        return self._backend.activity(workload, lowering, feed, options)

    def facts(self) -> Mapping[str, Any]:
        """Say what this process used."""
        import keras

        policy = keras.config.dtype_policy().name
        return {**self._backend.facts(), "dtype_policy": policy, "backend": keras.backend.backend()}

    def examine(self, workload: Any, precision: str) -> Any:
        """Build a workload for the gate: every number in float64, or as it is timed."""
        import keras

        if precision == "float64":
            keras.config.set_floatx("float64")
            keras.config.set_dtype_policy("float64")
            backends.keep_64_bits()
        return self._backend.subject(workload)

    def probe(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a few steps under observation and say which kernels ran."""
        seen = self._backend.observe(self.activity(workload, feed, options))
        return {**self.facts(), **seen}

    def attribute(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Say which layer and pass took which share of a step."""
        self._mark, attribute = self._backend.attribution(workload.network)
        return attribute(self.activity(workload, feed, options), workload.network)

    def close(self) -> None:
        """Drop the model; its memory goes with it."""
        self._backend.close()
