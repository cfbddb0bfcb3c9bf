"""Torch's own data parallelism: DistributedDataParallel over a process group.

Gradients are averaged in buckets while the backward pass goes on; the running statistics are those
of rank 0, sent before each forward pass, which is torch's default.
"""

from __future__ import annotations

import contextlib
import datetime
from typing import Any, ContextManager, Mapping

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from harness.worker.adapters.torch.settings import Settings
from harness.worker.adapters.torch.strategies.strategy import Strategy
from harness.worker.contracts import Unsupported
from harness.worker.job import Job
from harness.worker.place import Place

# The agents end a trial whose rank died at once, and the study's own timeout ends one that hangs.
PATIENCE = datetime.timedelta(hours=24)


class DataParallel(Strategy):
    """A rank of a process group."""

    def __init__(self, settings: Settings, bucket_mb: Any, communicates: bool) -> None:
        self._communicates = communicates
        self._settings = settings
        self._bucket = {} if bucket_mb is None else {"bucket_cap_mb": bucket_mb}
        self._said = torch.zeros(1, dtype=torch.float64, device=settings.device)

    def wrap(self, forward: Any) -> Any:
        """Average gradients as they are made; buckets and gradients share their memory."""
        if not self._communicates:
            return forward
        devices = [self._settings.device] if self._settings.is_gpu else None
        return DistributedDataParallel(
            forward, device_ids=devices, gradient_as_bucket_view=True, **self._bucket
        )

    def exchanging(self, model: Any, *, is_last: bool) -> ContextManager[Any]:
        """Add gradients up in this rank until the last micro-batch of a step."""
        if is_last or not self._communicates:
            return contextlib.nullcontext()
        context: ContextManager[Any] = model.no_sync()
        return context

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        self._said.fill_(value)
        distributed.all_reduce(self._said, distributed.ReduceOp.MAX)
        return float(self._said)

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages through the process group."""
        from harness.worker.adapters.torch import exchange

        return exchange.Exchange(operation, message, self._settings.device, self.agree)

    def facts(self) -> Mapping[str, Any]:
        """Name the library that carried the gradients."""
        return {"collectives": str(distributed.get_backend()), "sync_batch_norm": False}

    def close(self) -> None:
        """Leave the group."""
        distributed.destroy_process_group()


def join(job: Job, place: Place, settings: Settings) -> DataParallel:
    """Meet the other ranks at MASTER_ADDR:MASTER_PORT."""
    backend = job.options.get("backend") or "default"
    if backend == "default":
        backend = "nccl" if settings.is_gpu else "gloo"
    if not distributed.is_backend_available(backend):
        raise Unsupported("this torch is built without {}".format(backend))
    if backend == "nccl" and not settings.is_gpu:
        raise Unsupported("NCCL moves data of GPUs only; on a CPU use gloo or mpi")
    distributed.init_process_group(
        backend, rank=place.rank, world_size=place.size, timeout=PATIENCE
    )
    communicates = job.factors.get("communicate") is not False
    return DataParallel(settings, job.factors.get("bucket_mb"), communicates)
