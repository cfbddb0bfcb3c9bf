"""Say where ranks of the papers' studies would lie on machines that nobody here has run on.

Their profiles were written from recordings and documents; nothing of this was started there.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def _laid_out(cell: Cell, pair: tuple[Cell, Cell], platform: Platform) -> str:
    """Draw one of two cells, with what tells it from the other."""
    topology = claimed(platform)
    assert topology is not None
    wanted = wish(platform, cell.scale, cell.factors, devices=len(topology.devices))
    ranks = draw(bind(topology, wanted)).splitlines()
    apart = ", ".join(f"{one} = {cell.factors[one]}" for one in sorted(differing(*pair)))
    told = framework_info(cell.adapter).rank_variables(cell.strategy, cell.factors)
    more = [f"each      {name}={value}" for name, value in told.every_rank.items()]
    kept = [line for line in ranks if not line.startswith(" ")]  # its threads' variables are long
    return "\n".join([f"{cell.workload}, {cell.framework} {cell.strategy}, {apart}", *kept, *more])
