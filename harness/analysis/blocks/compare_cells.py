"""Compare the cells of a run with the reference of their task.

Where no reference was declared, the fastest cell of the pilot block is it; a run without a pilot
gives up its first block for that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from math import isclose

from harness.analysis import stopping
from harness.analysis.blocks import lost_trials, noisy_rounds, paired_blocks
from harness.analysis.blocks.bias_of_turns import with_bias
from harness.analysis.blocks.paired_blocks import rates_by_block
from harness.stats import compare, losses
from harness.stats.answers import FEWEST_BLOCKS
from harness.store.layout import PILOT
from harness.store.records import RunRecord
from harness.verdicts.results import CellResult, Comparison, Estimate, Interval
from harness.verdicts.thresholds import rejecting

CONTENDED = "contended"


def compared(run: RunRecord, cells: Sequence[CellResult], equivalence: float) -> list[CellResult]:
    """Compare the cells of each task with its reference cell."""
    return [
        cell
        for some in by_task(cells)
        for cell in compared_task(run, some, equivalence=equivalence)
    ]


def by_task(cells: Sequence[CellResult]) -> list[list[CellResult]]:
    """Give the cells of each task."""
    tasks = dict.fromkeys(cell.task for cell in cells)
    return [[cell for cell in cells if cell.task == task] for task in tasks]


def compared_task(
    run: RunRecord, cells: Sequence[CellResult], *, equivalence: float
) -> list[CellResult]:
    """Compare the cells of one task with its reference cell."""
    declared_keys = set(run.reference.values())
    declared = next((cell.key for cell in cells if cell.key in declared_keys), None)
    # what computes something else is neither better nor worse
    fit = [cell for cell in cells if cell.is_comparable]
    rates = {cell.key: rates_by_block(cell) for cell in fit}
    blocks = sorted({block for row in rates.values() for block in row})
    reference = declared
    if reference is None:
        reference = compare.pilot_leader({cell.key: pilot_rate(run, cell) for cell in fit})
    if reference is None and blocks:
        first = blocks.pop(0)
        reference = compare.pilot_leader({key: row.get(first) for key, row in rates.items()})
    if reference is None or reference not in rates:
        return list(cells)
    by_key = {cell.key: cell for cell in fit}
    base = by_key[reference]
    size = base.factors.get("message_bytes")
    alike = {c.key for c in fit if c.factors.get("message_bytes") == size}
    rejected = rejecting(run.info.measure.get("tolerate") or ())
    paired = {
        cell.key: paired_blocks.log_ratios(cell, base, rejected=rejected)
        for cell in fit
        # bytes a second of another size of message differ
        if cell.key != reference and rates[cell.key] and cell.key in alike
    }
    until_answered = stopping.is_until_answered(run)
    looks = stopping.shared_looks(run) if until_answered else stopping.looks(run)
    lost = {key: lost_trials.losses(by_key[key], base, rejected) for key in paired}
    answers = losses.compared(
        {key: {at: one for at, one in row.items() if at in blocks} for key, row in paired.items()},
        lost,
        described=lambda key: lost_trials.described(by_key[key], base, lost[key], rejected),
        equivalence=equivalence,
        compare=partial(
            compare.compare,
            alpha=stopping.alpha(run, blocks[-1] if blocks else 0, cells=len(paired)),
            equivalence=equivalence,
            seed=run.info.seed,
            at_any_time=until_answered,
        ),
    )
    chosen = "declared" if declared else "the fastest in the pilot block, which is not compared"
    compared_cells = []
    for cell in cells:
        if cell.key == reference:
            ratio = 1.0 if rates[reference] else None
            itself = Comparison(reference, ratio, None, "reference", len(blocks), None, chosen)
            compared_cells.append(replace(cell, comparison=itself))
        elif cell.key in answers:
            comparison = _comparison(
                base,
                cell,
                answers[cell.key],
                len(answers),
                len(looks),
                is_sequence=until_answered and len(answers) == 1,
            )
            comparison = with_bias(comparison, base, cell, equivalence)
            if answers[cell.key].is_bound:
                comparison = lost_trials.as_bound(comparison)
            comparison = _unless_contended(comparison, base, cell, rejected)
            judged = noisy_rounds.marked(cell, base)
            beside = replace(_beside(base.rate, judged, comparison.ratio), comparison=comparison)
            compared_cells.append(beside)
        else:
            compared_cells.append(cell)
    return compared_cells


def _comparison(
    base: CellResult,
    cell: CellResult,
    answer: compare.Answer,
    cells: int,
    looks: int,
    *,
    is_sequence: bool,
) -> Comparison:
    interval = None
    if answer.low is not None and answer.high is not None:
        joint = "exact"
        if cells > 1:
            joint = f"variances moderated, holds for all {cells} compared cells together"
        shared = f", the error shared by {looks} looks" if looks > 1 else ""
        turns = paired_blocks.takes_turns_with(cell, base)
        blocks = f"{answer.blocks} blocks{', each the median of its rounds' if turns else ''}"
        meaning = f"inverted sign flips of {blocks}, {joint}{shared}"
        if is_sequence:
            meaning = f"always-valid sequence over {blocks}: it holds at every look"
        interval = Interval(answer.low, answer.high, answer.level, meaning)
    return Comparison(
        base.key,
        answer.ratio,
        interval,
        answer.answer,
        answer.blocks,
        answer.more_blocks,
        answer.why,
    )


def _unless_contended(
    told: Comparison, base: CellResult, cell: CellResult, rejected: Collection[str]
) -> Comparison:
    """Say of an answer that a neighbour prevented that it did, not that blocks are too few."""
    if CONTENDED not in rejected or told.blocks >= FEWEST_BLOCKS or told.answer != "cannot tell":
        return told
    lost = {
        trial.block
        for one in (base, cell)
        for trial in one.trials
        if trial.verdict == CONTENDED and trial.block != PILOT
    }
    lost -= rates_by_block(base).keys() & rates_by_block(cell).keys()
    if told.blocks + len(lost) < FEWEST_BLOCKS:
        return told
    why = f"{told.blocks} common blocks; in {len(lost)} others somebody used the cores all the time"
    return replace(told, answer=CONTENDED, interval=None, more_blocks=None, why=why)


def _beside(base: Estimate | None, cell: CellResult, ratio: float | None) -> CellResult:
    """Bring a cell's rate to the reference's blocks: its ratio times the reference's rate.

    Where each block has both trials it is that already. Where one is missing, the rates are of
    other blocks, and their order could contradict the ratios, which are of the same ones.
    """
    if base is None or cell.rate is None or not ratio:
        return cell
    factor = base.value * ratio / cell.rate.value
    if isclose(factor, 1, rel_tol=1e-12):
        return cell
    epoch = None if cell.epoch_s is None else _scaled(cell.epoch_s, 1 / factor)
    return replace(cell, rate=_scaled(cell.rate, factor), epoch_s=epoch)


def _scaled(of: Estimate, factor: float) -> Estimate:
    interval = of.interval
    if interval is not None:
        meaning = f"{interval.meaning}, brought to the reference's blocks"
        low, high = interval.low * factor, interval.high * factor
        interval = replace(interval, low=low, high=high, meaning=meaning)
    return replace(of, value=of.value * factor, interval=interval)


def pilot_rate(run: RunRecord, cell: CellResult) -> float | None:
    """Give what the cell reached in the pilot block, at the last attempt that can be believed."""
    rejected = rejecting(run.info.measure.get("tolerate") or ())
    rates = [
        trial.rate
        for trial in cell.trials
        if trial.block == PILOT and trial.verdict not in rejected and trial.rate is not None
    ]
    return rates[-1] if rates else None
