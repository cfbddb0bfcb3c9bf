"""Watch a few steps and say what ran, in TensorFlow's, XLA's and oneDNN's words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, Optional
from typing import Counter as Counts

from harness.worker.facts import hlo, onednn
from harness.worker.facts.busy_threads import STDERR, Threads, printed

STEPS = 2
# Compiled __inference_step_12 1 times, compile time: 253382 us, cumulative: …
COMPILED = re.compile(r"[Cc]ompiled \S+ \d+ times, compile time: (\d+) us")
LISTED = 80
HEAVY = re.compile("Conv|MatMul|Einsum")
FORMATS = {
    "NHWC": "channels-last",
    "NDHWC": "channels-last",
    "NCHW": "channels-first",
    "NCDHW": "channels-first",
}
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
    found = _compiled(logged)
    optimised = activity.optimised() if found["compiler"] else None
    found.update(_traced(activity.traced) if optimised is None else hlo.read(optimised))
    found.update(onednn.read(later, STEPS))
    layout = onednn.layout(found["onednn_layouts"]) or found.get("layout")
    if layout is not None:
        found["layout"] = layout
    found["device"] = device(activity.result())
    found["onednn_isa"] = onednn.instruction_set(first + later)
    found["busy_threads"] = busy
    return found


def _compiled(logged: List[str]) -> Dict[str, Any]:
    """Read XLA's own word on each compilation; an operation outside would be a graph of its own."""
    spent_us = [int(told[1]) for told in map(COMPILED.search, logged) if told]
    if not spent_us:
        return {"compiler": None, "compiled_graphs": 0}
    return {
        "compiler": "xla",
        "compiled_graphs": len(spent_us),
        "compile_s": sum(spent_us) / 1e6,
    }


def device(result: Any) -> Optional[str]:
    """Ask a tensor where it was computed: ``/job:localhost/replica:0/task:0/device:GPU:0``."""
    if result is None:
        return None
    return "gpu" if ":GPU:" in result.device else "cpu"


def _traced(traced: Any) -> Dict[str, Any]:
    """Count the operations of the traced step by kind, with the type they compute in."""
    operations: Counts[str] = Counter()
    computed: Counts[str] = Counter()
    layouts: Counts[str] = Counter()
    for operation in traced.graph.get_operations():
        if operation.type in SILENT:
            continue
        if "Conv" in operation.type and "data_format" in operation.node_def.attr:
            layouts[FORMATS.get(operation.get_attr("data_format").decode(), "")] += 1
        outputs = operation.outputs
        name = outputs[0].dtype.name if outputs else ""
        operations["{} {}".format(operation.type, name).strip()] += 1
        if name and HEAVY.search(operation.type):
            computed[name] += 1
    found: Dict[str, Any] = {"operations": dict(operations.most_common(LISTED))}
    if layouts:
        found["layout"] = layouts.most_common(1)[0][0]
    whole = sum(computed.values())
    if whole:
        found["computed"] = {name: count / whole for name, count in computed.most_common()}
        found["computed_by"] = "convolutions and products of the traced step"
    return found
