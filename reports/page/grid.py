"""Prepare tables for the page: texts, what to sort by, which columns filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.analysis import tables
from reports.page.cell_places import CellPlaces
from reports.page.folding import rest
from reports.page.links import Links

Rows = tuple[tuple[tuple[str, str], ...], ...]


@dataclass(frozen=True)
class Grid:
    """A table as the page shows it: texts, what to sort by, and which columns filter."""

    name: str
    title: str
    heads: tuple[tables.Column, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]
    """Each text with what to sort it by where that is another; a path with where it leads."""
    filters: tuple[int, ...]
    anchors: tuple[str, ...]
    """Of the cell that each row is of; empty where rows are of something else."""
    is_places: bool
    """Whether its rows are the places where those anchors lie."""
    rest: int
    """So many rows are folded at first."""
    on_a_phone: str
    """How it is laid out where the window is narrow: stacked, few columns, or pushed sideways."""


LONG = 40
"""A text of more letters may be broken into lines in any window."""
_FEW = 7
_BESIDE_LONG = 3
"""So many columns share a narrow window if one of them holds sentences."""
_PLACES = "cells"
"""The table with one row for each cell."""
_TEXTUAL = frozenset({"text", "name", "long", "path", "flag"})


def _beside(column: tables.Column, value: object, text: str, links: Links | None) -> str:
    if column.kind == "path" and links and isinstance(value, str):
        return links.to(value)
    if column.kind in _TEXTUAL or not isinstance(value, int | float):
        return ""
    key = f"{value:.6g}"
    return "" if key == text else key


def grid(
    table: tables.Table,
    *,
    filters: Sequence[str] = (),
    links: Links | None = None,
    places: CellPlaces | None = None,
) -> Grid | None:
    """Prepare a table; None if it has no rows, so that its section is not there."""
    if not table.rows:
        return None
    anchors = _anchors(table, places)
    table = tables.filled(table)
    rows = tuple(
        tuple(
            (text, _beside(column, value, text, links))
            for text, column, value in zip(
                tables.shown_row(table, row), table.columns, row, strict=True
            )
        )
        for row in table.rows
    )
    heads = list(table.columns)
    for i, column in enumerate(heads):
        if column.kind == "path":
            heads[i], rows = _without_common_folder(column, i, rows)
    distinct = [len({row[i][0] for row in rows}) for i in range(len(table.columns))]
    return Grid(
        name=table.name,
        title=table.title,
        heads=tuple(heads),
        numeric=tuple(column.kind not in _TEXTUAL for column in table.columns),
        rows=rows,
        filters=tuple(
            i for i, column in enumerate(table.columns) if column.key in filters and distinct[i] > 1
        ),
        anchors=anchors,
        is_places=table.name == _PLACES,
        rest=rest(len(rows)),
        on_a_phone=_on_a_phone(rows),
    )


def _on_a_phone(rows: Rows) -> str:
    """Put sentences below each other; let a few columns share the width by breaking their words."""
    if len(rows[0]) > _FEW:
        return ""
    columns = zip(*rows, strict=True)
    told = sum(any(len(text) > LONG for text, _ in column) for column in columns)
    return "stacked" if told > 1 or (told and len(rows[0]) > _BESIDE_LONG) else "few"


def _anchors(table: tables.Table, places: CellPlaces | None) -> tuple[str, ...]:
    """Know the cell of each row by where its raw data lie."""
    at = next((i for i, column in enumerate(table.columns) if column.kind == "path"), None)
    if places is None or at is None:
        return ()
    return tuple(places.of_path(str(row[at])) for row in table.rows)


def _without_common_folder(
    column: tables.Column, at: int, rows: Rows
) -> tuple[tables.Column, Rows]:
    """Say the folder that all paths share once, in the heading."""
    folder = rows[0][at][0].split("/")[0] + "/"
    if not all(row[at][0].startswith(folder) for row in rows):
        return column, rows
    named = replace(column, title=f"{column.title}, in {folder}")
    short = tuple(
        (*row[:at], (row[at][0].removeprefix(folder), row[at][1]), *row[at + 1 :]) for row in rows
    )
    return named, short
