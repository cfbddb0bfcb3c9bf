"""The gate's result for a cell: its two parts, joined and put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from typing import Any

from harness import plugins
from harness.gate.semantics import TensorComparison, held
from harness.plan.cell import Cell
from harness.study.framework import framework_info
from harness.worker.network.shapes import sites

EQUIVALENT = "equivalent"
NAMED = "named difference"
DIFFERS = "differs"
NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class GatePart:
    """One half of the gate for one cell."""

    finding: TensorComparison | None
    """None: it could not be done."""
    why: str | None = None
    is_unsupported: bool = False
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Result:
    """The gate's result for one cell."""

    state: str
    """equivalent, named difference, differs, not checked."""
    detail: str
    semantics: Mapping[str, Any] | None = None
    timed: Mapping[str, Any] | None = None
    ranks: Mapping[str, Any] | None = None
    """Of cells whose ranks train together."""

    def __str__(self) -> str:
        return (
            f"{self.state} ({self.detail})"
            if self.state == EQUIVALENT
            else (
                f"{self.state} at {self.detail}"
                if self.state == DIFFERS
                else f"{self.state}: {self.detail}"
            )
        )


def joined(semantics: GatePart, timed: GatePart, cell: Cell, at: str) -> Result:
    """Join both halves: what differs comes first, then what is missing; ``at`` says the size."""
    precision = str(cell.factors["precision"])
    records = {"semantics": record(semantics), "timed": record(timed)}
    for part, what in ((semantics, "float64"), (timed, precision)):
        if part.finding is not None and part.finding.differs is not None:
            return Result(DIFFERS, f"{part.finding.differs}; in {what}{at}", **records)
    if timed.finding is None:
        both = semantics.finding is None and semantics.is_unsupported
        which = "" if both else f"{precision} as timed: "
        return Result(NOT_CHECKED, f"{which}{timed.why}", **records)
    layers = f"{precision} layer by layer, {_error(timed.finding)}"
    if semantics.finding is None:
        if not semantics.is_unsupported:
            return Result(NOT_CHECKED, f"float64: {semantics.why}", **records)
        detail = f"{layers}{at}; not in float64: {semantics.why}"
        declared = _declared(cell)
    else:
        how = _compiled(semantics) if cell.factors.get("compile") else ""
        detail = f"float64{how}, {_error(semantics.finding)}; {layers}{at}"
        is_named = semantics.finding.named or timed.finding.named
        declared = _declared(cell) if is_named else ""
    if declared:
        return Result(NAMED, f"{declared}; else {detail}", **records)
    return Result(EQUIVALENT, detail, **records)


def _compiled(semantics: GatePart) -> str:
    """Note whether the float64 step was compiled as the timed one is, and if not, why."""
    why = (semantics.facts or {}).get("eager")
    return f" eager ({why})" if why else " compiled"


def _declared(cell: Cell) -> str:
    """Describe the declared differences of a framework that concern this network."""
    walked = sites(plugins.workload(cell.workload).network)
    names = [name for site in walked for name in held(site)]
    differs = framework_info(cell.adapter).differs
    found = [one.why for one in differs if any(fnmatch(name, one.tensors) for name in names)]
    return "; ".join(dict.fromkeys(found))


def _error(finding: TensorComparison) -> str:
    return f"{finding.error or 0:.0e}"


def record(part: GatePart) -> dict[str, Any]:
    """Give a part as JSON."""
    return asdict(part)


def read(raw: Mapping[str, Any]) -> GatePart:
    """Read a stored part."""
    finding = raw["finding"]
    return GatePart(**{**raw, "finding": None if finding is None else TensorComparison(**finding)})
