"""The untimed jobs of one session: some before the trials of their cells, some after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from harness.plan.cell import Cell
from harness.plan.plan import Plan
from harness.ranks.interrupts import Interrupts
from harness.run.progress import ProgressListener
from harness.run.trials import untimed_jobs
from harness.run.trials.machine_ceilings import MachineCeilings
from harness.run.trials.prepared import ATTRIBUTION, CEILINGS, COLD, PROBE, Prepared
from harness.store.layout import RunPaths


class UntimedWork:
    """Caches are filled and cells probed before trials; steps are divided and ceilings follow."""

    def __init__(
        self,
        paths: RunPaths,
        plan: Plan,
        cells: Mapping[str, Prepared],
        observer: ProgressListener,
        interrupts: Interrupts,
        run: Callable[[Prepared, str], None],
    ) -> None:
        self._paths = paths
        self._plan = plan
        self._cells: Mapping[str, Prepared] = {} if plan.platform.is_simulated else cells
        """Those that compute something."""
        self._observer = observer
        self._interrupts = interrupts
        self._run = run

    def before_trials(self) -> None:
        """Run each compiling cell once from empty caches, then probe each cell."""
        self._run_due(COLD, self._is_cold)
        if self._plan.measure.explain:
            self._run_due(PROBE, untimed_jobs.probe_is_due)

    def after_trials(self) -> None:
        """Divide steps among layers, and measure what the machine can do at most."""
        if not self._plan.measure.explain:
            return
        self._divide_steps()
        if self._cells:
            ceilings = MachineCeilings(self._plan.platform.name, self._cells)
            self._run_due(CEILINGS, ceilings.is_due, partial(ceilings.prepared, self._paths))
            ceilings.keep(self._paths)

    def is_undivided(self) -> bool:
        """Whether a signal came before every step was divided that this session could divide."""
        if not self._interrupts.count:
            return False
        return any(key in self._cells for key in untimed_jobs.undivided(self._paths, self._plan))

    def _run_due(
        self,
        name: str,
        is_due: Callable[[RunPaths, Cell], bool],
        prepared: Callable[[Prepared], Prepared] = lambda one: one,
    ) -> None:
        """Run a job of each cell once; its failure does not stop the session."""
        for one in self._cells.values():
            if self._interrupts.count == 0 and is_due(self._paths, one.cell):
                self._run(prepared(one), name)

    @staticmethod
    def _is_cold(paths: RunPaths, cell: Cell) -> bool:
        """Whether a cell's caches are to be filled, so that the order of blocks decides nothing."""
        if not cell.factors["compile"] or cell.factors["compile_cache"] != "warm":
            return False
        return untimed_jobs.first_or_once_more(paths, paths.cold(cell.key))

    def _divide_steps(self) -> None:
        """Trace the steps of cells that are not divided yet, or were disturbed while they were."""
        again = [] if self._interrupts.count else untimed_jobs.disturbed(self._paths, self._plan)
        repeats = untimed_jobs.traces_again(self._paths)
        for key in filter(self._cells.__contains__, again):
            self._observer.noted(
                f"{self._plan.cell(key).label}: its step was disturbed while it was traced, and is "
                f"traced again: {repeats[key] + 2} of at most {untimed_jobs.MOST_TRACES} traces."
            )
        self._run_due(ATTRIBUTION, partial(untimed_jobs.attribution_is_due, disturbed=again))
