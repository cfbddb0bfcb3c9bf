"""Summarise what checkpoints cost: how long training stopped, and when they were durable.

A ladder's rungs are bandwidths of one and the same state, from the moment its checkpoint begins:
until training goes on, until it is whole on the tier that takes it first, until it is whole and
synced where it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis import numbers
from harness.analysis.files.ladder import Ladder, Rung
from harness.analysis.results import Results
from harness.analysis.tables import Column, Table
from harness.stats import estimate
from harness.verdicts.io_results import CheckpointResult
from harness.verdicts.results import CellResult, Estimate, Interval


@dataclass(frozen=True)
class SavingCell:
    """A cell that took checkpoints, with those of its counted trials."""

    cell: CellResult
    results: Sequence[CheckpointResult]

    @property
    def first(self) -> str:
        """Name the tier that takes them first."""
        through = self.cell.factors.get("checkpoint_through")
        return self.last if through is None else str(through)

    @property
    def last(self) -> str:
        """Name the tier where they stay."""
        return str(self.cell.factors.get("checkpoint_to") or "the checkpoint tier")

    def median(self, name: str, unit: str = "s") -> Estimate | None:
        """Give the median over the trials that know a figure, with its interval."""
        values = [value for one in self.results if (value := getattr(one, name)) is not None]
        return _estimated(values, unit)

    def rate(self, name: str) -> Estimate | None:
        """Give the state's size over a time."""
        times = [(one.state_bytes, getattr(one, name)) for one in self.results]
        return _estimated([size / 1e6 / time for size, time in times if time], "MB/s")


def saving_cells(results: Results) -> list[SavingCell]:
    """Give the cells that took checkpoints in a counted trial."""
    found = []
    for cell in results.cells:
        results_of_cell = [
            one.checkpoints for one in cell.trials if one.counted and one.checkpoints
        ]
        if results_of_cell:
            found.append(SavingCell(cell, results_of_cell))
    return found


def ladders(results: Results) -> tuple[Ladder, ...]:
    """Build one ladder for each cell that took checkpoints."""
    called = results.names
    return tuple(_ladder(one, called[one.cell.run, one.cell.key]) for one in saving_cells(results))


def _ladder(one: SavingCell, name: str) -> Ladder:
    named = (
        ("training goes on", one.rate("blocking_s")),
        (f"whole on {one.first}", one.rate("saved_s")),
        (f"durable on {one.last}", one.rate("durable_s")),
    )
    rungs = tuple(Rung(rung, rate) for rung, rate in named if rate is not None)
    return Ladder(f"Checkpoints of {name}", "", rungs)


def checkpoint_table(results: Results) -> Table:
    """Make the table of checkpoints: what each cell saved, how long it took, what it cost."""
    columns = (
        Column("cell", "cell", "name"),
        Column("where", "saved to"),
        Column("saver", "saved with"),
        Column("size", "state, MB", "number"),
        Column("blocking", "training stood still", "seconds"),
        Column("blocking_interval", "interval, s", "interval"),
        Column("saved", "whole after", "seconds"),
        Column("durable", "durable after", "seconds"),
        Column("durable_interval", "interval, s", "interval"),
        Column("restored", "restored in", "seconds"),
        Column("cache", "from caches, proved"),
        Column("inflation", "step time meanwhile, ×", "number"),
        Column("lost", "time stood still", "share"),
        Column("trials", "n", "count"),
    )
    called = results.names
    rows = tuple(_row(one, called[one.cell.run, one.cell.key]) for one in saving_cells(results))
    return Table("checkpoints", "What checkpoints cost, and when they were safe", columns, rows)


def _row(one: SavingCell, name: str) -> tuple[object, ...]:
    blocking, durable = one.median("blocking_s"), one.median("durable_s")
    return (
        name,
        one.last if one.first == one.last else f"{one.last} through {one.first}",
        one.results[0].saver,
        one.results[0].state_bytes / 1e6,
        _value(blocking),
        blocking.interval if blocking else None,
        _value(one.median("saved_s")),
        _value(durable),
        durable.interval if durable else None,
        _value(one.median("restore_s")),
        one.results[0].restore_cache,
        _value(one.median("inflation", "×")),
        _value(one.median("blocked_share", "")),
        len(one.results),
    )


def lines(results: Results) -> list[str]:
    """Give one sentence for each cell on the cost of its checkpoints."""
    called = results.names
    return [_sentence(one, called[one.cell.run, one.cell.key]) for one in saving_cells(results)]


def _sentence(one: SavingCell, cell: str) -> str:
    def seconds(name: str) -> str:
        return numbers.seconds(_value(one.median(name)))

    words = [
        f"training stood still for {seconds('blocking_s')}",
        f"whole on {one.first} after {seconds('saved_s')}",
        f"durable on {one.last} after {seconds('durable_s')}",
        f"restored ({one.results[0].restore_cache}) in {seconds('restore_s')}",
    ]
    if one.first == one.last:
        del words[1]
    inflation = _value(one.median("inflation", "×"))
    if inflation is not None:
        words.append(f"steps took {numbers.ratio(inflation)} × as long meanwhile")
    return f"{cell}: {', '.join(words)}"


def _value(of: Estimate | None) -> float | None:
    return None if of is None else of.value


def _estimated(values: Sequence[float], unit: str) -> Estimate | None:
    if not values:
        return None
    estimated, interval = estimate.median_interval(values), None
    if estimated is not None:
        interval = Interval(estimated.low, estimated.high, estimated.level, estimated.meaning)
    return Estimate(estimate.median(values), unit, len(values), interval)
