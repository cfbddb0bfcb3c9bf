"""Compare the cells of a run with the reference of their task.

Where no reference was declared, the fastest cell of the pilot block is it; a run without a pilot
gives up its first block for that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from harness.verdicts.results import CellResult, Comparison, Estimate, Interval, scaled
from harness.verdicts.thresholds import rejecting

BROUGHT = ", brought to the reference's blocks"
"""Ends the meaning of an interval whose rate was moved, so that rates have the ratios of blocks."""
CONTENDED = "contended"


def compared(run: RunRecord, cells: Sequence[CellResult], equivalence: float) -> list[CellResult]:
    """Compare the cells of each task with its reference cell; of two sides, B's with A's."""
    if has_two_sides(cells):
        return _compared_pairs(run, cells, equivalence=equivalence)
    return [
        cell
        for some in by_task(cells)
        for cell in compared_task(run, some, equivalence=equivalence)
    ]


def has_two_sides(cells: Sequence[CellResult]) -> bool:
    """Whether they are of a session that `bakeoff compare --now` made."""
    return any(cell.against for cell in cells)


def answers_of(
    run: RunRecord,
    pairs: Mapping[str, tuple[CellResult, CellResult]],
    paired: Mapping[str, Mapping[int, float]],
    *,
    equivalence: float,
) -> dict[str, compare.Answer]:
    """Answer for all pairs together: by the key of its cell, what each is held against and it.

    ``paired`` are the block log ratios of those that have any.
    """
    rejected = _rejected(run)
    last = max((at for row in paired.values() for at in row), default=0)
    lost = {key: lost_trials.losses(pairs[key][1], pairs[key][0], rejected) for key in paired}
    return losses.compared(
        paired,
        lost,
        described=lambda key: lost_trials.described(
            pairs[key][1], pairs[key][0], lost[key], rejected
        ),
        equivalence=equivalence,
        compare=partial(
            compare.compare,
            alpha=stopping.alpha(run, last, cells=len(paired)),
            equivalence=equivalence,
            seed=run.info.seed,
            at_any_time=stopping.is_until_answered(run),
        ),
    )


def _compared_pairs(
    run: RunRecord, cells: Sequence[CellResult], *, equivalence: float
) -> list[CellResult]:
    """Compare each cell of B with its cell of A, all pairs together."""
    by_key = {cell.key: cell for cell in cells}
    pairs = {
        cell.key: (by_key[cell.against], cell)
        for cell in cells
        if cell.against in by_key and cell.is_comparable and by_key[cell.against].is_comparable
    }
    paired = {
        key: paired_blocks.log_ratios(cell, base, rejected=_rejected(run))
        for key, (base, cell) in pairs.items()
    }
    paired = {key: row for key, row in paired.items() if row}
    told = answers_of(run, pairs, paired, equivalence=equivalence)
    bases = {base.key for base, _ in pairs.values()}
    blocks = max((answer.blocks for answer in told.values()), default=0)
    return [
        _held_against(run, pairs[cell.key][0], cell, told, equivalence)
        if cell.key in told
        else replace(cell, comparison=_itself(cell.key, bool(rates_by_block(cell)), blocks, "A"))
        if cell.key in bases
        else cell
        for cell in cells
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
    paired = {
        cell.key: paired_blocks.log_ratios(cell, base, rejected=_rejected(run))
        for cell in fit
        # bytes a second of another size of message differ
        if cell.key != reference and rates[cell.key] and cell.key in alike
    }
    told = answers_of(
        run,
        {key: (base, by_key[key]) for key in paired},
        {key: {at: one for at, one in row.items() if at in blocks} for key, row in paired.items()},
        equivalence=equivalence,
    )
    chosen = "declared" if declared else "the fastest in the pilot block, which is not compared"
    return [
        replace(cell, comparison=_itself(reference, bool(rates[reference]), len(blocks), chosen))
        if cell.key == reference
        else _held_against(run, base, cell, told, equivalence)
        if cell.key in told
        else cell
        for cell in cells
    ]


def _rejected(run: RunRecord) -> frozenset[str]:
    return rejecting(run.info.measure.get("tolerate") or ())


def _itself(key: str, is_measured: bool, blocks: int, chosen: str) -> Comparison:
    return Comparison(key, 1.0 if is_measured else None, None, "reference", blocks, None, chosen)


def _held_against(
    run: RunRecord,
    base: CellResult,
    cell: CellResult,
    told: Mapping[str, compare.Answer],
    equivalence: float,
) -> CellResult:
    """Give a cell with its comparison, one of those that were answered together."""
    until_answered = stopping.is_until_answered(run)
    looks = stopping.shared_looks(run) if until_answered else stopping.looks(run)
    answer = told[cell.key]
    is_sequence = until_answered and len(told) == 1
    comparison = _comparison(base, cell, answer, len(told), len(looks), is_sequence=is_sequence)
    comparison = with_bias(comparison, base, cell, equivalence)
    if answer.is_bound:
        comparison = lost_trials.as_bound(comparison)
    comparison = _unless_contended(comparison, base, cell, _rejected(run))
    judged = noisy_rounds.marked(cell, base)
    return replace(_beside(base.rate, judged, comparison.ratio), comparison=comparison)


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
        meaning = f"{interval.meaning}{BROUGHT}"
        interval = replace(scaled(interval, factor), meaning=meaning)
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
