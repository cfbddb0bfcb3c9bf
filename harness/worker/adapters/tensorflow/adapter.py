"""Open TensorFlow for a job: its versions, its activity, its facts and further doors."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness.worker.adapters.tensorflow import settings
from harness.worker.adapters.tensorflow.strategies import joining
from harness.worker.adapters.tensorflow.strategies.servers import ParameterServers
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.attribution.marks import Mark, unmarked
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.job import Job, micro_batches
from harness.worker.place import Place

PROBED = settings.PROBED


def open(job: Job, place: Place) -> TensorFlowAdapter:  # noqa: A001 - the contract's name
    """Import TensorFlow and set it up as the job's factors say."""
    settings.before_import(job.factors)
    strategy = settings.after_import(
        job.factors, job.seed + place.rank, lambda: joining.join(job, place)
    )
    return TensorFlowAdapter(job, place, strategy)


class TensorFlowAdapter:
    """TensorFlow in this process."""

    def __init__(self, job: Job, place: Place, strategy: Strategy) -> None:
        self._job = job
        self._place = place
        self._strategy = strategy
        self._trainer: Any = None
        self._mark: Mark = unmarked

    def versions(self) -> Mapping[str, str]:
        """Name TensorFlow and the libraries that decide its speed."""
        return settings.versions()

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Lower the workload, trace its step and draw its batch."""
        import tensorflow.compat.v2 as tf

        from harness.worker.adapters.tensorflow import failures
        from harness.worker.adapters.tensorflow.activity import TrainingActivity, draw
        from harness.worker.adapters.tensorflow.lowering.network import Lowering
        from harness.worker.adapters.tensorflow.training import Trainer

        try:
            style = settings.style(self._job.factors)
            lowering = Lowering(workload.network, style, self._mark)
            if isinstance(self._strategy, ParameterServers):
                from harness.worker.adapters.tensorflow.strategies.serving import ServedActivity

                seed = self._job.seed
                return ServedActivity(self._strategy, workload, lowering, feed, seed)
            initial = lowering.initial(self._job.seed)
            step = feed.batch_per_step, self._strategy, micro_batches(self._job.factors)
            self._trainer = Trainer(workload, lowering, initial, *step)
            compiled = bool(self._job.factors.get("compile"))
            if feed.files is not None:
                from harness.worker.adapters.tensorflow.feeding import fed

                how = {"compiled": compiled, "autotune": bool(options.get("autotune"))}
                arrangement, dtype = lowering.arrangement, lowering.style.dtype
                return fed(self._trainer, feed, workload.unit, arrangement, dtype, **how)
            batch = draw(feed, lowering.arrangement, lowering.style.dtype)
            units = {workload.unit: feed.work_per_rank}
            return TrainingActivity(self._trainer, batch, units, compiled)
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages as the strategy exchanges gradients."""
        if isinstance(self._strategy, ParameterServers):
            from harness.worker.adapters.tensorflow.strategies.ps_messages import Pull

            return Pull(operation, message, self._strategy)
        from harness.worker.adapters.tensorflow.exchange import Exchange

        return Exchange(operation, message, self._place.size, self._strategy)

    def loaders(self, options: Mapping[str, Any]) -> Any:
        """Read files with tf.data where it is asked for."""
        from harness.worker.adapters.tensorflow.loading import own

        return own(autotune=bool(options.get("autotune")))

    def facts(self) -> Mapping[str, Any]:
        """Say what this process used."""
        facts: Dict[str, Any] = settings.facts(self._job.factors)
        if self._trainer is not None and self._trainer.loss_scale is not None:
            facts["loss_scale"] = float(self._trainer.loss_scale.value)
        return {**facts, **self._strategy.facts()}

    def examine(self, workload: Any, precision: str) -> Any:
        """Lower a workload for the gate: every number in float64, or as it is timed."""
        from harness.worker.adapters.tensorflow.lowering.network import Lowering
        from harness.worker.adapters.tensorflow.subject import TensorFlowSubject
        from harness.worker.adapters.tensorflow.training import LoweredSubject

        lowering = Lowering(workload.network, settings.style(self._job.factors, precision))
        compiled = bool(self._job.factors.get("compile"))
        subject = LoweredSubject(workload, lowering, micro_batches(self._job.factors))
        return TensorFlowSubject(subject, compiled)

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
        with attribution.marked_gradients(workload.network):
            activity = self.activity(workload, feed, options)
        return attribution.attribute(activity, workload.network)

    def close(self) -> None:
        """Drop the network, with its memory, and leave the other ranks."""
        self._trainer = None
        self._strategy.close()
