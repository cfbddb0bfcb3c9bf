"""Examine JAX's ranks together: one compiled step over the shares of a batch."""

from __future__ import annotations

from typing import Any, Mapping

import jax

from harness.worker.adapters.jax import training
from harness.worker.adapters.jax.subject import JaxSubject
from harness.worker.gate.rank_equality import share
from harness.worker.gate.tensors import Tensor
from harness.worker.network.workload import Training
from harness.worker.place import Place


class TogetherSubject(JaxSubject):
    """One rank of several."""

    def __init__(self, workload: Training, adapter: Any, place: Place) -> None:
        super().__init__(workload, adapter._settings, "float64")
        self._place = place
        self._strategy = adapter._strategy

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic, on all ranks."""
        super().load(state)
        self._state = self._strategy.replicate(self._state)

    def reset(self) -> None:
        """Forget the moments and the step count."""
        # they begin at zero, and are replicated with the rest

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one training step, as the strategy compiles it."""
        whole = self._batch(given, target)
        mine = share(given.shape[0], self._place.rank, self._place.size)
        batch = self._strategy.share(jax.tree.map(lambda one: one[mine], whole))
        size = given.shape[0]
        if size not in self._steps:
            step = training.make_step(
                self._net, self._workload, self._precision, size, False, self._accumulate
            )
            self._steps[size] = self._strategy.jit(step)
        self._state, _ = self._steps[size](self._state, batch)


def subject(adapter: Any, workload: Training, place: Place) -> TogetherSubject:
    """Lower a workload for this rank."""
    return TogetherSubject(workload, adapter, place)
