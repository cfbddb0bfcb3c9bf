"""Trace steps with JAX's profiler, and find the layer and pass of each of XLA's instructions.

Marks are ``named_scope``s, which XLA keeps in its instructions' metadata: they change no kernel. A
program from the compile cache may have been compiled without them, so it is not asked. The profiler
is slow to start and to stop, so that half of the untraced steps come before it, and half after.

While a GPU is traced XLA launches each kernel by itself, where it would launch some as one graph.
"""

from __future__ import annotations

import tempfile
from typing import Any, Dict

import jax

from harness.worker.attribution import xspace
from harness.worker.attribution.account import Attribution
from harness.worker.attribution.marks import STEP, Marks
from harness.worker.attribution.steps import timed, untraced, wait_for_input, warmed
from harness.worker.attribution.traced import divided


def attribute(activity: Any, network: Any, *, threads: int, is_gpu: bool) -> Attribution:
    """Compile the step with marks, and trace a few."""
    marks = Marks(network)
    activity.mark(lambda name: jax.named_scope(marks.of(name)))
    jax.config.update("jax_enable_compilation_cache", False)
    activity.compiled()
    steps = warmed(activity)
    untraced_s = untraced(activity, (steps + 1) // 2)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, **_without_python()):
            timed(activity)  # it waits for other ranks, which may begin to trace later
            for number in range(steps):
                wait_for_input(activity)
                with jax.profiler.StepTraceAnnotation(STEP, step_num=number):
                    activity.step()
                    activity.sync()
        untraced_s += untraced(activity, (steps + 1) // 2)
        trace = xspace.read(folder)
    return divided(trace, network, "jax.profiler", untraced_s, threads=threads, is_gpu=is_gpu)


def _without_python() -> Dict[str, Any]:
    """Leave Python's own calls out of the trace: to note each would slow the step."""
    options = getattr(jax.profiler, "ProfileOptions", None)
    if options is None:
        return {}
    chosen = options()
    chosen.python_tracer_level = 0
    return {"profiler_options": chosen}
