"""This file watches a few steps and says what ran, in TensorFlow's, XLA's and oneDNN's words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List
from typing import Counter as Counts

from harness.node import hlo, onednn
from harness.node.watch import STDERR, Threads, printed

STEPS = 2
# Compiled __inference_step_12 1 times, compile time: 253382 us, cumulative: …
COMPILED = re.compile(r"[Cc]ompiled \S+ \d+ times, compile time: (\d+) us")
LISTED = 80
HEAVY = re.compile("Conv|MatMul|Einsum")
SILENT = ("Const", "Placeholder", "ReadVariableOp", "NoOp", "Identity")


def observe(activity: Any) -> Dict[str, Any]:
    """Run a few steps; count the step's operations, oneDNN's primitives and the busy threads."""
    with printed(STDERR) as logged, printed() as first:  # compiles; oneDNN introduces itself once
        activity.step()
        activity.sync()
    threads = Threads()
    with printed() as later:
        for _ in range(STEPS):
            activity.step()
        activity.sync()
    busy = threads.busy()
    found: Dict[str, Any] = _compiled(logged) if activity.is_compiled else {}
    optimised = activity.optimised()
    found.update(_traced(activity.traced) if optimised is None else hlo.read(optimised))
    found.update(onednn.read(later, STEPS))
    found["onednn_isa"] = onednn.instruction_set(first + later)
    found["busy_threads"] = busy
    return found


def _compiled(logged: List[str]) -> Dict[str, Any]:
    """Read XLA's own word on each compilation; an operation outside would be a graph of its own."""
    spent_us = [int(told[1]) for told in map(COMPILED.search, logged) if told]
    return {"compiled_graphs": len(spent_us), "compile_s": sum(spent_us) / 1e6}


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
