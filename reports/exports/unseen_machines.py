"""Say where ranks of the papers' studies would lie on machines that nobody here has run on.

Their profiles were written from recordings and documents; nothing of this was started there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.analysis.papers.finding_cells import differing, pairs
from harness.launch.binding import bind
from harness.launch.binding_request import wish
from harness.launch.binding_text import draw, draw_node
from harness.launch.profile_topology import claimed
from harness.plan.cell import Cell
from harness.plan.plan import make_plan
from harness.platform.platform import Platform, load_platform
from harness.study.framework import framework_info
from harness.study.matrix import selection
from harness.study.study import load_study, study_files
from harness.worker.scale import Scale

HEADING = """\
## Machines that nobody here has run on

What NVLink and Knights Landing's memory bring was not measured. Until somebody does, this is what
would be started there: which cores, memory and GPUs each rank of such a cell gets, and what else
tells the two cells apart, worked out from [profiles](platforms.md) that follow recordings and
documents. Rows above that say *simulated, not measured* were played by
[a model](many-ranks.md#simulated-clusters) on the profiles in `tests/papers/played`, whose links,
storage and shares of the ceilings are assumed, as *Machines* says of each: such a figure follows
from them, and only shows what a run there would be asked.
"""
_ASKED = (
    ("shams2017/nvlink", "minsky-p100"),
    ("shams2017/knl", "knl-7250-flat"),
)
_STUDY, _SIZE = "shams2017", "paper"
_MODES = (
    ("knl-7210-cache", "", 1, "MCDRAM as a cache: nothing is chosen"),
    ("knl-7250-flat", "snc-4", 4, "clustered in four, a rank for each"),
)
"""Other modes of Knights Landing, which a machine is booted in, so that no study sets them."""


def unseen_machines() -> Iterator[str]:
    """Give the paragraphs of the section."""
    yield HEADING
    study = load_study(study_files()[_STUDY], size=_SIZE)
    for claim, name in _ASKED:
        platform = load_platform(name)
        topology = claimed(platform)
        assert topology is not None, f"{name} says how many cores it has"
        finding = next(one for one in study.findings if one.claim == claim and one.over)
        over = selection(finding.over or {})
        pair, *_ = pairs(make_plan(study, platform).cells, selection(finding.of), over)
        yield f"`{claim}` on [{name}](../platforms/{name}.toml):\n"
        drawn = [draw_node(topology), *(_laid_out(one, pair, platform) for one in pair)]
        yield "```\n" + "\n\n".join(drawn) + "\n```\n"
    for name, mode, ranks, words in _MODES:
        platform = load_platform(name)
        node = platform.node.model_copy(update={"cluster_mode": mode} if mode else {})
        platform = platform.model_copy(update={"node": node})
        topology = claimed(platform)
        assert topology is not None, f"{name} says how many cores it has"
        scale = Scale(ranks_per_node=ranks)
        drawn = [draw_node(topology), _ranks(platform, scale, {"device": "cpu"})]
        yield f"[{name}](../platforms/{name}.toml), {words}:\n"
        yield "```\n" + "\n\n".join(drawn) + "\n```\n"


def _laid_out(cell: Cell, pair: tuple[Cell, Cell], platform: Platform) -> str:
    """Draw one of two cells, with what tells it from the other."""
    apart = ", ".join(f"{one} = {cell.factors[one]}" for one in sorted(differing(*pair)))
    told = framework_info(cell.adapter).rank_variables(cell.strategy, cell.factors)
    more = [f"each      {name}={value}" for name, value in told.every_rank.items()]
    ranks = _ranks(platform, cell.scale, cell.factors)
    return "\n".join([f"{cell.workload}, {cell.framework} {cell.strategy}, {apart}", ranks, *more])


def _ranks(platform: Platform, scale: Scale, factors: Mapping[str, Any]) -> str:
    topology = claimed(platform)
    assert topology is not None
    wanted = wish(platform, scale, factors, devices=len(topology.devices))
    lines = draw(bind(topology, wanted)).splitlines()
    return "\n".join(one for one in lines if not one.startswith(" "))  # not threads' variables
