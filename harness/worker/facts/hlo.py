"""Read the text of a step that XLA has optimised: heavy operations and their types.

XLA rewrites types behind its users' back: on CPUs it widens most bfloat16 operations to float32.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, Optional
from typing import Counter as Counts

from harness.worker.facts.short_types import IN_FULL

# %name = bf16[16,27,27,192]{3,2,1,0} convolution(%left, f32[3]{0} %right), …
DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = \(?([a-z]+[0-9]*)\[", re.MULTILINE)
HEAVY = re.compile(
    r"= \(?([a-z]+[0-9]*)\[.*? (convolution|dot|custom-call)\((?:([a-z]+[0-9]*)\[\S* )?%?([\w.-]*)"
    r".*$",
    re.MULTILINE,
)
# %name = f32[16,27,27,192]{3,2,1,0} convolution(…), window={…}, dim_labels=b01f_01io->b01f
CONVOLVED = re.compile(
    r"= \(?[a-z]+[0-9]*\[[0-9,]*\]\{([0-9]{1,3}(?:,[0-9]{1,3})*)[^}]*\} convolution\("
    r".*dim_labels=\w+->(\w+)"
)
TARGET = re.compile(r'custom_call_target="([^"]+)"')
MULTIPLYING = re.compile("conv|dot|gemm|matmul|fmha", re.IGNORECASE)


def read(text: str) -> Dict[str, Any]:
    """Give the facts of one optimised step."""
    types = {match[1]: match[2] for match in DEFINED.finditer(text)}
    operations: Counts[str] = Counter()
    computed: Counts[str] = Counter()
    for match in HEAVY.finditer(text):
        target = TARGET.search(match[0])
        kind = target[1] if target else match[2]
        given = match[3] or types.get(match[4]) or match[1]
        name = IN_FULL.get(given, given)
        operations["{} {}".format(kind, name)] += 1
        if MULTIPLYING.search(kind):
            computed[name] += 1
    found: Dict[str, Any] = {"operations": dict(operations.most_common())}
    found["fusions"] = len(re.findall(r" fusion\(", text))
    laid = layout(text)
    if laid is not None:
        found["layout"] = laid
    whole = sum(computed.values())
    if whole:
        found["computed"] = {name: count / whole for name, count in computed.most_common()}
        found["computed_by"] = "convolutions and products of XLA's optimised step"
    return found


def layout(text: str) -> Optional[str]:
    """Say how the results of most convolutions lie in memory, by XLA's labels and strides."""
    seen: Counts[str] = Counter()
    for match in CONVOLVED.finditer(text):
        fastest_first, labels = [int(one) for one in match[1].split(",")], match[2]
        lying = [labels[axis] for axis in fastest_first if axis < len(labels)]
        if len(lying) == len(labels) and lying[:1] == ["f"]:
            seen["channels-last"] += 1
        elif len(lying) == len(labels) and "f" in lying[-2:]:
            seen["channels-first"] += 1
    return seen.most_common(1)[0][0] if seen else None
