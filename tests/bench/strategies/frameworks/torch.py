"""Say what the comparison of strategies needs to know of torch."""

import math
from collections import Counter

from torch.profiler import ProfilerActivity, profile

SIZES = {"float": 4, "long int": 8, "double": 8}
EXPLAINED = (
    (
        r"plain gloo:broadcast 424$",
        "torch's batch norms count batches, and rank 0 sends its 53 counts",
    ),
)


def begin(_strategy):
    """Nothing is to be set before torch is asked."""


def joined(_adapter):
    """Share nothing: the script finds the group that this process is in."""
    return {}


def exchanges(strategy, make):
    """Count the exchanges of one step, by name and bytes."""
    step, _ = make()
    for _ in range(2):  # DistributedDataParallel deals out its buckets anew after the first
        step()
    return horovod(step) if strategy == "horovod" else gloo(step)


def gloo(step):
    """Ask torch's profiler what gloo was given."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    seen = Counter()
    for event in profiler.profiler.kineto_results.events():
        if event.name().startswith("gloo:"):
            given = zip(event.shapes(), event.dtypes(), strict=True)
            size = sum(math.prod(shape) * SIZES[dtype] for shape, dtype in given if dtype)
            seen[event.name(), size] += 1
    return seen


def horovod(step):
    """Watch what Horovod's optimiser begins, before Horovod fuses it."""
    from horovod.torch import optimizer

    seen = Counter()
    begin = optimizer.allreduce_async_

    def counted(tensor, *given, **named):
        seen["allreduce", tensor.numel() * tensor.element_size()] += 1
        return begin(tensor, *given, **named)

    optimizer.allreduce_async_ = counted
    try:
        step()
    finally:
        optimizer.allreduce_async_ = begin
    return seen
