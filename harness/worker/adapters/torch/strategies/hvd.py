"""Horovod in torch: an optimiser that averages gradients as the backward makes them.

Running statistics stay each rank's own; the starting weights are rank 0's.
"""

from __future__ import annotations

from typing import Any, Mapping

import torch

from harness.worker import horovod as meeting
from harness.worker.adapters.torch.settings import Settings
from harness.worker.adapters.torch.strategies.strategy import Strategy
from harness.worker.contracts import Unsupported
from harness.worker.job import Job
from harness.worker.place import Place


class Horovod(Strategy):
    """A rank of Horovod's."""

    def __init__(self, horovod: Any, meeting_place: meeting.Meeting, communicates: bool) -> None:
        self._communicates = communicates
        self._horovod = horovod
        self._meeting = meeting_place

    def wrap_optimiser(self, optimiser: Any, network: Any) -> Any:
        """Average gradients before each update, from the same weights everywhere."""
        self._horovod.broadcast_parameters(network.state_dict(), root_rank=0)
        if not self._communicates:
            return optimiser
        return self._horovod.DistributedOptimizer(
            optimiser, named_parameters=network.named_parameters()
        )

    def require_gradients_before_update(self) -> None:
        """Refuse: here the update exchanges them."""
        if self._communicates:
            raise Unsupported("Horovod exchanges gradients after they would be clipped")

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        said = torch.tensor([value], dtype=torch.float64)
        found = self._horovod.allreduce(said, op=self._horovod.Max, name="bakeoff.agree")
        return float(found)

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages through Horovod."""
        from harness.worker.adapters.torch import exchange

        return exchange.HorovodExchange(operation, message, self._horovod, self.agree)

    def facts(self) -> Mapping[str, Any]:
        """Name the library that carried the gradients."""
        return {**meeting.facts(self._horovod), "sync_batch_norm": False}

    def close(self) -> None:
        """Leave the other ranks."""
        self._horovod.shutdown()
        self._meeting.close()


def join(job: Job, place: Place, settings: Settings) -> Horovod:
    """Start Horovod in this rank."""
    if settings.precision == "fp16":
        raise Unsupported("the loss scaling of fp16 and Horovod's optimiser do not fit together")
    meeting_place = meeting.prepare(job.factors, place)
    try:
        import horovod.torch as horovod
    except ImportError as error:
        raise Unsupported("no Horovod here: {}; {}".format(error, meeting.CURE)) from error
    meeting_place.open(horovod)
    return Horovod(horovod, meeting_place, job.factors.get("communicate") is not False)
