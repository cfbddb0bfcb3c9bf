"""Keep where each value of a platform profile comes from: measured, declared or unknown.

A profile states it in ``[sources]`` by place, and a place covers everything beneath it:

    [sources]
    node = { measured = "bakeoff platforms probe, 2026-03-01" }
    "node.memory[0].bandwidth" = { declared = "vendor's data sheet, table 2" }
    "network.bandwidth" = { unknown = "nobody opened a document" }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import model_validator

from harness.toml.tables import Table, known_keys

HARDWARE = ("nodes", "node", "accelerators", "network", "storage", "price_per_node_hour")
"""The parts of a profile that are claims about a machine."""


class Source(Table):
    """Where values come from; exactly one of the three, with its words."""

    measured: str | None = None
    """By whom or what, and when."""
    declared: str | None = None
    """The document and table."""
    unknown: str | None = None
    """Why."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        stated = [one for one in (self.measured, self.declared, self.unknown) if one is not None]
        if len(stated) != 1 or not stated[0].strip():
            raise ValueError('must be one of measured, declared, unknown = "from where, or why"')
        return self

    @property
    def tag(self) -> str:
        """Measured, declared or unknown."""
        return next(iter(self.model_fields_set))

    @property
    def words(self) -> str:
        """From where, or why not."""
        return str(getattr(self, self.tag))


Sources = Mapping[str, Source]


def leaves(data: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Give every value of a table with its place, as faults spell places."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from leaves(value, f"{at}.{key}" if at else str(key))
    elif isinstance(data, list | tuple) and any(isinstance(one, Mapping) for one in data):
        for index, value in enumerate(data):
            yield from leaves(value, f"{at}[{index}]")
    elif data is not None:
        yield at, data


def hardware_leaves(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Give every value that is a claim about the machine."""
    return list(leaves({name: data[name] for name in HARDWARE if name in data}))


def spread(data: Mapping[str, Any], sources: Sources) -> dict[str, Source]:
    """Give each value of one document its own source, and keep what is said to be unknown."""
    found = {}
    for place, _ in hardware_leaves(data):
        covering = [one for one in sources if is_within(place, one)]
        if covering:
            found[place] = sources[max(covering, key=len)]
    return {**{place: one for place, one in sources.items() if one.tag == "unknown"}, **found}


def refined(inherited: Sources, data: Mapping[str, Any], own: Sources) -> dict[str, Source]:
    """Lay a document's sources over inherited ones; a value that it replaces loses its old one."""
    replaced = {place.partition("[")[0] for place, _ in hardware_leaves(data)}
    unchanged = {
        place: one
        for place, one in inherited.items()
        if not any(is_within(place, root) for root in replaced)
    }
    return {**unchanged, **own}


def is_within(place: str, container: str) -> bool:
    """Tell whether a place is another or lies beneath it."""
    return place == container or place.startswith((f"{container}.", f"{container}["))


def unknown_place(model: type[Table], place: str) -> tuple[str, tuple[str, ...]] | None:
    """Find the step of a place that no profile has; give it with the keys that are there."""
    steps: list[str | int] = []
    for part in place.split("."):
        name, bracket, rest = part.partition("[")
        known = known_keys(model, tuple(steps))
        if known and name not in known:
            return name, known
        steps.append(name)
        if bracket:
            if not (rest.endswith("]") and rest[:-1].isdigit()):
                return part, ()
            steps.append(int(rest[:-1]))
    return None
