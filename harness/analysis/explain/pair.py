"""Two cells of a run beside each other: which is faster, and their steps block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.analysis.blocks.paired_blocks import log_ratios, rates_beside, rates_by_block
from harness.analysis.explain.step_shares import INPUT, Key, Share, waited, waited_by_block
from harness.stats import compare
from harness.verdicts.results import CellResult, Comparison, Interval


class Block(NamedTuple):
    """A cell's step in one block."""

    step_s: float
    waited: float
    """The share of it that was waiting for input."""

    def of(self, key: Key, share: Share, usual: float) -> float:
        """Give the seconds of a part; ``usual`` is the share of steps that is no waiting."""
        if key == INPUT:
            return self.step_s * self.waited
        return share.mean * self.step_s * (1 - self.waited) / (usual or 1.0)


def paired_steps(first: CellResult, second: CellResult) -> Sequence[tuple[Block, Block]]:
    """Give both cells' steps in each block that both have."""
    mine, theirs = rates_beside(first, second), rates_by_block(second)
    first_waits, second_waits = waited_by_block(first), waited_by_block(second)
    usual = waited(first), waited(second)
    return [
        (
            Block(first.work_per_step / mine[block], first_waits.get(block, usual[0])),
            Block(second.work_per_step / theirs[block], second_waits.get(block, usual[1])),
        )
        for block in sorted(mine.keys() & theirs.keys())
    ]


def answer_of(one: CellResult, other: CellResult, *, seed: int) -> Comparison:
    """Say how fast the first is against the other: in the words of the page, where it has any.

    Cells that are held against a reference are answered together, at an error that they share.
    """
    held = _of_page(one, other)
    if held is not None:
        return held
    held = _of_page(other, one)
    if held is not None:
        return inverse(held)
    logs = log_ratios(one, other)
    found = compare.compare({"": [logs[block] for block in sorted(logs)]}, seed=seed)[""]
    interval = None
    if found.low and found.high:
        interval = Interval(found.low, found.high, found.level, "of the ratio of these two")
    return Comparison(
        other.key,
        found.ratio,
        interval,
        found.answer,
        found.blocks,
        found.more_blocks,
        found.why,
    )


def is_of_page(one: CellResult, other: CellResult) -> bool:
    """Tell whether the page answers for these two: one is the other's reference."""
    return _of_page(one, other) is not None or _of_page(other, one) is not None


def _of_page(cell: CellResult, base: CellResult) -> Comparison | None:
    held = cell.comparison
    is_held = held is not None and held.reference_key == base.key and held.answer != "reference"
    return held if is_held else None


def inverse(of: Comparison) -> Comparison:
    """Give what is said of the cell that another was held against."""
    return replace(
        of,
        ratio=of.ratio and 1 / of.ratio,
        interval=inverted(of.interval),
        answer={"faster": "slower", "slower": "faster"}.get(of.answer, of.answer),
    )


def inverted(of: Interval | None) -> Interval | None:
    """Give the interval of one over what lies in another; none of one that is open to zero."""
    if of is None or not of.low > 0:
        return None
    return replace(of, low=1 / of.high, high=1 / of.low)
