"""Examine TensorFlow's ranks together: the strategy's step on a share of the batch."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Tuple

from harness.worker.adapters.tensorflow import settings
from harness.worker.adapters.tensorflow.lowering.network import Lowering
from harness.worker.adapters.tensorflow.strategies.servers import ParameterServers
from harness.worker.adapters.tensorflow.subject import TensorFlowSubject, made
from harness.worker.adapters.tensorflow.training import LoweredSubject, Trainer
from harness.worker.gate.rank_equality import share
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.workload import Training
from harness.worker.place import Place


class _Lowered(LoweredSubject):
    """A lowering whose trainer takes part in a strategy."""

    def __init__(self, workload: Training, lowering: Lowering, strategy: Any) -> None:
        super().__init__(workload, lowering)
        self._strategy = strategy

    def trainer(self, initial: Mapping[str, Any], batch_per_step: int) -> Trainer:
        """Start an optimiser and variables."""
        return Trainer(self._workload, self.lowering, initial, batch_per_step, self._strategy)


class TogetherSubject(TensorFlowSubject):
    """One rank of several."""

    def __init__(self, workload: Training, adapter: Any, place: Place) -> None:
        lowering = Lowering(workload.network, settings.style({}, "float64"))
        super().__init__(_Lowered(workload, lowering, adapter._strategy), False)
        self._strategy = adapter._strategy
        self._place = place
        self.replicas: int = self._strategy.replicas

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step, as the strategy calls it."""
        trainer = self._start(given)
        if self._update is None:
            batch = self._strategy.spread(self._batch(given, target))
            step = self._strategy.run(lambda: trainer.step(*batch, is_dropping=False))
            self._update = settings.jitted(step, False)
        self._update()

    def replica(self, number: int) -> Iterator[Made]:
        """Give what one device of this rank holds."""
        for name, variable in self._trainer.values.items():
            held = self._strategy.on(number, variable)
            yield made(name, self._parameter(name, held))

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[Any, Any]:
        inputs, wanted = super()._batch(given, target)
        mine = share(given.shape[0], self._place.rank, self._place.size)
        return inputs[mine], wanted[mine]


def subject(adapter: Any, workload: Training, place: Place) -> TensorFlowSubject:
    """Lower a workload for this rank."""
    if isinstance(adapter._strategy, ParameterServers):
        from harness.worker.adapters.tensorflow.strategies.serving import ServedSubject

        lowering = Lowering(workload.network, settings.style({}, "float64"))
        return ServedSubject(LoweredSubject(workload, lowering), workload, adapter._strategy)
    return TogetherSubject(workload, adapter, place)
