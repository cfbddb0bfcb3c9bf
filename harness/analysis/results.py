"""Everything that a report may say of runs; ``analyse.py`` computes it from a Dataset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from harness.analysis.effects.effects import Effects, effects_of
from harness.analysis.ranking import Ranking, rank
from harness.store.records import Hole, RunInfo
from harness.verdicts.results import CellResult


@dataclass(frozen=True)
class Results:
    """The results of one or more runs: all that reports, exports and the public face show."""

    title: str
    question: str
    runs: tuple[RunInfo, ...]
    cells: tuple[CellResult, ...]
    """By task, fastest first; cells without a rate last."""
    holes: tuple[Hole, ...]
    varied: tuple[str, ...]
    """The factors in which these cells differ, in vocabulary order."""
    warnings: tuple[str, ...]

    @cached_property
    def rankings(self) -> tuple[Ranking, ...]:
        """Each task's cells in order: images and volumes per second do not compare."""
        return rank(self.cells, self.varied, self.runs)

    @cached_property
    def effects(self) -> dict[str, Effects]:
        """What each factor does by itself, of each task with cells enough to ask that."""
        found = {one.workload: effects_of(one, seed=self.runs[0].seed) for one in self.rankings}
        return {workload: effects for workload, effects in found.items() if effects}

    @cached_property
    def names(self) -> dict[tuple[str, str], str]:
        """Name every cell, by its run and key, as its ranking does; with its task if need be."""
        several = len(self.rankings) > 1
        return {
            (cell.run, cell.key): f"{one.workload} · {one.name(cell)}"
            if several
            else one.name(cell)
            for one in self.rankings
            for cell in (*one.cells, *one.set_aside, *one.without)
        }

    @property
    def is_simulated(self) -> bool:
        """Whether the results come from a model; simulated and measured runs are never mixed."""
        return any(run.is_simulated for run in self.runs)
