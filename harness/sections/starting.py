"""The section of how long ranks take to start: what a container's image costs, node by node."""

from __future__ import annotations

from collections.abc import Iterator

from harness.analysis import numbers
from harness.analysis.evidence import Evidence
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.sections.contract.blocks import Block, Gist, Note, Sheet
from harness.sections.contract.section import Section
from harness.stats.estimate import median
from harness.verdicts.results import CellResult


def starting(results: Results) -> Table:
    """Lay out the starts of cells in containers or on several nodes, and of what they stand beside.

    The slowest rank of each trial counts; medians over the trials.
    """
    columns = (
        Column("workload", "workload", "name"),
        Column("cell", "cell", "name"),
        Column("nodes", "nodes", "count"),
        Column("ranks", "ranks", "count"),
        Column("container", "container", "flag"),
        Column("entered_s", "last rank", "seconds"),
        Column("first_s", "first rank", "seconds"),
        Column("image_ms", "image, ms", "number"),
        Column("opened_s", "framework open", "seconds"),
        Column("trials", "n", "count"),
    )
    every = [
        (ranking, cell)
        for ranking in results.rankings
        for cell in (*ranking.cells, *ranking.set_aside)
        if _last(cell)
    ]
    bare = {_alike(cell): _last(cell) for _, cell in every if not cell.factors.get("container")}
    rows = []
    for ranking, cell in every:
        entered, ranks = _last(cell), max(len(trial.starts) for trial in cell.trials)
        boxed = bool(cell.factors.get("container"))
        rows.append(
            (
                ranking.workload,
                ranking.name(cell),
                cell.scale.nodes,
                ranks,
                boxed,
                median(list(entered.values())),
                median([min(s.entered_s for s in t.starts) for t in cell.trials if t.starts]),
                _less(entered, bare.get(_alike(cell), {})) if boxed else None,
                median([max(s.opened_s for s in t.starts) for t in cell.trials if t.starts]),
                len(entered),
            )
        )
    has_several = any(row[2] > 1 or row[4] for row in rows)
    return Table(
        "starting", "How long ranks take to start", columns, tuple(rows) if has_several else ()
    )


def _last(cell: CellResult) -> dict[int, float]:
    """Give how long the slowest rank of each block's trial took."""
    return {t.block: max(one.entered_s for one in t.starts) for t in cell.trials if t.starts}


def _alike(cell: CellResult) -> tuple[object, ...]:
    others = {k: repr(v) for k, v in cell.factors.items() if k != "container"}
    framework = (cell.workload, cell.framework, cell.strategy)
    return (cell.run, *framework, tuple(sorted(others.items())))


def _less(boxed: dict[int, float], bare: dict[int, float]) -> float | None:
    """Subtract the same cell outside, block by block, in milliseconds."""
    both = boxed.keys() & bare.keys()
    return median([(boxed[block] - bare[block]) * 1e3 for block in both]) if both else None


def _blocks(results: Results, evidence: Evidence) -> Iterator[Block]:
    yield Note(
        "Last and first rank, of all nodes: from the moment a node's agent starts a rank's process "
        "to the rank's first word, which is entering its container, where it has one, and starting "
        "its interpreter. Image: the last rank's, less that of the same cell outside a container, "
        "block by block; below nothing it is noise. Framework open: from there until it is "
        "imported, from the image too, and has met the other ranks."
    )
    table = starting(results)
    if table.rows:
        at = next(i for i, column in enumerate(table.columns) if column.key == "entered_s")
        slowest = max(row[at] for row in table.rows)
        yield Gist(f"the last rank after {numbers.seconds(slowest)} at most")
    yield Sheet(table)


SECTION = Section("How long ranks take to start", 700, _blocks, contents="Starting")
