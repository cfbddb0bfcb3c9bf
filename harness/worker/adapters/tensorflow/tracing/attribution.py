"""Trace steps with TensorFlow's profiler, and find the layer and pass of each operation.

Marks are name scopes: TensorFlow keeps them in the names of operations, of their gradients, and of
what it makes of them, XLA in its instructions' metadata. They change no kernel.
"""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from typing import Any, ContextManager, Tuple

import tensorflow.compat.v2 as tf

from harness.worker.attribution import xspace
from harness.worker.attribution.account import Attribution
from harness.worker.attribution.marks import STEP, Mark, Marks
from harness.worker.attribution.steps import untraced, wait_for_input, warmed
from harness.worker.attribution.traced import divided
from harness.worker.facts.resources import usable_cpus


def marking(network: Any) -> Mark:
    """Give what marks the layers of a network while it is traced."""
    marks = Marks(network)

    def mark(name: str) -> ContextManager[Any]:
        scope: ContextManager[Any] = tf.name_scope(marks.of(name))
        return scope

    return mark


def marked_gradients(network: Any) -> ContextManager[Any]:
    """Give what marks gradients while they are traced, where TensorFlow's tape does not."""
    if not is_early():
        return nullcontext()
    from harness.worker.adapters.tensorflow.tracing import early_traces

    return early_traces.marked_gradients(network)


def attribute(activity: Any, network: Any) -> Attribution:
    """Trace a few steps."""
    steps = warmed(activity)
    untraced_s = untraced(activity, (steps + 1) // 2)
    trace, traced_by = _traced(activity, steps)
    untraced_s += untraced(activity, (steps + 1) // 2)
    operations = {one.name: one for one in activity.traced.graph.get_operations()}

    def shapes(name: str) -> Tuple[str, str]:
        found = operations.get(name)
        if found is None or not found.outputs:
            return "", ""
        output = found.outputs[0]
        known = output.shape.as_list() if output.shape.rank is not None else []
        return output.dtype.name, "x".join(map(str, known))

    threads = tf.config.threading.get_intra_op_parallelism_threads() or usable_cpus()
    return divided(trace, network, traced_by, untraced_s, shapes, threads=threads)


def _traced(activity: Any, steps: int) -> Tuple[xspace.Trace, str]:
    """Trace some steps; say by what."""
    if is_early():
        from harness.worker.adapters.tensorflow.tracing import early_traces

        return early_traces.traced(activity, steps), "TensorFlow's eager profiler"
    with tempfile.TemporaryDirectory() as folder:
        for is_kept in (False, True):  # beside the steps of a first trace buffers are still made
            tf.profiler.experimental.start(folder)
            try:
                for number in range(steps):
                    wait_for_input(activity)
                    with tf.profiler.experimental.Trace(STEP, step_num=number, _r=1):
                        activity.step()
                        activity.sync()
            finally:
                tf.profiler.experimental.stop(save=is_kept)
        return xspace.read(folder), "tf.profiler"


def is_early() -> bool:
    """Tell TensorFlow 1.15, which has no traces of steps, from what came after."""
    profiler = getattr(getattr(tf, "profiler", None), "experimental", None)
    return not hasattr(profiler, "Trace")
