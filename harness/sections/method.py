"""The section of the method, in words."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.sections.contract.blocks import Block, Facts, Fold
from harness.sections.contract.section import Section

_TRIALS = """A trial is one fresh execution of a cell, in its own processes. All cells run once per
block, in random order, so that a machine that drifts drifts for all of them; cells are compared
within blocks."""

_TURNS = """Where they can, the trials of a block live at the same time and take turns, unless a
study says otherwise: one is at work, the others stand still. A turn settles first, uncounted,
and a turn in which others used the cores is repeated, or dropped. The ratio of a block is the
median over its rounds of the ratio within a round; what the machine does to both within seconds
cancels."""

_STEADY = """Every step window of a trial is kept. The start, where compilers, caches and clocks
settle, is found from the window times themselves and left out of the rate, by one rule for all
frameworks."""

_RATES = """A cell's rate is the geometric mean of its trials, so that rates have the same ratios as
the blocks by which cells are compared: place, bar and ratio rest on one number. The ends of the
interval are trials that were measured. With six trials they are the slowest and the fastest, which
hold the median in 96.9 % of cases whatever the distribution."""

_COMPARISONS = """Each cell is compared with one reference by the ratio within each block. Faster,
slower and same are said only if they hold for all cells of the study together; otherwise the
answer is “cannot tell”, with the number of blocks that would probably do. Fewer than six blocks
never tell. An interval is of trials like those that ran: a cell that is slow in one trial of ten
may not have been so in six."""

_LEFT_OUT = """A trial that another program, a thermal limit or a stall disturbed is rejected, shown
as a cross with the evidence, and run again within a budget. A cell is greyed out and not ranked
if it computes something else than the others, if its examination failed, or if another precision,
device or compiler ran than it is called by."""

_METHOD: tuple[tuple[str, str], ...] = (
    ("Trials and blocks", _TRIALS),
    ("Turns", _TURNS),
    ("Steady state", _STEADY),
    ("Rates and intervals", _RATES),
    ("Comparisons", _COMPARISONS),
    ("What is left out", _LEFT_OUT),
)


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Fold(
        "How cells are measured and compared", (Facts(_METHOD, is_prose=True),), is_printed=True
    )


SECTION = Section("Method", 1700, _blocks)
