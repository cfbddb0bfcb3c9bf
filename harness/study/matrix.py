"""Spell out what a study varies: every point that it asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.study.factors import FACTORS
from harness.toml.values import Value

Point = dict[str, Value]
"""What one cell was asked to be: factors, and options as FRAMEWORK.NAME."""


@dataclass(frozen=True)
class Selection:
    """Some cells, by factors: each must have one of the values named for it."""

    wanted: Mapping[str, tuple[Value, ...]]

    def takes(self, point: Mapping[str, Value]) -> bool:
        """Say whether a point, resolved, is one of them."""
        for name, values in self.wanted.items():
            value = point.get(name)
            if value in values and type(value) in map(type, values):
                continue
            if name == "framework" and adapter_of(str(value)) in values:
                continue
            return False
        return True


def selection(table: Mapping[str, Any]) -> Selection:
    """Make a selection of a table: a value, or a list of values, for each name."""
    flat = flattened(table)
    return Selection(
        {name: tuple(one) if isinstance(one, list) else (one,) for name, one in flat.items()}
    )


@dataclass(frozen=True)
class Exclusion:
    """Cells to leave out, and why."""

    selection: Selection
    why: str


@dataclass(frozen=True)
class Matrix:
    """What a study varies."""

    axes: Mapping[str, tuple[Value, ...]]
    """Each crosses with all others."""
    zips: tuple[Mapping[str, tuple[Value, ...]], ...] = ()
    """In each, factors move together."""
    includes: tuple[Mapping[str, Value], ...] = ()
    excludes: tuple[Exclusion, ...] = ()
    workload_defaults: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    framework_defaults: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)


def adapter_of(framework: str) -> str:
    """Give the framework of a name such as tensorflow@1.15."""
    return framework.partition("@")[0]


def selectable(
    workload: str, framework: str, factors: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Give all names and values of a cell that a selection may test."""
    own = {f"{adapter_of(framework)}.{name}": one for name, one in options.items()}
    return {"workload": workload, "framework": framework, **factors, **own}


def points(matrix: Matrix) -> Iterator[tuple[Point, bool]]:
    """Give every point asked for, and whether it was included singly (excludes spare those)."""
    if matrix.axes or matrix.zips:
        for point in _crossed(matrix.axes, matrix.zips):
            yield point, False
    for include in matrix.includes:
        yield dict(include), True


def _crossed(
    axes: Mapping[str, Sequence[Value]], zips: Sequence[Mapping[str, Sequence[Value]]]
) -> Iterator[Point]:
    leading = sorted((name for name in axes if "." not in name), key=_rank)
    own = {name: axes[name] for name in axes if "." in name}
    columns: list[list[Point]] = [[{name: value} for value in axes[name]] for name in leading]
    columns += [_rows(one) for one in zips]
    for parts in itertools.product(*columns):
        point: Point = {}
        for part in parts:
            point.update(part)
        yield from _with_options(point, own)


def _rows(together: Mapping[str, Sequence[Value]]) -> list[Point]:
    return [dict(zip(together, row, strict=True)) for row in zip(*together.values(), strict=True)]


def _with_options(point: Point, own: Mapping[str, Sequence[Value]]) -> Iterator[Point]:
    """Cross a point with the options of its own framework, and drop those of others."""
    prefix = adapter_of(str(point.get("framework"))) + "."
    point = {name: value for name, value in point.items() if "." not in name or _is(name, prefix)}
    names = [name for name in own if _is(name, prefix)]
    for values in itertools.product(*(own[name] for name in names)):
        yield {**point, **dict(zip(names, values, strict=True))}


def _is(name: str, prefix: str) -> bool:
    return name.startswith(prefix)


_ORDER = {name: number for number, name in enumerate(FACTORS)}


def _rank(name: str) -> int:
    """Put workload and framework outermost; the rest stays as the file has it."""
    return min(_ORDER[name], 2)


def flattened(table: Mapping[str, Any]) -> dict[str, Any]:
    """Write options, which TOML holds as tables, as FRAMEWORK.NAME beside the factors."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{option}": one for option, one in value.items()})
        else:
            flat[name] = value
    return flat
