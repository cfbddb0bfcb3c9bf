"""Lay the table of cells on its side for print, where a sheet is too narrow for its columns."""

from __future__ import annotations

from collections.abc import Iterable

from reports.page.blocks import Shown


def sideways(blocks: Iterable[Shown]) -> str:
    """Number the rows that the columns of the table of cells become on paper.

    The rest of how they are printed stands in the style sheet, which knows no number of columns.
    """
    grids = [block for kind, block in blocks if kind == "sheet" and block.is_places]
    columns = max((len(one.heads) for one in grids), default=0)
    rows = "".join(
        f"#cells .grid :is(th,td):nth-child({at}){{grid-row:{at}}}" for at in range(1, columns + 1)
    )
    return f"@media print{{{rows}}}"
