"""Exchange messages in torch: through a process group, or through Horovod.

All-reduce adds float32, as gradients are; the other operations move bytes.
"""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

import torch
from torch import distributed

from harness.worker.contracts import Unsupported

Agree = Callable[[float], float]


class Exchange:
    """Messages through torch.distributed."""

    def __init__(self, operation: str, message: int, device: Any, agree: Agree) -> None:
        self.agree = agree
        self._device = device
        self._size = distributed.get_world_size()
        self._parts = self._size if operation == "all-gather" else 1
        dtype, each = (torch.float32, 4) if operation == "all-reduce" else (torch.uint8, 1)
        made = {"dtype": dtype, "device": device}
        self._sent = torch.zeros(message // each // self._parts, **made)
        self._arrived = self._sent
        if operation in ("all-gather", "point-to-point"):
            self._arrived = torch.zeros(message, **made)
        self.step: Callable[[], Any] = getattr(self, "_" + operation.replace("-", "_"))

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value."""
        self._sent.fill_(value)

    def sync(self) -> None:
        """Wait for the device; between CPUs a call returns when it is done."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived."""
        parts = self._arrived.view(self._parts, -1)
        return [(float(part.min()), float(part.max())) for part in parts]

    def _all_reduce(self) -> None:
        distributed.all_reduce(self._sent)

    def _all_gather(self) -> None:
        distributed.all_gather_into_tensor(self._arrived, self._sent)

    def _broadcast(self) -> None:
        distributed.broadcast(self._sent, 0)

    def _point_to_point(self) -> None:
        rank = distributed.get_rank()
        sending = distributed.P2POp(distributed.isend, self._sent, (rank + 1) % self._size)
        taking = distributed.P2POp(distributed.irecv, self._arrived, (rank - 1) % self._size)
        for work in distributed.batch_isend_irecv([sending, taking]):
            work.wait()


class HorovodExchange:
    """Messages through Horovod, which has no pairs of ranks."""

    def __init__(self, operation: str, message: int, horovod: Any, agree: Agree) -> None:
        if operation == "point-to-point":
            raise Unsupported("Horovod exchanges between all ranks, never between two")
        self.agree = agree
        self._horovod = horovod
        self._parts = horovod.size() if operation == "all-gather" else 1
        dtype, each = (torch.float32, 4) if operation == "all-reduce" else (torch.uint8, 1)
        self._sent = torch.zeros(message // each // self._parts, dtype=dtype)
        self._arrived = self._sent
        self.step: Callable[[], Any] = getattr(self, "_" + operation.replace("-", "_"))

    def fill(self, value: float) -> None:
        """Let this rank's message hold a value."""
        self._sent.fill_(value)

    def sync(self) -> None:
        """Return at once: a call returns when it is done."""

    def received(self) -> List[Tuple[float, float]]:
        """Give the extremes of what arrived."""
        parts = self._arrived.view(self._parts, -1)
        return [(float(part.min()), float(part.max())) for part in parts]

    def _all_reduce(self) -> None:
        self._horovod.allreduce_(self._sent, op=self._horovod.Sum, name="bakeoff.message")

    def _all_gather(self) -> None:
        self._arrived = self._horovod.allgather(self._sent, name="bakeoff.message")

    def _broadcast(self) -> None:
        self._horovod.broadcast_(self._sent, 0, name="bakeoff.message")
