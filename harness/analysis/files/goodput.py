"""Compute goodput: the time of computing alone over the time that everything took.

What computing takes is measured by the same training on batches that cost nothing, in the same
blocks; where reading is the work it is what the stand-in for a model was asked to take. A share
above one cannot be: then what was to be undisturbed was disturbed, and nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from harness.analysis import numbers
from harness.analysis.results import Results
from harness.stats.estimate import centre
from harness.verdicts.results import CellResult, TrialResult
from harness.verdicts.thresholds import REJECTING

ALIKE = 0.9
"""Within a tenth two rates are the same."""
_OF_INPUT = frozenset(
    ("input", "format", "samples", "reader", "reader_threads", "prefetch", "buffers")
) | {"buffer_samples", "shuffle", "decode", "tier", "cache", "container", "compute", "compute_ms"}
_STRIPES = frozenset({"stripe_count", "stripe_mb"})


@dataclass(frozen=True)
class Goodput:
    """A share, or why there is none."""

    share: float | None
    why: str = ""


@dataclass(frozen=True)
class ComputeOnly:
    """The rate of a cell's computing when nothing has to be read."""

    rate: float
    """Units of work per second over all ranks."""
    disturbed: str = ""
    """What disturbed its own measurement, if anything did."""


def goodput(cell: CellResult, results: Results) -> Goodput | None:
    """Give the goodput of a cell that reads and computes; None for one that only reads."""
    if cell.rate is None or not computes(cell):
        return None
    if not is_training(cell):
        return _of_stand_in(cell, cell.rate.value)
    other = without_input(cell, results)
    if other is None:
        return Goodput(None, "needs the same training with input = synthetic")
    theirs = {one.block: one for one in _counted(other)}
    pairs = [(one, theirs[one.block]) for one in _counted(cell) if one.block in theirs]
    if not pairs:
        return Goodput(None, "no block has a counted trial of both")
    share = centre([one.rate / own.rate for one, own in pairs if one.rate and own.rate])
    slowed = disturbed(own for _, own in pairs)
    return _judged(share, "the same training that reads nothing", slowed)


def _judged(share: float, baseline: str, slowed: str) -> Goodput:
    if share > 1 / ALIKE:
        why = slowed or "nothing was seen that explains it"
        ratio = numbers.ratio(share)
        return Goodput(
            None, f"cannot tell: {ratio} × as fast as {baseline}, which was slowed ({why})"
        )
    if share > 1:
        return Goodput(None, f"nothing is lost that shows: {numbers.ratio(share)} × {baseline}")
    if slowed:
        at_most = numbers.share(share)
        return Goodput(None, f"at most {at_most}: {baseline} was itself disturbed ({slowed})")
    return Goodput(share)


def compute_only(cell: CellResult, results: Results) -> ComputeOnly | None:
    """Say how fast a cell's computing is with input that costs nothing; None where unknown."""
    if not is_training(cell):
        return ComputeOnly(cell.scale.batch_per_step * 1e3 / cell.factors["compute_ms"])
    other = without_input(cell, results)
    if other is None or other.rate is None:
        return None
    return ComputeOnly(other.rate.value, disturbed(_counted(other)))


def without_input(cell: CellResult, results: Results) -> CellResult | None:
    """Find the same training on batches that cost nothing, in the same run."""
    ignored = _OF_INPUT
    if cell.factors.get("checkpoint_every") is None:
        ignored |= _STRIPES  # then only the files that are read are striped
    names = cell.factors.keys() - ignored
    for other in results.cells:
        if (
            (other.run, other.workload, other.framework, other.strategy, other.options)
            == (cell.run, cell.workload, cell.framework, cell.strategy, cell.options)
            and other.factors.get("input") == "synthetic"
            and not other.refusal
            and all(other.factors.get(name) == cell.factors[name] for name in names)
        ):
            return other
    return None


def computes(cell: CellResult) -> bool:
    """Whether a step does anything but read."""
    return is_training(cell) or (cell.factors.get("compute") or "none") != "none"


def is_training(cell: CellResult) -> bool:
    """Whether a network is trained on the files read."""
    return cell.factors.get("input") == "files"


def _of_stand_in(cell: CellResult, rate: float) -> Goodput:
    """Give the share of an epoch that its batches were to compute for; the last may be smaller."""
    samples = cell.factors["samples"]
    batches = ceil(samples / cell.scale.batch_per_step)
    share = batches * cell.factors["compute_ms"] / 1e3 / (samples / rate)
    if share > 1:
        took = numbers.share(1 / share)
        why = f"an epoch took {took} of the time that its stand-in was asked to take"
        return Goodput(None, f"cannot tell: {why}")
    return Goodput(share)


def _counted(cell: CellResult) -> list[TrialResult]:
    return [one for one in cell.trials if one.counted and one.rate is not None]


def disturbed(trials: Iterable[TrialResult]) -> str:
    """Give the evidence of a trial that counts only because its study tolerates the disturbance."""
    for one in trials:
        if one.verdict in REJECTING:
            return one.evidence[0] if one.evidence else str(one.verdict)
    return ""
