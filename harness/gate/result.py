"""The gate's result for a cell: its two parts, joined and put into words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from functools import partial
from typing import Any

from harness import plugins
from harness.gate.own_updates import EPSILON
from harness.gate.semantics import TensorComparison, held
from harness.plan.cell import Cell
from harness.store.records import (
    DIFFERS,
    EQUIVALENT,
    EXAMINATION_FAILED,
    IN_PART,
    NAMED,
    NOT_CHECKED,
)
from harness.study.framework import framework_info
from harness.worker.network.shapes import sites
from harness.worker.network.workload import SGD

WITHOUT_FLOAT64 = "the whole network in float64: its layers' outputs, its loss and every gradient"
WITHOUT_UPDATES = "updates: what the optimiser makes of gradients, and running statistics"
"""What nobody has seen of a framework that computes in narrower types only."""


@dataclass(frozen=True)
class GatePart:
    """One half of the gate for one cell."""

    finding: TensorComparison | None
    """None: it could not be done."""
    why: str | None = None
    is_unsupported: bool = False
    facts: Mapping[str, Any] | None = None
    log: str = ""
    """What it printed, where it failed."""

    @property
    def has_failed(self) -> bool:
        """Whether it ended without a finding though the framework never declined it."""
        return self.finding is None and not self.is_unsupported


@dataclass(frozen=True)
class Result:
    """The gate's result for one cell."""

    state: str
    """One of the states in ``harness/store/records.py``."""
    detail: str
    semantics: Mapping[str, Any] | None = None
    timed: Mapping[str, Any] | None = None
    ranks: Mapping[str, Any] | None = None
    """Of cells whose ranks train together."""
    feed: Mapping[str, Any] | None = None
    """Of cells that train on files."""
    not_shown: tuple[str, ...] = ()
    log: str = ""
    """What a failed examination printed, until it is kept in a file."""

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


def with_log(result: Result, place: str) -> Result:
    """Name the file in which the log of a failed examination is kept."""
    return replace(result, detail=f"{result.detail}; its log: {place}", log="")


def joined(semantics: GatePart, timed: GatePart, cell: Cell, at: str) -> Result:
    """Join both halves: what differs comes first, then what is missing; ``at`` says the size."""
    precision = str(cell.factors["precision"])
    result = partial(Result, semantics=record(semantics), timed=record(timed))
    for part, what in ((semantics, "float64"), (timed, precision)):
        if part.finding is not None and part.finding.differs is not None:
            return result(DIFFERS, f"{part.finding.differs}; in {what}{at}")
    for part, what in ((timed, f"{precision} as timed"), (semantics, "float64")):
        if part.has_failed:
            return result(EXAMINATION_FAILED, f"{what}: {part.why}", log=part.log)
    if timed.finding is None:
        both = semantics.finding is None and semantics.is_unsupported
        which = "" if both else f"{precision} as timed: "
        return result(NOT_CHECKED, f"{which}{timed.why}")
    layers = f"{precision} layer by layer, {_error(timed.finding)}"
    if semantics.finding is None:
        declared = _declared(cell)
        updates = ", and the optimiser's updates" if timed.finding.has_updates else ""
        detail = f"{layers}{updates}{at}; not in float64: {semantics.why}"
        detail += f"; declared to differ: {declared}" if declared else ""
        return result(IN_PART, detail, not_shown=tuple(_left_open(timed)))
    how = _compiled(semantics) if cell.factors.get("compile") else ""
    detail = f"float64{how}, {_error(semantics.finding)}; {layers}{at}"
    if semantics.finding.named or timed.finding.named:
        return result(NAMED, f"{_declared(cell)}; else {detail}")
    return result(EQUIVALENT, detail)


def _left_open(timed: GatePart) -> Iterator[str]:
    """Say what nobody has seen of a framework that computes in narrower types only."""
    assert timed.finding is not None
    yield WITHOUT_FLOAT64
    if not timed.finding.has_updates:
        yield WITHOUT_UPDATES
    yield from (timed.facts or {}).get("not_shown", ())


def _compiled(semantics: GatePart) -> str:
    """Note whether the float64 step was compiled as the timed one is, and if not, why."""
    why = (semantics.facts or {}).get("eager")
    return f" eager ({why})" if why else " compiled"


def _declared(cell: Cell) -> str:
    """Describe the declared differences of a framework that concern this network."""
    workload = plugins.workload(cell.workload, cell.factors)
    names = [name for site in sites(workload.network) for name in held(site)]
    names += [] if isinstance(workload.optimiser, SGD) else [EPSILON]
    differs = framework_info(cell.adapter).differs
    found = [one.why for one in differs if any(fnmatch(name, one.tensors) for name in names)]
    return "; ".join(dict.fromkeys(found))


def _error(finding: TensorComparison) -> str:
    return f"{finding.error or 0:.0e}"


def record(part: GatePart) -> dict[str, Any]:
    """Give a part as JSON, without its log."""
    return {name: value for name, value in asdict(part).items() if name != "log"}


def read(raw: Mapping[str, Any]) -> GatePart:
    """Read a stored part."""
    finding = raw["finding"]
    return GatePart(**{**raw, "finding": None if finding is None else TensorComparison(**finding)})
