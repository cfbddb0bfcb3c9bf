"""Say why a run of which nothing is left is no success: what an exit code of 1 then stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.analysis.context.trial_tally import tally
from harness.store.records import DIFFERS, EXAMINATION_FAILED
from harness.units import counted, listed

if TYPE_CHECKING:
    from harness.analysis.results import Results


def shortcomings(results: Results, *, lost: int = 0) -> tuple[str, ...]:
    """Give them in sentences; none of a success. ``lost`` planned trials gave no good end.

    A run none of whose trials counts is no success, however well they all ended, nor is one with a
    cell that computes something else than it should, or whose examination failed.
    """
    return (*_lost(lost), *_nothing_counts(results), *_wrong(results))


def _lost(lost: int) -> Iterator[str]:
    if lost:
        trials = counted(lost, "planned trial")
        yield f"{trials} did not end well: failed, or skipped because the cell cannot succeed."


def _nothing_counts(results: Results) -> Iterator[str]:
    trials = tally(results.cells)
    if not trials.counted:
        why = Counter(str(trial.verdict or trial.outcome) for trial in trials.made)
        told = ", ".join(f"{count} {word}" for word, count in why.most_common())
        yield f"None of {trials} counts{f': {told}' if told else ''}."


def _wrong(results: Results) -> Iterator[str]:
    for state in (DIFFERS, EXAMINATION_FAILED):
        cells = [cell.label for cell in results.cells if cell.gate.state == state]
        if cells:
            yield f"Gate: {state}: {listed(cells)}."
