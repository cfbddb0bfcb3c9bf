"""Take one cell's step apart: its phases, its layers, its operations, and why nothing ran.

Everything is a share of the step as its trials timed it. What a trace divides is of the traced
steps, scaled to the timed one; waiting for input is of the trials, and so is gradients' exchange
that hides behind nothing, where no trace tells it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.explain.step_shares import (
    EXCHANGE,
    GAPS,
    INPUT,
    UNEXPLAINED,
    Key,
    StepShares,
    as_traced,
    step_s,
    timed_shares,
    waited,
    weights,
)
from harness.analysis.scaling.gradient_exchange import ExchangePair
from harness.store.record_readers.attribution import Attribution, Operation
from harness.verdicts.results import CellResult
from harness.worker.attribution.idle import LAUNCH_UNKNOWN, NOT_BEGUN

WAITING, HOST, OTHER = "waiting for input", GAPS, "other"
PHASES = (
    *("forward", "loss", "backward", "update", "layout copy", "plain copy"),
    *(HOST, OTHER, WAITING, EXCHANGE),
)
"""Of which a step is made, in the order in which they are shown."""
_LEAST = 1e-6
"""Of a step; less is what rounding left."""
_PLACES, _ELSEWHERE = 3, "elsewhere"
"""Before so many parts of the step a CPU's gaps are told one by one."""
NO_DEVICE_TRACK = (
    "no trace tells what the device did: how its idle time divides between the host, its own "
    "kernels and the rest is not known"
)
GPU = "gpu"


@dataclass(frozen=True)
class Site:
    """One layer in one pass."""

    key: Key
    share: float
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Kind:
    """One kind of operation, wherever it ran."""

    name: str
    share: float
    """Of the step."""
    times: float
    """A step."""


@dataclass(frozen=True)
class Anatomy:
    """One cell's step."""

    cell: CellResult
    step_s: float
    phases: Mapping[str, float]
    """Shares of the step by phase; without an attribution only what trials tell."""
    error: Mapping[str, float]
    """Their standard errors over the traced steps."""
    sites: tuple[Site, ...]
    """Those that take longest first."""
    kinds: tuple[Kind, ...]
    """Those that take longest first; the rest, which the trace did not list, has no name."""
    undivided: str
    """Why the rest of the step is not divided; empty where it is."""
    exchange_why: str
    """Why it is not known what exchange costs; empty where it is, or where there is none."""
    traced: str
    """What traced how many steps; empty where nothing did."""
    gaps: Mapping[str, float]
    """What a device waited for in its gaps, or before what those on a CPU lie, as shares of the
    step; empty where no trace tells."""

    @property
    def idle(self) -> tuple[tuple[str, float], ...]:
        """Say in which part of the step nothing ran, by cause, as far as that is known."""
        known = (HOST, WAITING, EXCHANGE)
        divided = {f"{HOST}, {why}": share for why, share in self.gaps.items()}
        found = {name: self.phases[name] for name in known if name in self.phases}
        if divided:
            found = {**divided, **{name: one for name, one in found.items() if name != HOST}}
        return tuple(found.items())

    @property
    def not_by_host(self) -> tuple[float, float]:
        """Give the shares of a device's gaps that no host made: its own, and of unknown cause."""
        return self.gaps.get(NOT_BEGUN, 0.0), self.gaps.get(LAUNCH_UNKNOWN, 0.0)

    @property
    def of_device(self) -> str:
        """Say what is not known of a device's idle time; empty for a cell without one."""
        is_unknown = self.cell.factors.get("device") == GPU and not self.gaps
        return NO_DEVICE_TRACK if is_unknown else ""

    @property
    def unknown(self) -> float:
        """Give the share of the step of which nothing is known."""
        return max(0.0, 1 - sum(self.phases.values()))


def anatomy(cell: CellResult, divided: Attribution | str, pair: ExchangePair | None) -> Anatomy:
    """Take a cell's step apart as far as it was measured; it has a rate."""
    shares = timed_shares(cell, divided)
    if isinstance(shares, str) or isinstance(divided, str):
        why = shares if isinstance(shares, str) else ""
        exchange, exchange_why = _exchange(cell, pair)
        told = {WAITING: waited(cell)} if _is_fed(cell) else {}
        told |= {EXCHANGE: exchange} if exchange is not None else {}
        told |= _without_kernels(cell, sum(told.values()))
        return Anatomy(cell, step_s(cell), told, {}, (), (), why, exchange_why, "", {})
    phases, squares = defaultdict[str, float](float), defaultdict[str, float](float)
    for key, part in shares.parts.items():
        phases[_phase(key)] += part.mean
        squares[_phase(key)] += part.error**2
    ordered = {name: phases[name] for name in PHASES if name in phases}
    sites = [
        Site(key, part.mean, part.operations)
        for key, part in shares.parts.items()
        if key not in (INPUT, ("", HOST), ("", EXCHANGE))
    ]
    return Anatomy(
        cell,
        step_s(cell),
        ordered,
        {name: square**0.5 for name, square in squares.items()},
        tuple(sorted(sites, key=lambda one: -one.share)),
        _kinds(divided, 1 - waited(cell)),
        "",
        "" if EXCHANGE in phases or not _is_of_ranks(cell) else "its trace names none",
        as_traced(cell, shares),
        _gaps(cell, shares),
    )


def _gaps(cell: CellResult, shares: StepShares) -> dict[str, float]:
    """Divide a device's gaps by what it waited for, those on a CPU by what came next."""
    part = shares.parts.get(("", HOST))
    if part is None or not part.operations:
        return {}
    if cell.factors.get("device") == GPU:
        return {one.name: one.share * part.mean for one in part.operations}
    longest = sorted(part.operations, key=lambda one: -one.share)[:_PLACES]
    rest = 1 - sum(one.share for one in longest)
    told = {one.name: one.share * part.mean for one in longest}
    return told | ({_ELSEWHERE: rest * part.mean} if rest > _LEAST else {})


def _without_kernels(cell: CellResult, told: float) -> dict[str, float]:
    """Give the share in which no kernel ran on a GPU: at least that, as a driver's reading says.

    It calls a GPU busy for the whole of a period in which any kernel ran.
    """
    busy = cell.utilisation.get("gpu")
    if cell.factors.get("device") != GPU or busy is None:
        return {}
    return {HOST: max(0.0, 1 - busy - told)}


def _is_fed(cell: CellResult) -> bool:
    return any(
        one.input is not None and one.input.wait_share is not None
        for one in cell.trials
        if one.counted
    )


def _phase(key: Key) -> str:
    return {UNEXPLAINED: OTHER, INPUT: WAITING}.get(key, key[1])


def _kinds(of: Attribution, whole: float) -> tuple[Kind, ...]:
    """Add up each kind of operation over all layers; ``whole`` is the share that was traced."""
    counting = weights(of)
    took, times = defaultdict[str, float](float), defaultdict[str, float](float)
    for part in of.parts:
        share = fmean(part.shares[at] * each for at, each in counting.items()) * whole
        if part.phase == HOST:
            continue
        for one in part.operations:
            took[one.name] += one.share * share
            times[one.name] += one.times
        took[""] += max(0.0, 1 - sum(one.share for one in part.operations)) * share
    found = (Kind(name, share, times[name]) for name, share in took.items() if share > _LEAST)
    return tuple(sorted(found, key=lambda one: (not one.name, -one.share)))


def _is_of_ranks(cell: CellResult) -> bool:
    """Tell whether devices exchange gradients in a cell's step."""
    return cell.scale.devices > 1 and cell.factors.get("communicate") is not False


def _exchange(cell: CellResult, pair: ExchangePair | None) -> tuple[float | None, str]:
    """Give the exposed exchange's share of the step, or why it is not known."""
    if not _is_of_ranks(cell):
        return None, ""
    if pair is not None:
        return min(1.0, max(0.0, pair.exposed_s / pair.whole_s)), ""
    return None, "needs the same cell with communicate = false"
