"""Say how much memory a cell's trial takes, from its earlier trials or by a guess.

What trials use at most is known once one of them has ended: the pilot, the cold trial, the first
block. Before, a guess must do, rather too high than too low.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.machine import share
from harness.plan.cell import Cell
from harness.store.outcome import Outcome

_MARGIN = 1.1
_AGENT_BYTES = 100 * 2**20
"""Each trial that lives has an agent beside it."""
_FRAMEWORK_BYTES = 1536 * 2**20
"""What a rank takes before it does anything, for a first guess only."""
_PER_PARAMETER = 16
"""Weights, gradients and two moments of the optimiser, in fp32."""
_MACS_PER_VALUE = 300
"""Multiplications of a network for each value that its backward pass needs again, about."""
_PER_VALUE = 8
_KEPT_FREE = 0.2
"""Share of the memory at hand that stays unused: the page cache and everybody else need some."""


class MemoryUse:
    """What the trials of a run have used so far."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._most: dict[str, int] = {}
        for one in outcomes:
            self.saw(one)

    def saw(self, outcome: Outcome) -> None:
        """Learn from a trial that ended well."""
        used = sum(rank.max_rss_bytes or 0 for rank in outcome.ranks)
        if outcome.is_ok and used:
            key = outcome.cell_key
            self._most[key] = max(used, self._most.get(key, 0))

    def needed_bytes(self, cell: Cell) -> int:
        """Give what one trial of a cell takes while it lives."""
        return _AGENT_BYTES + int(_MARGIN * (self._most.get(cell.key) or _guess(cell)))


def available_bytes() -> int | None:
    """Give the memory that trials may share here; None where nothing says it."""
    free = share.free_memory_bytes()
    return None if free is None else int(free * (1 - _KEPT_FREE))


def _guess(cell: Cell) -> int:
    values = (cell.macs or 0) // _MACS_PER_VALUE * cell.scale.batch_per_rank
    each = _FRAMEWORK_BYTES + _PER_PARAMETER * (cell.parameters or 0) + _PER_VALUE * values
    return each * cell.scale.ranks
