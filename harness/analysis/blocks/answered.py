"""Decide when each comparison of a run is answered, where its study goes on until it is.

One cell beside the reference may be looked at after each block: its interval holds at any time.
Several are looked at after as many blocks as were declared, and share the error. An answer stays as
it was at the look where it fell: its cell leaves, and what is measured afterwards changes nothing
of it. At later looks it is one of the family all the same, with the blocks that it has, so that
those that stay are not favoured for having stayed. A reference leaves with the last cell that is
compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.analysis import stopping
from harness.analysis.blocks.compare_cells import by_task, compared_task
from harness.stats.answers import EQUIVALENCE
from harness.stats.repetition.repeat import Decision
from harness.store.layout import PILOT
from harness.store.records import Repetition, RunRecord, TrialRecord
from harness.units import counted, listed
from harness.verdicts.results import CellResult, TrialResult

_OPEN = ("cannot tell", "contended")
_NAMED = 6
"""Cells that a sentence names."""


def judge(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult], done: int
) -> Decision:
    """Decide after ``done`` blocks, from nothing but these blocks, whether to go on."""
    tasks = [_looked_at(run, some, done, EQUIVALENCE) for some in by_task(cells)]
    if not _waiting(tasks):
        why = f"every comparison is answered after {done} blocks"
        return Decision(True, None, why, (), _left(tasks))
    added = stopping.added(run)
    last = max(block for _, block in run.planned) if added else run.looks[-1]
    left = None
    if not added:
        going_on = {cell.key for cell in cells} - _left(tasks).keys()
        left = stopping.blocks_left(run, trials, done, going_on)
    is_spent = left is not None and left <= 0
    if is_spent and done < last:  # the last look of all has come
        some = by_task(cells)
        tasks = [_looked_at(run, one, done, EQUIVALENCE, is_last=True) for one in some]
    waiting = _waiting(tasks)
    still = f"{counted(len(waiting), 'comparison')} still open" if waiting else "none is open"
    if done >= last:
        why = f"the {'blocks asked for are' if added else f'declared {done} blocks are'} done"
    elif is_spent:
        why = f"the budget ended after {done} blocks"
    else:
        return Decision(False, done + 1, f"after {done} blocks {still}", waiting, _left(tasks))
    return Decision(True, None, f"{why}; {still}", waiting, _left(tasks))


def so_far(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult]
) -> Repetition:
    """Say how far a run's repetition is, and which cells left before its end."""
    own, done = stopping.blocks_done(run, trials)
    looks = stopping.shared_looks(run) if len(cells) > 2 else ()
    if done == 0:
        return Repetition(looks, 0, False, True, "no block is complete")
    told = judge(run, own, cells, done)
    answers = {cell.key: cell.comparison for cell in compared(run, cells, EQUIVALENCE)}
    early = [
        f"{cell.label} after {told.left[cell.key]} ({answer.answer})"
        for cell in cells
        if told.left.get(cell.key, done) < done
        and (answer := answers[cell.key]) is not None
        and answer.answer != "reference"
    ]
    why = told.why + (f"; answered before: {listed(early, _NAMED)}" if early else "")
    return Repetition(looks, done, told.stop, not told.wide, why, told.left)


def compared(run: RunRecord, cells: Sequence[CellResult], equivalence: float) -> list[CellResult]:
    """Compare the cells of each task; what was answered at a look stays as it was then."""
    done = max((trial.block for cell in cells for trial in cell.trials), default=0)
    return [
        cell for some in by_task(cells) for cell in _looked_at(run, some, done, equivalence).cells
    ]


@dataclass(frozen=True)
class _Task:
    """The cells of a task after some blocks."""

    cells: list[CellResult]
    """Compared by all blocks, or as they were when they were answered."""
    waiting: tuple[str, ...]
    """Those that no look has answered yet."""
    left: Mapping[str, int]
    """After which block a cell needed no further one."""


def _waiting(tasks: Sequence[_Task]) -> tuple[str, ...]:
    return tuple(key for task in tasks for key in task.waiting)


def _left(tasks: Sequence[_Task]) -> dict[str, int]:
    return {key: block for task in tasks for key, block in task.left.items()}


def _looked_at(
    run: RunRecord,
    cells: Sequence[CellResult],
    done: int,
    equivalence: float,
    *,
    is_last: bool = False,
) -> _Task:
    """Take the looks at a task, one after the other, until so many blocks are done.

    ``is_last``: there is one after the last block, declared or not.
    """
    first: dict[str, tuple[int, CellResult]] = {}
    for look in (*_looks(run, cells, done), *((done,) if is_last else ())):
        for cell in compared_task(run, _until(cells, look), equivalence=equivalence):
            if _is_compared(cell) and not _is_open(cell):
                first.setdefault(cell.key, (look, cell))
    now = compared_task(run, _until(cells, done), equivalence=equivalence)
    waiting = [
        cell for cell in now if cell.key not in first and (_is_compared(cell) or _is_open(cell))
    ]
    left = {key: look for key, (look, _) in first.items()}
    if not waiting and run.looks[0] <= done:
        last = max(left.values(), default=run.looks[0])
        left = {cell.key: left.get(cell.key, last) for cell in cells}
    return _Task(
        [
            _as_then(cell, *first[cell.key], done)
            if cell.key in first
            else replace(shown, trials=cell.trials)
            for cell, shown in zip(cells, now, strict=True)
        ],
        tuple(cell.key for cell in waiting),
        left,
    )


def _looks(run: RunRecord, cells: Sequence[CellResult], done: int) -> Iterator[int]:
    """Give the looks that were taken at a task: those declared, and after what was added since."""
    added = stopping.added(run)
    shared = {look for look in stopping.shared_looks(run) if not added or look <= added[0]}
    for block in range(run.looks[0], done + 1):
        if block in shared or block in added or _is_alone(_until(cells, block)):
            yield block


def _is_alone(cells: Sequence[CellResult]) -> bool:
    """Whether at most one cell has something to compare with the reference."""
    return sum(cell.is_comparable and bool(_measured(cell)) for cell in cells) <= 2


def _is_compared(cell: CellResult) -> bool:
    return cell.comparison is not None and cell.comparison.answer != "reference"


def _is_open(cell: CellResult) -> bool:
    """Whether an answer is missing, even where all trials so far were rejected."""
    if cell.comparison is None:
        tried = _measured(cell)
        return cell.is_comparable and bool(tried) and not any(trial.counted for trial in tried)
    return cell.comparison.answer in _OPEN


def _measured(cell: CellResult) -> list[TrialResult]:
    return [trial for trial in cell.trials if trial.block != PILOT and trial.rate is not None]


def _as_then(cell: CellResult, look: int, then: CellResult, done: int) -> CellResult:
    """Give a cell with the comparison of the look that answered it."""
    told = then.comparison
    if told is not None and look < done:
        told = replace(told, why=f"{told.why}; answered after {look} blocks, when its trials ended")
    return replace(cell, rate=then.rate, epoch_s=then.epoch_s, comparison=told)


def _until(cells: Sequence[CellResult], block: int) -> list[CellResult]:
    """Give the cells as if the run had ended with this block."""
    return [
        replace(cell, trials=tuple(one for one in cell.trials if one.block <= block))
        for cell in cells
    ]
