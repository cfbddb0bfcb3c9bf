"""This file watches a few steps and says which kernels ran, in TensorFlow's and oneDNN's words."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional
from typing import Counter as Counts

STEPS = 3


def observe(activity: Any, directory: str) -> Dict[str, Any]:
    """Run a few steps and count oneDNN's primitives and the traced graph's operations."""
    with _standard_output(directory) as first:  # compiles; oneDNN introduces itself once
        activity.step()
        activity.sync()
    with _standard_output(directory) as later:
        for _ in range(STEPS):
            activity.step()
        activity.sync()
    found: Dict[str, Any] = {"onednn_isa": instruction_set(first), **primitives(later)}
    found["operations"] = dict(_operations(activity.traced).most_common())
    return found


def instruction_set(lines: List[str]) -> Optional[str]:
    """Find the instruction set that oneDNN says it takes."""
    for line in lines:
        for field in line.strip().split(","):
            if "onednn_verbose" in line and field.startswith("isa:"):
                return field[len("isa:") :]
    return None


def primitives(lines: List[str]) -> Dict[str, Any]:
    """Count per step what ``ONEDNN_VERBOSE=1`` prints: kernels, and the types they read.

    A line reads ``onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,
    forward_training,src:f32::blocked:acdb::f0 wei:…``; older versions leave out ``v1,primitive``
    and write ``src_f32``.
    """
    counts: Counts[str] = Counter()
    types: Counts[str] = Counter()
    for line in lines:
        fields = line.strip().split(",")
        if "onednn_verbose" not in fields[0] or "exec" not in fields:
            continue
        kind, kernel = fields[fields.index("exec") + 2 :][:2]
        counts["{} {}".format(kind, kernel).strip()] += 1
        types.update(re.findall(r",src[:_]([a-z]+[0-9]+)", line)[:1])
    return {
        "onednn_primitives": {name: count / STEPS for name, count in counts.most_common()},
        "onednn_types": {name: count / STEPS for name, count in types.most_common()},
    }


def _operations(traced: Any) -> Counts[str]:
    """Count the operations of the traced step by kind, with the type they compute in."""
    counts: Counts[str] = Counter()
    for operation in traced.graph.get_operations():
        if operation.type in ("Const", "Placeholder", "ReadVariableOp", "NoOp", "Identity"):
            continue
        outputs = operation.outputs
        kind = outputs[0].dtype.name if outputs else "none"
        counts["{} {}".format(operation.type, kind)] += 1
    return counts


@contextmanager
def _standard_output(directory: str) -> Iterator[List[str]]:
    """Collect what native code prints: oneDNN writes to file descriptor 1, not to Python."""
    lines: List[str] = []
    kept = os.dup(1)
    with tempfile.TemporaryFile(dir=directory) as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode("utf-8", "replace").splitlines()
