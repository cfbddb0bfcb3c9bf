"""Fit the cost of a network from a run's own all-reduces."""

from __future__ import annotations

from dataclasses import dataclass

from harness.analysis.results import Results
from harness.verdicts.results import CellResult


@dataclass(frozen=True)
class MessageSweep:
    """Who measured the network, and how long an all-reduce of so many bytes takes there."""

    name: str
    alpha_s: float
    beta_s: float

    def seconds(self, ranks: int, size: float) -> float:
        """Give the time of one all-reduce around a ring."""
        return 2 * (ranks - 1) * (self.alpha_s + self.beta_s * size / ranks)


def sweep_like(results: Results, cell: CellResult) -> MessageSweep | None:
    """Fit the all-reduces of a cell's run, over nodes or within one as the cell is.

    Its own framework's and strategy's come first, else another's.
    """
    from harness.stats.growth.growth import fabric  # brings numpy

    found: dict[tuple[bool, bool, str], list[tuple[int, float, float]]] = {}
    for one in results.cells:
        size = one.factors.get("message_bytes")
        is_near = one.run == cell.run and _is_apart(one) == _is_apart(cell)
        if one.workload == "all-reduce" and is_near and size and one.rate:
            whose = (one.framework != cell.framework, one.strategy != cell.strategy)
            name = f"{one.framework} {one.strategy}"
            took = float(size) / one.rate.value
            found.setdefault((*whose, name), []).append((one.scale.devices, float(size), took))
    for (_, _, name), sweep in sorted(found.items()):
        fitted = fabric(sweep)
        if fitted is not None:
            return MessageSweep(name, fitted.alpha_s, fitted.beta_s)
    return None


def gradient_bytes(cell: CellResult) -> int | None:
    """Count the bytes of a cell's gradients, which are exchanged as float32."""
    return 4 * cell.parameters if cell.parameters else None


def _is_apart(cell: CellResult) -> bool:
    return cell.scale.nodes > 1
