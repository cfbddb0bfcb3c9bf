"""Read what oneDNN prints of each primitive it runs (``ONEDNN_VERBOSE=1``).

A line reads ``onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,
src:f32::blocked:acdb::f0 wei:…,…,MILLISECONDS``; older versions leave out ``v1,primitive`` and
write ``src_f32``. https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional
from typing import Counter as Counts

from harness.worker.facts.short_types import IN_FULL

LISTED = 60
# not gemm_api: the matrix routine that Eigen borrows from oneDNN, whatever is switched off
COMPUTING = ("convolution", "deconvolution", "inner_product", "matmul")
PLAIN = {
    "acdb": "channels-last",
    "acdeb": "channels-last",
    "abcd": "channels-first",
    "abcde": "channels-first",
}
"""Tags of activations whose order is plain; a blocked one is oneDNN's own choice."""
SOURCE = re.compile(r"\bsrc(?:_\w+)?[:_]([a-z]+[0-9]+):([^ ,]*)")


def read(lines: List[str], steps: int) -> Dict[str, Any]:
    """Give the facts of some steps: primitives per step, reorders, layouts, types by time."""
    primitives: Counts[str] = Counter()
    layouts: Counts[str] = Counter()
    spent: Dict[str, float] = {}
    for line in lines:
        fields = line.strip().split(",")
        if not _is_verbose(fields) or "exec" not in fields:
            continue
        named = fields[fields.index("exec") + 2 :][:2]
        if len(named) < 2:
            continue  # a line cut off by another thread's
        kind, kernel = named
        primitives["{} {}".format(kind, kernel).strip()] += 1
        source = SOURCE.search(line)
        if source is None or kind not in COMPUTING:
            continue
        name = IN_FULL.get(source[1], source[1])
        spent[name] = spent.get(name, 0.0) + _milliseconds(fields[-1])
        layout = _layout(source[2])
        if layout:
            layouts[layout] += 1
    found: Dict[str, Any] = {
        "onednn_primitives": _per_step(primitives, steps),
        "onednn_layouts": _per_step(layouts, steps),
        "onednn_reorders": sum(n for name, n in primitives.items() if "reorder" in name) / steps,
    }
    if sum(spent.values()) > 0:
        whole = sum(spent.values())
        order = sorted(spent, key=lambda name: -spent[name])
        found["computed"] = {name: spent[name] / whole for name in order}
        found["computed_by"] = "time in oneDNN's convolutions and products"
    return found


def layout(layouts: Mapping[str, float]) -> Optional[str]:
    """Say in which plain layout most activations came, if any did."""
    plain: Dict[str, float] = {}
    for tag, count in layouts.items():
        if tag in PLAIN:
            plain[PLAIN[tag]] = plain.get(PLAIN[tag], 0.0) + count
    return max(plain, key=lambda name: plain[name]) if plain else None


def instruction_set(lines: List[str]) -> Optional[str]:
    """Find the instruction set that oneDNN says it takes; it says so once, at its first use."""
    for line in lines:
        fields = line.strip().split(",")
        for field in fields:
            if _is_verbose(fields) and field.startswith("isa:"):
                return field[len("isa:") :]
    return None


def _is_verbose(fields: List[str]) -> bool:
    return fields[0].endswith(("onednn_verbose", "dnnl_verbose", "mkldnn_verbose"))


def _layout(descriptor: str) -> Optional[str]:
    """Find the tag in ``:blocked:acdb::f0``, ``a:blocked:acdb::f0`` or ``blocked:acdb:f0``."""
    parts = descriptor.split(":")
    if "blocked" not in parts[:-1]:
        return None
    return parts[parts.index("blocked") + 1] or None


def _milliseconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # a line cut off by another thread's
        return 0.0


def _per_step(counts: Counts[str], steps: int) -> Dict[str, float]:
    return {name: count / steps for name, count in counts.most_common(LISTED)}
