"""Say how much faster more devices are, and whether that can be believed.

Trials of one block ran close together in time, so a speed-up is the geometric mean of the
blocks' own ratios, between two of the ordered ratios (``estimate.centre_interval``). Where fewer
than two blocks have both, the ratio of the rates stands without an interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.stats.estimate import OrderInterval, centre, centre_interval

NOISE_OVER_ONE = 1.02
"""An efficiency up to here is noise; above it the baseline is too slow, or the work is not alike"""


@dataclass(frozen=True)
class SpeedUp:
    """What more devices reach against the baseline."""

    ratio: float
    interval: OrderInterval | None
    """None where fewer than two blocks have both."""
    devices: int
    baseline: int

    @property
    def ideal(self) -> float:
        """Give what as many devices could reach at best."""
        return self.devices / self.baseline

    @property
    def efficiency(self) -> float:
        """Give the share of the ideal that was reached."""
        return self.ratio / self.ideal

    @property
    def is_impossible(self) -> bool:
        """Tell whether it is above 100 %, and surely: the whole interval, where there is one."""
        low = self.interval.low if self.interval else self.ratio
        return self.efficiency > NOISE_OVER_ONE and low > self.ideal


def ratio_by_block(
    before: Mapping[int, float], after: Mapping[int, float]
) -> tuple[float, OrderInterval | None] | None:
    """Compare rates by block; without an interval where fewer than two blocks have both."""
    if not before or not after or min(*before.values(), *after.values()) <= 0:
        return None
    ratios = [after[block] / before[block] for block in sorted(before.keys() & after.keys())]
    if len(ratios) > 1:
        return centre(ratios), centre_interval(ratios)
    return centre(list(after.values())) / centre(list(before.values())), None


def speed_up(
    before: Mapping[int, float], after: Mapping[int, float], *, baseline: int, devices: int
) -> SpeedUp | None:
    """Compare rates by block: those of the baseline, and those of so many devices."""
    found = ratio_by_block(before, after)
    return None if found is None else SpeedUp(*found, devices, baseline)
