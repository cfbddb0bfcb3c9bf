"""Time what exchanging gradients costs a step from inside: by hooks, in the probe alone.

The hooks tell when a bucket of gradients begins to be exchanged and when waiting for them begins.
When the last bucket begins, the backward pass has no gradient left to compute: from then until all
are averaged nothing hides, nor does sending running statistics before a forward pass. It is kept
out of timed trials, where such hooks would cost time, and out of GPUs, where they would time
launches.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Dict, List

from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from harness.worker.adapters.torch.activity import TrainingActivity

STEPS = 5


class _Step:
    """What one step's hooks said."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.buffers_s = 0.0
        self.last_began = 0.0
        self.last_done = 0.0

    def began(self, size: int) -> None:
        self.messages += 1
        self.bytes += size
        self.last_began = time.perf_counter()

    def done(self) -> None:
        self.last_done = max(self.last_done, time.perf_counter())

    @property
    def exposed_s(self) -> float:
        return self.buffers_s + max(0.0, self.last_done - self.last_began)


def watched(activity: TrainingActivity) -> Dict[str, Any]:
    """Step under hooks; nothing where no gradients are exchanged, or none can be hooked."""
    trainer = activity.trainer
    model = trainer.forward
    here = [_Step()]
    if trainer.settings.is_gpu:
        return {}
    if isinstance(model, DistributedDataParallel):
        # It refuses annotations that are text; a lambda has none.
        model.register_comm_hook(here, lambda state, bucket: _averaging(state, bucket))
        _hook_buffers(model, here)
    elif hasattr(trainer.optimiser, "synchronize"):
        _hook_horovod(trainer.optimiser, here)
    else:
        return {}
    told: List[_Step] = []
    seconds: List[float] = []
    for _ in range(STEPS):
        here[0] = _Step()
        start = time.perf_counter()
        activity.step()
        seconds.append(time.perf_counter() - start)
        told.append(here[0])
    found: Dict[str, Any] = {
        "steps": STEPS,
        "step_s": statistics.median(seconds),
        "exposed_s": statistics.median(one.exposed_s for one in told),
        "messages": told[-1].messages,
        "bytes": told[-1].bytes,
    }
    return {"exchange_hooks": found}


def _averaging(here: List[_Step], bucket: Any) -> Any:
    """Average a bucket as DistributedDataParallel itself does, and say when."""
    step, gradients = here[0], bucket.buffer()
    step.began(gradients.numel() * gradients.element_size())
    gradients.div_(distributed.get_world_size())
    exchanged = distributed.all_reduce(gradients, async_op=True).get_future()

    def done(future: Any) -> Any:
        step.done()
        return future.value()[0]

    return exchanged.then(done)


def _hook_buffers(model: Any, here: List[_Step]) -> None:
    """Time the sending of rank 0's running statistics; torch has no hook of its own for it."""
    send = model._sync_buffers

    def timed() -> None:
        start = time.perf_counter()
        send()
        here[0].buffers_s += time.perf_counter() - start

    model._sync_buffers = timed


def _hook_horovod(optimiser: Any, here: List[_Step]) -> None:
    """Time Horovod's waiting for all gradients, which begins when the backward pass has ended."""
    synchronize = optimiser.synchronize

    def timed() -> None:
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    here[0].began(parameter.grad.numel() * parameter.grad.element_size())
        synchronize()
        here[0].done()

    optimiser.synchronize = timed
