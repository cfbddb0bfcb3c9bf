"""Choose what a paper has room for of a table: its telling columns, and the rest in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.analysis.tables import Table, family, selected, shown, without

_TELLING = {
    "ranking": "workload cell unit rate rate_interval trials ratio ratio_interval answer",
    "cells": "workload cell unit rate rate_interval trials p50_s p95_s peak_rss_bytes gate",
    "scaling": "workload cell batch devices unit rate efficiency efficiency_interval trials "
    "node_hours_per_epoch",
    "limits": "cell cause share seconds",
    "why": "part difference_ms interval_ms share slower_s faster_s",
}
_IN_WORDS = frozenset({"workload", "unit", "batch", "trials", "level"})
"""Columns that a caption can say where all rows have the same."""
_SHORT = {"node_hours_per_epoch": "node-h/epoch"}
"""Headings that would take the room of a column."""


def for_paper(table: Table, columns: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """Give the columns asked for, or the telling ones and what is the same in all rows."""
    if columns:
        return selected(table, columns), ()
    telling = _TELLING.get(family(table.name))
    if telling is None:
        return table, ()
    chosen = selected(table, telling.split())
    same = {}
    in_words = _IN_WORDS | {"cell"} if family(table.name) == "scaling" else _IN_WORDS
    for index, column in enumerate(chosen.columns):
        values = {shown(column, row[index]) for row in chosen.rows}
        if column.key in in_words and len(values) == 1:
            same[column.key] = f"{column.title}: {values.pop()}"
    chosen = without(chosen, same)
    headed = tuple(replace(c, title=_SHORT.get(c.key, c.title)) for c in chosen.columns)
    return replace(chosen, columns=headed), tuple(
        said for key, said in same.items() if key != "trials"
    )
