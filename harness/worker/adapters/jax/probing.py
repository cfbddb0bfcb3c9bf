"""Watch two steps, and ask XLA what it made of them: operations by type, memory."""

from __future__ import annotations

from typing import Any, Callable, Dict

from harness.worker.facts import hlo, onednn
from harness.worker.facts.busy_threads import Threads, named, printed

STEPS = 2
POOL = "tf_XLAEigen"
"""What XLA calls the threads of its CPU's pool: nothing else tells how many there are."""
CUDNN_ATTENTION = "__cudnn$fmha"
"""How the calls begin that XLA leaves cuDNN's fused attention to."""


def attention(compiled: Any) -> str:
    """Say how a compiled step computes attention."""
    return "fused" if CUDNN_ATTENTION in compiled.as_text() else "plain"


def device(arrays: Any) -> str:
    """Ask what the step left where it lies."""
    kinds = {one.platform for array in arrays for one in array.devices()}
    return "cpu" if kinds == {"cpu"} else "gpu"


def observe(activity: Any, compiled: Any, placed: Callable[[], Any]) -> Dict[str, Any]:
    """Run a step that was compiled ahead a few times; ``placed`` gives what it trains."""
    with printed() as first:
        activity.step()
        activity.sync()
    threads = Threads()
    with printed() as later:
        for _ in range(STEPS):
            activity.step()
        activity.sync()
    busy = threads.busy()
    memory = compiled.memory_analysis()
    laid = onednn.read(later, STEPS)
    layout = onednn.layout(laid["onednn_layouts"])
    return {
        **({} if layout is None else {"layout": layout}),
        **hlo.read(compiled.as_text()),
        **laid,
        "device": device(placed()),
        "onednn_isa": onednn.instruction_set(first + later),
        "busy_threads": busy,
        "threads": named(POOL),
        "temporary_bytes": int(memory.temp_size_in_bytes) if memory else None,
    }
