"""Bound the time of a step on more devices than were measured, whatever the counts below showed.

What grows there may have been hidden until then: messages that travel while the step computes cost
nothing up to the count at which they take longer, and no smaller count shows that it is near. What
was hidden took no longer than the step did, and grows at most as the messages of a ring, linearly:
so of twice the devices a step takes up to twice the time. That is the rate of all devices together
standing still, as it does where a shared store or link is at its end. The other way, growth may
have come to its end, so that nothing is added to the last measured time.

Where the run's own all-reduces say what an exchange takes, all of one, on a network half as fast,
is the most that can come.
"""

from __future__ import annotations

from dataclasses import dataclass

SLOWER_NETWORK = 2.0
"""Beyond what was measured the network may be so many times slower than the sweep says."""
FACTOR = 8.0
"""An interval whose ends are as far apart says nothing; nothing is predicted then."""


@dataclass(frozen=True)
class Exchange:
    """What one exchange of a step's gradients takes around a ring, by a sweep of all-reduces."""

    alpha_s: float
    """Of one message."""
    bytes_s: float
    """Of all bytes, once."""

    def seconds(self, devices: int) -> float:
        """Give the time of one exchange."""
        return 2 * (devices - 1) * (self.alpha_s + self.bytes_s / devices)


@dataclass(frozen=True)
class Largest:
    """The largest count that was measured."""

    devices: int
    seconds: float
    noise: float
    """The relative error that its time may have."""

    def bounds(
        self, devices: int, *, strong: bool, exchange: Exchange | None
    ) -> tuple[float, float]:
        """Give the least and the most that a step may take on more devices."""
        more = devices / self.devices
        computed = self.seconds / (more if strong else 1.0)
        if exchange is None:
            most = self.seconds * (devices - 1) / max(1, self.devices - 1)
        else:
            most = self.seconds + SLOWER_NETWORK * exchange.seconds(devices)
        return computed * (1 - self.noise), most * (1 + self.noise)
