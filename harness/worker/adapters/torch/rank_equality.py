"""Examine torch's ranks together: the same step on a share of the batch."""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import nn

from harness.worker.adapters.torch.subject import TorchSubject
from harness.worker.adapters.torch.training import Trainer
from harness.worker.gate.rank_equality import share
from harness.worker.gate.tensors import Tensor
from harness.worker.network.workload import Training
from harness.worker.place import Place


class TogetherSubject(TorchSubject):
    """One rank of several."""

    def __init__(self, workload: Training, adapter: Any, place: Place) -> None:
        super().__init__(workload, adapter.settings, "float64")
        self._place = place
        self._trainer = Trainer(workload, self._settings, 0, adapter._strategy)
        for module in self._trainer.network.modules():
            if isinstance(module, nn.Dropout):
                module.eval()

    def _batch(self, given: Tensor, target: Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        inputs, wanted = super()._batch(given, target)
        mine = share(given.shape[0], self._place.rank, self._place.size)
        return self._trainer.place(inputs[mine]), wanted[mine]


def subject(adapter: Any, workload: Training, place: Place) -> TogetherSubject:
    """Lower a workload for this rank."""
    return TogetherSubject(workload, adapter, place)
