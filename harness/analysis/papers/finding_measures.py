"""State what a study's finding may ask for: the figure of a trial, and how two cells are compared.

Each figure follows from columns that ``bakeoff sql`` has, or from a trial's events, as
``docs/method.md`` says beside its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.stats.scaling import NOISE_OVER_ONE
from harness.verdicts.credibility.plausible import SAMPLES
from harness.verdicts.results import CellResult, TrialResult

Figure = Callable[[CellResult, TrialResult], float | None]

RATIO, DIFFERENCE, PER_DEVICE, AGREEMENT = "ratio", "difference", "per device", "agreement"
"""How the cell in question is held against another, block by block; losses agree over seeds."""
_DISK_BUSY = "had a request open"


@dataclass(frozen=True)
class FindingMeasure:
    """One quantity that a finding may ask for."""

    figure: Figure
    unit: str
    """Of the figure alone, ``{}`` standing for the unit of the cell's work."""
    compared: str = RATIO
    is_rate: bool = False
    """Whether its middle is that of rates; of others it is the median."""
    needs_over: bool = False
    """Whether it says nothing of one cell alone."""
    absent: str = "nothing was recorded of it"
    """Why a trial has no figure, as far as the quantity itself says."""


def _rate(cell: CellResult, trial: TrialResult) -> float | None:
    return trial.rate


def _step_s(cell: CellResult, trial: TrialResult) -> float | None:
    """Divide the work of a step by the rate, which counts what stands between steps too."""
    return cell.work_per_step / trial.rate if trial.rate and cell.unit in SAMPLES else None


def _waited(cell: CellResult, trial: TrialResult) -> float | None:
    share = None if trial.input is None else trial.input.wait_share
    return None if share is None else 100 * share


def _input_s(cell: CellResult, trial: TrialResult) -> float | None:
    step_s, share = _step_s(cell, trial), None if trial.input is None else trial.input.wait_share
    return None if step_s is None or share is None else step_s * share


def _calls(cell: CellResult, trial: TrialResult) -> float | None:
    return None if trial.input is None else trial.input.calls_per_epoch


def _blocked(cell: CellResult, trial: TrialResult) -> float | None:
    return None if trial.checkpoints is None else trial.checkpoints.blocking_s


def _utilisation(cell: CellResult, trial: TrialResult) -> float | None:
    busy = trial.utilisation.get("gpu" if cell.factors.get("device") == "gpu" else "cpu")
    return None if busy is None else 100 * busy


def _memory(cell: CellResult, trial: TrialResult) -> float | None:
    busy = trial.utilisation.get("gpu_memory") if cell.factors.get("device") == "gpu" else None
    return None if busy is None else 100 * busy


def busiest_disk(trial: TrialResult) -> float | None:
    """Give the share of time in which a disk had a request open: that of the busiest.

    Partitions are disks too, so that a sum would count twice.
    """
    busy = (
        one.mean
        for one in trial.readings
        if one.scope.startswith("disk:") and one.name == _DISK_BUSY
    )
    return max(busy, default=None)


def _disk(cell: CellResult, trial: TrialResult) -> float | None:
    share = busiest_disk(trial)
    return None if share is None else 100 * share


def _start_s(cell: CellResult, trial: TrialResult) -> float | None:
    return max((one.entered_s + one.opened_s for one in trial.starts), default=None)


def _energy(cell: CellResult, trial: TrialResult) -> float | None:
    power = trial.utilisation.get("power_w")
    per_sample = cell.work_per_step / cell.scale.batch_per_step
    return None if power is None or not trial.rate else power / trial.rate * per_sample


def _epoch_s(cell: CellResult, trial: TrialResult) -> float | None:
    """Give the time of an epoch at the measured rate: no epoch need have been trained."""
    if cell.epoch_s is None or cell.rate is None or not trial.rate:
        return None
    return cell.epoch_s.value * cell.rate.value / trial.rate


def _loss(cell: CellResult, trial: TrialResult) -> float | None:
    return None if trial.last_loss is None else trial.last_loss.value


MEASURES: Mapping[str, FindingMeasure] = {
    "rate": FindingMeasure(_rate, "{} per second", is_rate=True),
    "waited": FindingMeasure(_waited, "% of the time"),
    "calls": FindingMeasure(_calls, "reads per epoch"),
    "blocked": FindingMeasure(_blocked, "s"),
    "input_s": FindingMeasure(_input_s, "s of a step"),
    "overhead_s": FindingMeasure(_step_s, "s of a step", DIFFERENCE, needs_over=True),
    "efficiency": FindingMeasure(_rate, "{} per second", PER_DEVICE, needs_over=True),
    "utilisation": FindingMeasure(_utilisation, "% busy"),
    "memory": FindingMeasure(_memory, "% of the time", absent="only a GPU tells of its memory"),
    "disk": FindingMeasure(_disk, "% of the time"),
    "start_s": FindingMeasure(_start_s, "s"),
    "epoch_s": FindingMeasure(_epoch_s, "s for an epoch"),
    "energy": FindingMeasure(_energy, "J per one of {}"),
    "loss": FindingMeasure(_loss, "loss of training", AGREEMENT),
}
"""By the word of `finding.measure`."""


def why_impossible(measure: str, value: float | None) -> str:
    """Say why a figure cannot be of what was asked; "" where it can."""
    if measure == "efficiency" and value is not None and value > NOISE_OVER_ONE:
        return "more than linear, so its baseline was slowed"
    if measure == "overhead_s" and value is not None and value < 0:
        return "less than nothing, so it is noise or its baseline was slowed"
    return ""
