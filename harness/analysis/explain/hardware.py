"""Say what the hardware did while a cell was timed: no part of a step shows it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from harness.analysis import numbers
from harness.analysis.explain.step_shares import step_s
from harness.units import counted
from harness.verdicts.results import CellResult

_MUCH = 0.05
"""Of the cores used: less for the operating system is usual."""
_MANY_FAULTS = 1000
"""Fewer say little: one costs a microsecond or two."""


def hardware(cell: CellResult) -> str:
    """Give cores and page faults, GPU, clock and power, as far as they were read."""
    parts = (_cores(cell), _gpu(cell), _clock(cell), _power(cell))
    return ", ".join(told for part in parts for told in part)


def cores_used(cell: CellResult) -> float | None:
    """Give the cores that a cell's ranks used, on average; None if nothing observed them."""
    return _of_ranks(cell, "cores used")


def _of_ranks(cell: CellResult, name: str) -> float | None:
    used = [one.mean for one in cell.readings if one.name == name and one.scope.startswith("rank:")]
    return sum(used) if used else None


def _cores(cell: CellResult) -> Iterator[str]:
    used, asked = cores_used(cell), cell.factors.get("threads")
    if used is not None:
        ranks = f"{cell.scale.ranks} ranks of " if cell.scale.ranks > 1 else ""
        each = " each" if ranks else ""
        yield f"{numbers.number(used)} cores used" + (
            f" by {ranks}{counted(asked, 'thread')}{each}" if asked else ""
        )
        yield from of_system(cell)


def of_system(cell: CellResult) -> Iterator[str]:
    """Say how much of its cores' time the operating system took, and how often for memory."""
    used, system = cores_used(cell), _of_ranks(cell, "cores used by the operating system")
    if used and system is not None and system >= _MUCH * used:
        yield f"{numbers.share(system / used)} of that by the operating system"
    rates = [one.mean for one in cell.readings if one.name == "page faults"]
    if rates and cell.rate is not None:
        each = sum(rates) * step_s(cell)
        if each >= _MANY_FAULTS:
            yield f"{numbers.number(each)} page faults a step on its nodes"


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
