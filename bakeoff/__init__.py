"""Results of runs as typed values, for notebooks and programs.

``bakeoff.load("runs/x").cells[0].rate`` is an ``Estimate``: value, unit, n and interval.
"""

from __future__ import annotations

from pathlib import Path

from harness.analysis.read import run_directories
from harness.errors import BakeoffError
from harness.verdicts.results import CellResult, Comparison, Estimate, Interval, TrialResult
from reports.exports.results_file import ResultsFile, read_results_file, results_file

__all__ = [
    "BakeoffError",
    "CellResult",
    "Comparison",
    "Estimate",
    "Interval",
    "ResultsFile",
    "TrialResult",
    "load",
]


def load(*runs: str | Path) -> ResultsFile:
    """Read runs, or one ``results.json``; a run is a directory, or a name under runs/.

    Whatever a user can cause is a ``BakeoffError`` that says what to do.
    """
    if len(runs) == 1 and Path(runs[0]).suffix == ".json":
        return read_results_file(Path(runs[0]))
    from harness.sections.contract.read import read_with_limits  # brings what reads runs

    return results_file(*read_with_limits(run_directories([str(run) for run in runs])))
