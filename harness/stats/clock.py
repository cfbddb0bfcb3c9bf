"""Do the arithmetic of two clocks: offset, drift, and how far both may be wrong.

A question leaves at t1, is received there at t2, answered at t3 and back at t4; t1 and t4 are read
here, t2 and t3 there. Whatever the two ways took, the other clock was ahead by
((t2 - t1) + (t3 - t4)) / 2, give or take half of the time that the two ways took together: no
assumption about them is needed (Cristian 1989; RFC 5905). Of a burst the quickest exchange tells
most. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WANDER = 100e-6
"""How fast two quartz clocks may part, beyond what was fitted: each may be off by half of this."""


@dataclass(frozen=True)
class RoundTrip:
    """One question and its answer."""

    t1: int
    t2: int
    t3: int
    t4: int

    @property
    def offset_ns(self) -> float:
        """By how much the other clock is ahead."""
        return ((self.t2 - self.t1) + (self.t3 - self.t4)) / 2

    @property
    def round_trip_ns(self) -> int:
        """How long both ways took."""
        return (self.t4 - self.t1) - (self.t3 - self.t2)

    @property
    def bound_ns(self) -> float:
        """How far the offset may be wrong."""
        return max(0, self.round_trip_ns) / 2

    @property
    def middle_ns(self) -> float:
        """When it was, here."""
        return (self.t1 + self.t4) / 2


@dataclass(frozen=True)
class ClockLine:
    """The other clock's lead over ours as a line over our time, with its bound."""

    at_ns: float
    lead_ns: float
    drift: float
    """By how much it gains per second of ours."""
    bound_ns: float
    """Holds from the first exchange to the last."""
    first_ns: float
    last_ns: float

    def ahead_ns(self, here_ns: float) -> float:
        """Say by how much the other clock is ahead at a moment of ours."""
        return self.lead_ns + self.drift * (here_ns - self.at_ns)

    def bound_at_ns(self, here_ns: float) -> float:
        """Say how far that may be wrong; more the farther from the exchanges."""
        outside = max(0.0, self.first_ns - here_ns, here_ns - self.last_ns)
        return self.bound_ns + WANDER * outside

    def here_ns(self, there_ns: float) -> float:
        """Turn a moment of the other clock into one of ours."""
        return self.at_ns + (there_ns - self.at_ns - self.lead_ns) / (1 + self.drift)


def quickest(burst: Iterable[RoundTrip]) -> RoundTrip:
    """Choose the exchange of a burst that says most: the one with the shortest round trip."""
    return min(burst, key=lambda one: one.round_trip_ns)


def _telling(taken: Sequence[RoundTrip]) -> list[RoundTrip]:
    """Leave out what another exchange tells better, even so long before or after."""
    return [
        one
        for one in taken
        if one.bound_ns
        <= min(other.bound_ns + WANDER * abs(one.middle_ns - other.middle_ns) for other in taken)
    ]


def fit(bursts: Sequence[Sequence[RoundTrip]]) -> ClockLine:
    """Draw the line through each burst's quickest exchange, weighted by how sure each is.

    The bound is what the line misses the worst exchange by, and what that one may be wrong by: at
    each exchange the truth is within it, whatever the ways took. One burst gives no drift. A slow
    burst that says less than a quick one near it, for all that clocks wander, is left out.
    """
    best = _telling([quickest(burst) for burst in bursts])
    weights = [1 / max(one.bound_ns, 1.0) ** 2 for one in best]
    total = sum(weights)
    at = sum(w * one.middle_ns for w, one in zip(weights, best, strict=True)) / total
    lead = sum(w * one.offset_ns for w, one in zip(weights, best, strict=True)) / total
    spread = sum(w * (one.middle_ns - at) ** 2 for w, one in zip(weights, best, strict=True))
    drift = 0.0
    if len(best) > 1 and spread > 0:
        drift = (
            sum(
                w * (one.middle_ns - at) * (one.offset_ns - lead)
                for w, one in zip(weights, best, strict=True)
            )
            / spread
        )
    line = ClockLine(at, lead, drift, 0.0, best[0].middle_ns, best[-1].middle_ns)
    bound = max(abs(line.ahead_ns(one.middle_ns) - one.offset_ns) + one.bound_ns for one in best)
    return ClockLine(at, lead, drift, bound, line.first_ns, line.last_ns)


def too_early_ns(
    begins: Mapping[int, Sequence[float]], ends: Mapping[int, Sequence[float]]
) -> float:
    """Hold clocks against barriers: by how much a rank seems to begin before another has ended.

    Nobody leaves a barrier before everybody has come: what begins after the n-th barrier begins
    later than all that ended before it. ``begins`` and ``ends`` are by rank, on one axis, in order
    of barriers; more than the clocks' bound convicts them.
    """
    earliest = [min(each) for each in zip(*begins.values(), strict=False)]
    latest = [max(each) for each in zip(*ends.values(), strict=False)]
    pairs = zip(earliest[1:], latest, strict=False)
    worst: float = max([0.0, *(finish - start for start, finish in pairs)])
    return worst
