"""What observing costs on this machine, GPUs and all: a load on every core, observed and not."""

from __future__ import annotations

from tests.gpu.answer import Answer
from tests.gpu.day import Day

LIMIT_S = 240.0
_PAIRS, _REHEARSED = 120, 2
_MOST = 0.01
"""Of CPU time: more would show in the rates of trials."""


def cost(day: Day) -> Answer:
    """Ask the doctor; a cost that surely is above what is promised is a fault."""
    pairs = _REHEARSED if day.is_dry else _PAIRS
    words = ("doctor", "--observer", "--pairs", str(pairs), "--json")
    told = day.bakeoff(*words, limit_s=LIMIT_S).json()
    lost, low, high = told["per_cpu"]
    ends = f"{told['low']:.2%} to {told['high']:.2%}, {told['pairs']} pairs"
    lines = [
        f"a load on every core is {told['slow_down']:.2%} slower while observed ({ends})",
        f"of a second of CPU time {lost:.2%} is lost to it ({low:.2%} to {high:.2%})",
    ]
    is_dear = not day.is_dry and low > _MOST
    faults = (
        (f"observing costs {low:.2%} of CPU time at least, above {_MOST:.0%}",) if is_dear else ()
    )
    return Answer(tuple(lines), told, faults)
