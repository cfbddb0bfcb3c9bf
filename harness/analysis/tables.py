"""What a table is: raw values under headings, and how each prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis import numbers
from harness.errors import UsageError, nearest
from harness.store.outcome import Ended

_NUMBER = re.compile(r"-\d+$")


@dataclass(frozen=True)
class Column:
    """A heading, and what kind of thing stands below it."""

    key: str
    title: str
    kind: str = "text"
    """text, name, long, number, count, ratio, seconds, bytes, share, interval, flag or path."""


@dataclass(frozen=True)
class Table:
    """Raw values under headings; unknown is None."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


def family(name: str) -> str:
    """Name what a page has several tables of, which tell the same: ``why-1`` is of ``why``."""
    return _NUMBER.sub("", name)


def with_column(table: Table, key: str, value: str) -> Table:
    """Add a column with one value for every row, unless the table has it."""
    if any(column.key == key for column in table.columns):
        return table
    columns = (*table.columns, Column(key, key))
    return replace(table, columns=columns, rows=tuple((*row, value) for row in table.rows))


_SHOWN: dict[str, Callable[[Any], str]] = {
    "number": numbers.number,
    "count": numbers.count,
    "ratio": numbers.ratio,
    "seconds": numbers.seconds,
    "bytes": numbers.size,
    "share": numbers.share,
}


def shown(column: Column, value: Any) -> str:
    """Print a value as a person reads it."""
    if value is None or value == "":
        return numbers.UNKNOWN
    if column.kind == "interval":
        return f"[{numbers.number(value.low)}, {numbers.number(value.high)}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _SHOWN.get(column.kind, str)(value)


def shown_row(table: Table, row: Sequence[Any]) -> list[str]:
    """Print a row, each interval with the digits of the value before it."""
    texts = [shown(c, v) for c, v in zip(table.columns, row, strict=True)]
    for index, (column, value) in enumerate(zip(table.columns, row, strict=True)):
        if column.kind != "interval" or value is None or index == 0:
            continue
        before, center = table.columns[index - 1], row[index - 1]
        if before.kind == "ratio" and center is not None:
            texts[index - 1] = numbers.ratio(center, value)
            texts[index] = numbers.ratio_bracket(value, center)
        elif before.kind == "share" and center is not None:
            low, high = map(numbers.share_in_tenths, (value.low, value.high))
            texts[index - 1], texts[index] = numbers.share_in_tenths(center), f"[{low}, {high}]"
        elif before.kind == "number" and center is not None:
            texts[index - 1], texts[index] = numbers.with_interval(center, value)
    return texts


def flat(table: Table) -> tuple[list[str], list[list[Any]]]:
    """Spread intervals over two columns, as programs want them."""
    heads: list[str] = []
    for column in table.columns:
        if column.kind == "interval":
            heads += [f"{column.key}_low", f"{column.key}_high"]
        else:
            heads.append(column.key)
    rows = []
    for row in table.rows:
        values: list[Any] = []
        for column, value in zip(table.columns, row, strict=True):
            if column.kind == "interval":
                values += [value.low, value.high] if value else [None, None]
            else:
                values.append(value)
        rows.append(values)
    return heads, rows


_SILENT = frozenset({"machine", "run", "attempt", "steps_per_window"})
_USUAL = {"outcome": Ended.OK, "counted": True, "origin": "measured"}


def filled(of: Table) -> Table:
    """Leave out the columns that are unknown or usual in every row."""
    if not of.rows:
        return of
    keep = []
    for index, column in enumerate(of.columns):
        values = {repr(row[index]) for row in of.rows}
        if values <= {"None", "''"}:
            continue
        if column.key in _SILENT and len(values) == 1:
            continue
        if column.key in _USUAL and all(row[index] == _USUAL[column.key] for row in of.rows):
            continue
        keep.append(index)
    return _picked(of, keep)


def without(of: Table, keys: Collection[str]) -> Table:
    """Leave columns out."""
    kept = [index for index, column in enumerate(of.columns) if column.key not in keys]
    return _picked(of, kept)


def selected(of: Table, keys: Sequence[str]) -> Table:
    """Keep these columns, in this order; refuse a name that the table has not."""
    places = {column.key: index for index, column in enumerate(of.columns)}
    for key in keys:
        if key not in places:
            raise UsageError(
                f"the table {of.name} has no column '{key}'.{nearest(key, places)}\n"
                f"    Known: {', '.join(places)}."
            )
    return _picked(of, [places[key] for key in keys])


def _picked(of: Table, kept: Sequence[int]) -> Table:
    columns = tuple(of.columns[index] for index in kept)
    return replace(of, columns=columns, rows=tuple(tuple(row[i] for i in kept) for row in of.rows))


def records(table: Table) -> list[dict[str, Any]]:
    """Give one object per row, as programs want them."""
    heads, rows = flat(table)
    return [dict(zip(heads, row, strict=True)) for row in rows]
