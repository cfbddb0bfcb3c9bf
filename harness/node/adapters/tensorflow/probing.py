"""This file watches a few steps and says what ran, in TensorFlow's, XLA's and oneDNN's words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict
from typing import Counter as Counts

from harness.node import hlo, onednn
from harness.node.watch import Threads, printed

STEPS = 2
LISTED = 80
HEAVY = re.compile("Conv|MatMul|Einsum")
SILENT = ("Const", "Placeholder", "ReadVariableOp", "NoOp", "Identity")


def observe(activity: Any) -> Dict[str, Any]:
    """Run a few steps; count the step's operations, oneDNN's primitives and the busy threads."""
    with printed() as first:  # compiles; oneDNN introduces itself once
        activity.step()
        activity.sync()
    threads = Threads()
    with printed() as later:
        for _ in range(STEPS):
            activity.step()
        activity.sync()
    busy = threads.busy()
    optimised = activity.optimised()
    found = _traced(activity.traced) if optimised is None else hlo.read(optimised)
    found.update(onednn.read(later, STEPS))
    found["onednn_isa"] = onednn.instruction_set(first + later)
    found["busy_threads"] = busy
    return found


def _traced(traced: Any) -> Dict[str, Any]:
    """Count the operations of the traced step by kind, with the type they compute in."""
    operations: Counts[str] = Counter()
    computed: Counts[str] = Counter()
    for operation in traced.graph.get_operations():
        if operation.type in SILENT:
            continue
        outputs = operation.outputs
        name = outputs[0].dtype.name if outputs else ""
        operations["{} {}".format(operation.type, name).strip()] += 1
        if name and HEAVY.search(operation.type):
            computed[name] += 1
    found: Dict[str, Any] = {"operations": dict(operations.most_common(LISTED))}
    whole = sum(computed.values())
    if whole:
        found["computed"] = {name: count / whole for name, count in computed.most_common()}
        found["computed_by"] = "convolutions and products of the traced step"
    return found
