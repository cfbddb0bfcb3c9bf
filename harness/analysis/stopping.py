"""Decide from what a run has stored whether its cells were repeated often enough.

The looks were declared in the plan, before the first trial. A session asks between blocks, a
resumed session asks again for the blocks that are there, and a report words the same decision.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from statistics import fmean

from harness.stats import compare
from harness.stats.answers import ALPHA, FEWEST_BLOCKS
from harness.stats.estimate import LEVEL
from harness.stats.repetition.repeat import Decision, decide, declared
from harness.store.layout import PILOT
from harness.store.outcome import Ended
from harness.store.records import Repetition, RunRecord, TrialRecord
from harness.units import counted
from harness.verdicts.results import CellResult

ANSWERED = "answered"


def is_until_answered(run: RunRecord) -> bool:
    """Whether a run's study goes on until its comparisons are answered."""
    return run.info.measure.get("stop") == ANSWERED


def shared_looks(run: RunRecord) -> tuple[int, ...]:
    """Give the looks at several cells of one task, where blocks go on until they are answered."""
    return compare.declared_looks(max(FEWEST_BLOCKS, run.looks[0]), run.looks[-1])


def looks(run: RunRecord) -> tuple[int, ...]:
    """Give the declared looks; none where the number of blocks is fixed."""
    return run.looks if run.info.measure.get("until_interval") is not None else ()


def level(run: RunRecord) -> float:
    """Give the confidence that a run's intervals need: looking repeatedly costs."""
    return declared(looks(run)).level if looks(run) else LEVEL


def alpha(run: RunRecord, block: int, *, cells: int = 1) -> float:
    """Give the error that a run's comparisons, of so many cells at once, may make after a block.

    Each look after blocks that were added may err half as often as the one before, so that however
    often somebody adds some, less than the first looks' error is added in all.
    """
    if is_until_answered(run) and cells == 1:
        return ALPHA  # the sequence holds at any number of looks
    return _declared_alpha(run) / (1 << sum(block > seen for seen in added(run)))


def _declared_alpha(run: RunRecord) -> float:
    if is_until_answered(run):
        return ALPHA / len(shared_looks(run))
    return compare.reachable_looks(looks(run))[1] if looks(run) else ALPHA


def added(run: RunRecord) -> tuple[int, ...]:
    """Give the numbers of blocks after which somebody who had seen the answers asked for more."""
    return tuple(run.info.measure.get("added") or ())


def further_looks(run: RunRecord) -> str | None:
    """Say which looks were taken beyond those declared, and what error that has; None if none."""
    seen = added(run)
    if not seen:
        return None
    blocks = ", ".join(map(str, seen))
    each, declared_each = alpha(run, seen[-1] + 1, cells=2), _declared_alpha(run)
    whole = ALPHA + declared_each - each
    told = (
        f"Blocks were added to this run after the answers of {blocks} blocks had been seen. Its "
        f"comparisons may now err in {each * 100:.3g} % of studies instead of "
        f"{declared_each * 100:.3g} %, which makes at most {whole * 100:.3g} % with all looks "
        f"before, {counted(len(seen) + 1, 'look')} or more."
    )
    if is_until_answered(run):
        told += (
            " Where a single cell is compared with its reference, the error stays as declared, "
            "however often one looks."
        )
    return told


def judge(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult], done: int
) -> Decision:
    """Decide after ``done`` blocks, from nothing but these blocks, whether to go on."""
    measure = run.info.measure
    rates = {
        cell.key: [
            trial.rate
            for trial in cell.trials
            if trial.counted and trial.block <= done and trial.rate is not None
        ]
        for cell in cells
    }
    return decide(
        rates,
        width=measure["until_interval"],
        plan=declared(looks(run)),
        done=done,
        blocks_left=blocks_left(run, trials, done),
    )


def blocks_left(
    run: RunRecord,
    trials: Sequence[TrialRecord],
    done: int,
    going_on: Container[str] | None = None,
) -> int | None:
    """Say how many more blocks the budget pays for; None without one, or before it counts.

    ``going_on`` names the cells that further blocks hold; None: all.
    """
    measure = run.info.measure
    if measure.get("budget_s") is None or done < measure["trials"]:
        return None
    own = [one for one in trials if one.run == run.info.name and one.name.block <= done]
    spent_s = sum(one.outcome.at_work_s for one in own)
    took: dict[str, dict[int, float]] = {}
    for one in own:
        key, block = one.outcome.cell_key, one.name.block
        if block != PILOT and (going_on is None or key in going_on):
            by_block = took.setdefault(key, {})
            by_block[block] = by_block.get(block, 0.0) + one.outcome.at_work_s
    next_s = sum(fmean(by_block.values()) for by_block in took.values())
    return int((measure["budget_s"] - spent_s) // max(next_s, 1e-9))


def blocks_done(run: RunRecord, trials: Sequence[TrialRecord]) -> tuple[list[TrialRecord], int]:
    """Give a run's own trials that say something, and the last block that has any."""
    own = [
        one
        for one in trials
        if one.run == run.info.name and one.outcome.ended is not Ended.CANCELLED
    ]
    return own, max((one.name.block for one in own), default=0)


def so_far(
    run: RunRecord, trials: Sequence[TrialRecord], cells: Sequence[CellResult]
) -> Repetition | None:
    """Say how far a run's repetition is; None where the number of blocks is fixed."""
    own, done = blocks_done(run, trials)
    if not looks(run):
        return None
    if done == 0:
        return Repetition(looks(run), 0, False, True, "no block is complete")
    decision = judge(run, own, cells, done)
    return Repetition(looks(run), done, decision.stop, not decision.wide, decision.why)
