"""Choose the cells that answer a finding, of a plan as of results.

Of several cells that are meant, that stands for them of which least else is said; of two, those
that differ least in what was not asked. A framework's own build is meant where it is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from harness.study.matrix import Selection, selectable
from harness.worker.network.workload import task


class Named(Protocol):
    """What a cell is, whether or not it was measured."""

    @property
    def workload(self) -> str:
        """What a step does."""

    @property
    def framework(self) -> str:
        """With its environment: caffe@intel."""

    @property
    def strategy(self) -> str:
        """How its ranks train together."""

    @property
    def factors(self) -> Mapping[str, Any]:
        """All others."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The framework's own."""

    @property
    def unit(self) -> str:
        """What it counts."""


Cell = TypeVar("Cell", bound=Named)


def alone(cells: Sequence[Cell], wanted: Selection) -> list[Cell]:
    """Give the cells that are as good an answer as any, in their order."""
    found = [one for one in cells if is_taken(one, wanted)]
    return _least(found, [(_other_build(one, wanted), said(one)) for one in found])


def pairs(cells: Sequence[Cell], wanted: Selection, over: Selection) -> list[tuple[Cell, Cell]]:
    """Give the pairs that are as good an answer as any, in their order.

    What only one of the two is asked to be, the other had better be too. A study's all-reduces may
    have the factors that are asked of what trains: only cells of one unit compare, and those of one
    task come first.
    """
    asked = wanted.wanted.keys() & over.wanted.keys()
    found = [
        (one, other)
        for one in cells
        if is_taken(one, wanted)
        for other in cells
        if other is not one and is_taken(other, over) and one.unit == other.unit
    ]

    def apart(pair: tuple[Cell, Cell]) -> tuple[int, ...]:
        one, other = pair
        builds = _other_build(one, wanted) + _other_build(other, over)
        differ = len(differing(one, other) - asked)
        tasks = task(one.workload, one.factors) != task(other.workload, other.factors)
        boxed = bool(one.factors.get("container"))
        return builds, tasks + differ, said(one) + said(other), boxed

    return _least(found, [apart(pair) for pair in found])


def differing(one: Named, other: Named) -> set[str]:
    """Name the factors in which two cells differ."""
    names = {*one.factors, *other.factors}
    return {name for name in names if one.factors.get(name) != other.factors.get(name)}


def is_taken(cell: Named, wanted: Selection) -> bool:
    """Say whether a cell is among those that a finding names."""
    factors = {**cell.factors, "strategy": cell.strategy}
    return wanted.takes(selectable(cell.workload, cell.framework, factors, cell.options))


def said(cell: Named) -> int:
    """Count what a cell's factors say."""
    return sum(value is not None for value in cell.factors.values())


def _other_build(cell: Named, wanted: Selection) -> bool:
    """Tell whether a cell is another build of the framework that is named."""
    return cell.framework not in wanted.wanted.get("framework", (cell.framework,))


Found = TypeVar("Found")


def _least(found: Sequence[Found], places: Sequence[tuple[int, ...]]) -> list[Found]:
    least = min(places, default=())
    return [one for one, place in zip(found, places, strict=True) if place == least]
