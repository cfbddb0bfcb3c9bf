"""Trace steps of TensorFlow 1.15: with its own profiler, whose trace is no XSpace, and its tape.

That tape opens no scope around a gradient, so that the gradients are made in scopes of ours: that
of the layer whose result, or else whose input, a gradient is told of; else of the gradient before.

Field numbers as in tensorflow/core/protobuf/trace_events.proto. Times count from the profiler's
start, which is found from the steps: each calls the step's function once, and soon.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Any, Iterator, List, Tuple

import tensorflow.compat.v2 as tf

from harness.worker.attribution import xspace
from harness.worker.attribution.marks import LOSS, OF_LOSS, STEP, UNMARKED, Marks
from harness.worker.attribution.protobuf import Fields, by_number, integer, messages, text
from harness.worker.attribution.steps import wait_for_input
from harness.worker.contracts import Unsupported

CALL = "FunctionRun:"
GRADIENT = "gradient_tape/{}/"
Span = Tuple[int, int]


@contextmanager
def marked_gradients(network: Any) -> Iterator[None]:
    """Make gradients in scopes that say whose they are."""
    from tensorflow.python import pywrap_tensorflow
    from tensorflow.python.eager import backprop

    marks, plain = Marks(network), backprop._gradient_function
    latest = [""]

    def marked(
        name: str, attributes: Any, count: int, inputs: Any, outputs: Any, *more: Any
    ) -> Any:
        latest[0] = _mark_of(marks, outputs) or _mark_of(marks, inputs) or latest[0]
        if not latest[0]:
            return plain(name, attributes, count, inputs, outputs, *more)
        with tf.name_scope(GRADIENT.format(latest[0])):
            return plain(name, attributes, count, inputs, outputs, *more)

    pywrap_tensorflow.TFE_Py_RegisterGradientFunction(marked)
    try:
        yield
    finally:
        pywrap_tensorflow.TFE_Py_RegisterGradientFunction(plain)


def _mark_of(marks: Marks, tensors: Any) -> str:
    """Give the mark of the last layer among those that made some tensors."""
    names = [one.op.name for one in tensors or () if hasattr(one, "op")]
    places = [place for place in map(marks.place, names) if place != UNMARKED]
    if any(place.phase == OF_LOSS for place in places):
        return LOSS
    sites = [place.site for place in places if place.site]
    return marks.of(max(sites, key=marks.paths.index)) if sites else ""


def traced(activity: Any, steps: int) -> xspace.Trace:
    """Trace some steps; give their events as those of an XSpace."""
    if activity.is_compiled:
        raise Unsupported("TensorFlow 1.15 does not trace what XLA compiled")
    from tensorflow.python.eager import profiler

    spans: List[Span] = []
    profiler.start()
    for _ in range(steps):
        wait_for_input(activity)
        began = time.time_ns()
        activity.step()
        activity.sync()
        spans.append((began, time.time_ns()))
    events = list(_events(by_number(memoryview(profiler.stop()))))
    calls = sorted(one.start for one in events if one.name.startswith(CALL))
    if len(calls) != steps:
        raise ValueError("{} steps were made, and {} are in the trace".format(steps, len(calls)))
    started = max(span[0] - call for span, call in zip(spans, calls))
    own = [xspace.Event(STEP, start - started, end - started, -1, {}) for start, end in spans]
    return xspace.Trace([*own, *events], [])


def _events(trace: Fields) -> Iterator[xspace.Event]:
    for event in map(by_number, messages(trace, 4)):
        given = {text(one, 1): text(one, 2) for one in map(by_number, messages(event, 11))}
        start = integer(event, 9)
        end = start + integer(event, 10)
        name = given.get("long name") or text(event, 3)
        thousand = xspace.PICOSECONDS
        yield xspace.Event(name, start // thousand, end // thousand, integer(event, 2), {})
