"""Print a profile's values with their units and where they come from."""

from __future__ import annotations

from typing import Any

from harness import units
from harness.platform.platform import Platform
from harness.platform.sources import hardware_leaves

_SIZES = ("size", "memory", "memory_share")
_BANDWIDTHS = ("bandwidth", "memory_bandwidth")


def rows(platform: Platform) -> list[tuple[str, str, str, str]]:
    """Give each value, then what is said to be unknown, then the ceilings: with tag and source."""
    leaves = [
        (place, value)
        for place, value in hardware_leaves(platform.model_dump(exclude_none=True))
        if value != ()
    ]
    found = []
    for place, value in leaves:
        source = platform.sources.get(place)
        tag = "declared" if source is None else source.tag
        words = "no source given" if source is None else source.words
        found.append((place, value_text(place, value), tag, words))
    present = {place for place, _ in leaves}
    for place, source in platform.sources.items():
        if source.tag == "unknown" and place not in present:
            found.append((place, "–", source.tag, source.words))
    for name, ceiling in platform.ceilings.items():
        value = "–"
        if ceiling.compute is not None:
            value = units.scaled(ceiling.compute, "FLOP/s")
        elif ceiling.bandwidth is not None:
            value = units.scaled(ceiling.bandwidth, "B/s")
        found.append((f"ceilings.{name}", value, ceiling.tag, ceiling.source))
    return found


def value_text(place: str, value: Any) -> str:
    """Print a value with its unit."""
    name = place.rpartition(".")[2]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if name in _SIZES:
            return units.size_text(int(value))
        if name in _BANDWIDTHS:
            return units.scaled(value, "B/s")
        if name == "power_limit":
            return f"{value:g} W"
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(
            " ".join(map(str, v)) if isinstance(v, tuple | list) else str(v) for v in value
        )
    return str(value)
