"""Say where ranks of the papers' studies would lie on machines that nobody here has run on.

Their profiles were written from recordings and documents; nothing of this was started there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.launch.binding import bind
from harness.launch.binding_request import wish
from harness.launch.binding_text import draw, draw_node
from harness.launch.profile_topology import claimed
from harness.platform.platform import load_platform
from harness.worker.scale import Scale

HEADING = """\
## Machines that nobody here has run on

What NVLink and Knights Landing's memory bring was not measured. Until somebody does, this is what
would be started there: which cores, memory and GPUs each rank of such a cell gets, worked out from
[profiles](platforms.md) that follow recordings and documents. Rows above that say *simulated, not
measured* were played by [a model](many-ranks.md#simulated-clusters) on the profiles in
`tests/papers/played`, which say what of them is assumed. It knows nodes, ranks, links and one file
system, and tells no framework, format or kind of memory from another.
"""
_CELLS: tuple[tuple[str, str, Scale, Mapping[str, Any]], ...] = (
    ("shams2017/nvlink", "minsky-p100", Scale(ranks_per_node=2), {"device": "gpu"}),
    ("shams2017/knl", "knl-7250-flat", Scale(), {"memory_policy": "fast-first"}),
    ("shams2017/knl", "knl-7250-flat", Scale(), {"memory_policy": "local"}),
    ("bae2019/intel-caffe", "nurion", Scale(), {}),
)


def unseen_machines() -> Iterator[str]:
    """Give the paragraphs of the section."""
    yield HEADING
    seen = ""
    for claim, name, scale, factors in _CELLS:
        platform = load_platform(name)
        topology = claimed(platform)
        assert topology is not None, f"{name} says how many cores it has"
        wanted = wish(platform, scale, {"device": "cpu", **factors}, devices=len(topology.devices))
        ranks = draw(bind(topology, wanted)).splitlines()
        node = "" if seen == name else f"{draw_node(topology)}\n\n"
        asked = ", ".join(f"{key} = {value}" for key, value in factors.items()) or "as it comes"
        told = "\n".join(line for line in ranks if not line.startswith(" "))  # no variables
        yield f"`{claim}` on [{name}](../platforms/{name}.toml), {asked}:\n"
        yield f"```\n{node}{told}\n```\n"
        seen = name
