"""Find what a run's machine can do at most: kept from earlier runs, or measured in this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace

from harness.doctor import known_ceilings
from harness.errors import DamagedFile
from harness.plan.ceiling_cells import ceiling_kind, layer_words, times_layers
from harness.plan.cell import Cell
from harness.run.trials.prepared import Prepared
from harness.run.trials.untimed_jobs import first_or_once_more
from harness.store.layout import RunPaths, TrialPaths
from harness.store.outcome import read_outcome
from harness.store.record_readers.ceilings import (
    LAYER,
    REFUSED,
    VERSION,
    Ceiling,
    Conditions,
    reached_in,
    read_ceilings,
)
from harness.store.run_directory import trial_folders
from harness.worker.facts.ceilings import KERNELS
from harness.worker.network.precisions import precision_of


class MachineCeilings:
    """Ceilings of one session's cells."""

    def __init__(self, platform: str, cells: Mapping[str, Prepared]) -> None:
        self._platform = platform
        self._cells = cells
        self._known = known_ceilings.known(platform)

    def is_due(self, paths: RunPaths, cell: Cell) -> bool:
        """Tell whether a cell's job is to measure them now: the first of its kind that ran well."""
        kind = ceiling_kind(cell)
        if kind is None or not trial_folders.has_ok(paths, cell.key):
            return False
        if self._is_known(cell):
            return False
        others = (one.cell for one in self._cells.values() if ceiling_kind(one.cell) == kind)
        if any(one.key != cell.key and _is_made(paths.ceilings_of(one.key)) for one in others):
            return False
        return first_or_once_more(paths, paths.ceilings_of(cell.key))

    def prepared(self, paths: RunPaths, one: Prepared) -> Prepared:
        """Tell a cell's job what it need not try: what earlier runs did, or this one's jobs."""
        measured = (found for each in self._cells.values() for found in self._measured(paths, each))
        return replace(one, known=tuple(sorted(self._tried(one.cell, measured))))

    def _is_known(self, cell: Cell) -> bool:
        """Tell whether kernels, and all layers of its network that multiply, are known."""
        known = self._tried(cell)
        wanted = set(layer_words(cell)) if times_layers(cell) else set()
        return not known.isdisjoint(KERNELS) and wanted <= known

    def _tried(self, cell: Cell, measured: Iterable[Ceiling] = ()) -> set[str]:
        """Name the kernels, and the layers of its network, that were tried under its conditions."""
        under = self._conditions(cell)
        tried = {one.reached.kernel for one in (*self._known, *measured) if one.under == under}
        return tried & {*KERNELS, *layer_words(cell)}

    def keep(self, paths: RunPaths) -> None:
        """Write down what concerns the run's cells, and keep what it measured for later runs."""
        measured = [one for each in self._cells.values() for one in self._measured(paths, each)]
        if measured:
            known_ceilings.learn(self._platform, measured)
        wanted = {_of(self._conditions(one.cell)) for one in self._cells.values()}
        layers = {words for one in self._cells.values() for words in layer_words(one.cell)}
        best: dict[object, Ceiling] = {}
        before = _written(paths)  # of cells that this session has nothing to do with
        for one in sorted((*before, *self._known, *measured), key=lambda one: one.reached.per_s):
            if one.reached.unit == REFUSED:
                continue
            is_ours = one.reached.unit != LAYER or one.reached.kernel in layers
            if one in before or (_of(one.under) in wanted and is_ours):
                best[one.under, one.reached.kernel] = one
        if best:
            listed = [asdict(one) for one in best.values()]
            paths.files.write_json(paths.ceilings, {"version": VERSION, "ceilings": listed})

    def _measured(self, paths: RunPaths, one: Prepared) -> Iterator[Ceiling]:
        trial = paths.ceilings_of(one.cell.key)
        if not trial.files.exists(trial.outcome):
            return
        outcome = read_outcome(trial)
        where = f"{paths.root.name}/{trial.root.relative_to(paths.root)}"
        for reached in reached_in(trial) if outcome.is_ok else ():
            yield Ceiling(self._conditions(one.cell), reached, where, outcome.ended_wall_ns)

    def _conditions(self, cell: Cell) -> Conditions:
        factors = cell.factors
        environment = self._cells[cell.key].interpreter.identity
        products = precision_of(factors["precision"]).products
        return Conditions(
            cell.framework, environment, factors["device"], products, factors["threads"]
        )


def _written(paths: RunPaths) -> tuple[Ceiling, ...]:
    try:
        return read_ceilings(paths)
    except DamagedFile:  # it is written anew
        return ()


def _is_made(trial: TrialPaths) -> bool:
    return trial.files.exists(trial.outcome) and read_outcome(trial).is_ok


def _of(under: Conditions) -> tuple[str, str, int | None]:
    """Give what ceilings of other frameworks have to share to hold for a cell, too."""
    return under.device, under.precision, under.threads
