"""Trace steps of torch with marks around layers, loss and clipping, and divide them.

Marks, types and shapes make short steps longer. So one step is described with them, and those that
are timed carry none: their operators are the same ones in the same order. Between two traced steps
one is made without a trace; what the trace costs is told by these pairs.

What torch.compile made has no hooks: the provenance of its kernels says where they belong.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Iterator, List, Tuple

import torch
from torch.profiler import record_function

from harness.worker.adapters.torch.activity import TrainingActivity
from harness.worker.adapters.torch.tracing import inductor
from harness.worker.adapters.torch.tracing.operators import divided
from harness.worker.adapters.torch.tracing.profiled import traced
from harness.worker.attribution.account import Attribution
from harness.worker.attribution.marks import LOSS, UPDATE, WAIT, Marks
from harness.worker.attribution.steps import warmed


def attribute(activity: TrainingActivity, network: Any) -> Attribution:
    """Trace a few steps."""
    settings = activity.trainer.settings
    lowered = activity.trainer.network
    graphs: List[inductor.Graph] = []
    with inductor.kept_graphs(lowered, graphs) if settings.is_compiled else nullcontext():
        steps = warmed(activity)
    marks = Marks(network)
    with marked_wait(activity.trainer.optimiser):
        with marked(activity, marks):
            activity.step()
            (one,), _ = traced(activity, 1, with_shapes=True, is_gpu=settings.is_gpu)
        made, untraced_s = traced(activity, steps, with_shapes=False, is_gpu=settings.is_gpu)
    return divided(one, made, marks, graphs, untraced_s, is_gpu=settings.is_gpu)


@contextmanager
def marked(activity: TrainingActivity, marks: Marks) -> Iterator[None]:
    """Let layers, the loss, its scale and clipping open a range while they run."""
    trainer = activity.trainer
    is_compiled = trainer.settings.is_compiled
    layers = {} if is_compiled else trainer.network.at
    hooks = [
        hook for path, module in layers.items() for hook in _mark_layer(module, marks.of(path))
    ]
    calls: List[Tuple[Any, str, str]] = [
        *(() if is_compiled else ((trainer.plain, "loss_of", LOSS),)),
        (trainer, "_clip_gradients", UPDATE),
        (trainer.scaler, "scale", LOSS),
        (trainer.scaler, "step", UPDATE),
        (trainer.scaler, "update", UPDATE),
    ]
    plain = [(owner, name, getattr(owner, name)) for owner, name, _ in calls]
    for (owner, name, mark), (_, _, call) in zip(calls, plain):
        setattr(owner, name, _within(mark, call))
    try:
        yield
    finally:
        for owner, name, call in plain:
            setattr(owner, name, call)
        for hook in hooks:
            hook.remove()


@contextmanager
def marked_wait(optimiser: Any) -> Iterator[None]:
    """Let Horovod's optimiser open a range while it waits for gradients: none of torch's shows it.

    One range a step; all traced steps have it.
    """
    plain = getattr(optimiser, "synchronize", None)
    if plain is None:
        yield
        return
    optimiser.synchronize = _within(WAIT, plain)
    try:
        yield
    finally:
        optimiser.synchronize = plain


def _within(mark: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*given: Any) -> Any:
        with record_function(mark):
            return call(*given)

    return marked


def _mark_layer(module: torch.nn.Module, mark: str) -> Tuple[Any, Any]:
    opened: List[Any] = []

    def before(*_: Any) -> None:
        opened.append(record_function(mark))
        opened[-1].__enter__()

    def after(*_: Any) -> None:
        opened.pop().__exit__(None, None, None)

    # A block that is computed again stops within a layer, as soon as all that it needs is known.
    left = module.register_forward_hook(after, always_call=True)
    return module.register_forward_pre_hook(before), left
