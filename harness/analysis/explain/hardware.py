"""Say what the hardware did while a cell was timed: no part of a step shows it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from harness.analysis import numbers
from harness.units import counted
from harness.verdicts.results import CellResult


def hardware(cell: CellResult) -> str:
    """Give cores, clock, what a GPU was busy with and power, as far as they were read; else ""."""
    return ", ".join((*_cores(cell), *_gpu(cell), *_clock(cell), *_power(cell)))


def cores_used(cell: CellResult) -> float | None:
    """Give the cores that a cell's ranks used, on average; None if nothing observed them."""
    used = [
        one.mean
        for one in cell.readings
        if one.name == "cores used" and one.scope.startswith("rank:")
    ]
    return sum(used) if used else None


def _cores(cell: CellResult) -> Iterator[str]:
    used, asked = cores_used(cell), cell.factors.get("threads")
    if used is not None:
        yield f"{numbers.number(used)} cores used" + (
            f" by {counted(asked, 'thread')}" if asked else ""
        )


def _gpu(cell: CellResult) -> Iterator[str]:
    busy = cell.utilisation.get("gpu")
    if busy is not None:
        yield f"a kernel was running {numbers.share(busy)} of the time"


def _clock(cell: CellResult) -> Iterator[str]:
    of = "gpu:" if cell.factors.get("device") == "gpu" else "core:"
    clocks = [one.mean for one in cell.readings if one.name == "clock" and one.scope.startswith(of)]
    if clocks:
        yield f"clock {numbers.number(fmean(clocks) / 1e9)} GHz"


def _power(cell: CellResult) -> Iterator[str]:
    power = cell.utilisation.get("power_w")
    if power is not None:
        yield f"{numbers.number(power)} W"
