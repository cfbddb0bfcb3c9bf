"""Trace steps with TensorFlow's profiler, and find the layer and pass of each operation.

Marks are name scopes: TensorFlow keeps them in the names of operations, of their gradients, and of
what it makes of them, XLA in its instructions' metadata. They change no kernel.
"""

from __future__ import annotations

import tempfile
from typing import Any, ContextManager, Tuple

import tensorflow.compat.v2 as tf

from harness.worker.attribution.account import Attribution
from harness.worker.attribution.marks import STEP, Mark, Marks
from harness.worker.attribution.steps import untraced, warmed
from harness.worker.attribution.traced import divided
from harness.worker.contracts import Unsupported


def marking(network: Any) -> Mark:
    """Give what marks the layers of a network while it is traced."""
    marks = Marks(network)

    def mark(name: str) -> ContextManager[Any]:
        scope: ContextManager[Any] = tf.name_scope(marks.of(name))
        return scope

    return mark


def attribute(activity: Any, network: Any) -> Attribution:
    """Trace a few steps."""
    profiler = getattr(getattr(tf, "profiler", None), "experimental", None)
    if not hasattr(profiler, "Trace"):  # as of 1.15
        raise Unsupported("TensorFlow {} has no traces of steps".format(tf.__version__))
    steps = warmed(activity)
    untraced_s = untraced(activity, (steps + 1) // 2)
    operations = {one.name: one for one in activity.traced.graph.get_operations()}

    def shapes(name: str) -> Tuple[str, str]:
        found = operations.get(name)
        if found is None or not found.outputs:
            return "", ""
        output = found.outputs[0]
        return output.dtype.name, "x".join(map(str, output.shape.as_list()))

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            for number in range(steps):
                with tf.profiler.experimental.Trace(STEP, step_num=number, _r=1):
                    activity.step()
                    activity.sync()
        finally:
            tf.profiler.experimental.stop()
        untraced_s += untraced(activity, (steps + 1) // 2)
        return divided(folder, network, "tf.profiler", untraced_s, shapes)
