"""Decide whether each comparison of a run is answered, where its study goes on until it is.

One cell beside the reference may be looked at after each block: its interval holds at any time.
Several are looked at after as many blocks as were declared, and share the error. What was answered
at the last look stays so; other tasks may go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.analysis import stopping
from harness.analysis.blocks.compare_cells import compared
from harness.stats.answers import EQUIVALENCE
from harness.stats.repetition.repeat import Decision
from harness.store.records import Repetition, RunRecord, TrialRecord
from harness.units import counted
from harness.verdicts.results import CellResult

_OPEN = ("cannot tell", "contended")


def judge(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult], done: int
) -> Decision:
    """Decide after ``done`` blocks, from nothing but these blocks, whether to go on."""
    waiting = tuple(_open(run, cells, done))
    left = stopping.blocks_left(run, trials, done)
    if not waiting:
        return Decision(True, None, f"every comparison is answered after {done} blocks", ())
    still = f"{counted(len(waiting), 'comparison')} still open"
    if done >= run.looks[-1]:
        return Decision(True, None, f"the declared {done} blocks are done; {still}", waiting)
    if left is not None and left <= 0:
        return Decision(True, None, f"the budget ended after {done} blocks; {still}", waiting)
    return Decision(False, done + 1, f"after {done} blocks {still}", waiting)


def so_far(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult]
) -> Repetition:
    """Say how far a run's repetition is."""
    own, done = stopping.blocks_done(run, trials)
    looks = stopping.shared_looks(run) if len(cells) > 2 else ()
    if done == 0:
        return Repetition(looks, 0, False, True, "no block is complete")
    told = judge(run, own, cells, done)
    return Repetition(looks, done, told.stop, not told.wide, told.why)


def _open(run: RunRecord, cells: Sequence[CellResult], done: int) -> Iterator[str]:
    """Name the cells whose comparison has no answer yet."""
    look = max((one for one in stopping.shared_looks(run) if one <= done), default=0)
    now, then = (_until(run, cells, block) for block in (done, look))
    for task in dict.fromkeys(cell.task for cell in now):
        some = [cell for cell in now if cell.task == task and _is_compared(cell)]
        if len(some) > 1:
            keys = {cell.key for cell in some}
            some = [cell for cell in then if cell.key in keys]
        for cell in some:
            if cell.comparison is None or cell.comparison.answer in _OPEN:
                yield cell.key


def _is_compared(cell: CellResult) -> bool:
    return cell.comparison is not None and cell.comparison.answer != "reference"


def _until(run: RunRecord, cells: Sequence[CellResult], block: int) -> list[CellResult]:
    """Compare as if the run had ended with this block."""
    shown = [
        replace(cell, trials=tuple(one for one in cell.trials if one.block <= block))
        for cell in cells
    ]
    return compared(run, shown, EQUIVALENCE)
