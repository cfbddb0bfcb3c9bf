"""Read off recorded runs what a simulation needs: how trials and windows scatter.

``python -m tests.stats.recorded NAME=RUN …`` prints what ``recorded.toml`` holds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from harness.analysis.analyse import estimate_cells
from harness.analysis.blocks.paired_blocks import rates_by_block
from harness.stats.windows.steady import begin, describe
from harness.store.dataset import Dataset
from harness.store.events.rank_streams import read_streams
from harness.verdicts.results import CellResult
from harness.verdicts.trial import step_times


def parameters(run: Path) -> dict[str, float]:
    """Describe the scatter of a run's trials and windows, over all its cells."""
    dataset = Dataset([run])
    (cells,) = estimate_cells(dataset).values()
    rows = np.array([list(row.values()) for row in _complete(cells)])
    residuals = np.log(rows) - np.median(np.log(rows), axis=1)[:, None]
    shared = residuals.mean(axis=0)
    own = residuals - shared
    cell_count, blocks = rows.shape
    noise = float((own**2).sum() / ((cell_count - 1 or 1) * (blocks - 1))) ** 0.5
    shapes = []
    for _, streams in read_streams(dataset.trials):
        if streams:
            times = step_times(streams)
            shapes.append(describe(times[begin(times).start :]))
    return {
        "cells": cell_count,
        "blocks": blocks,
        "trial_noise": round(noise, 4),
        "block_noise": round(
            max(0.0, float(np.var(shared, ddof=1)) - noise**2 / cell_count) ** 0.5, 4
        ),
        "neighbouring_blocks": round(float(np.corrcoef(shared[1:], shared[:-1])[0, 1]), 3),
        "slow_trials": round(float((own < -0.1).mean()), 3),
        "window_spread": round(float(np.median([one.spread for one in shapes])), 4),
        "window_hiccups": round(float(np.median([one.hiccups for one in shapes])), 4),
        "window_autocorrelation": round(
            float(np.median([one.autocorrelation for one in shapes])), 3
        ),
        "window_drift": round(float(np.median([abs(one.drift) for one in shapes])), 4),
    }


def _complete(cells: Sequence[CellResult]) -> list[dict[int, float]]:
    """Keep the blocks in which every cell has a trial that counts."""
    rates = [rates_by_block(cell) for cell in cells]
    common = sorted(set.intersection(*(set(row) for row in rates)))
    return [{block: row[block] for block in common} for row in rates]


def main() -> None:
    """Print one table per run."""
    for argument in sys.argv[1:]:
        name, _, run = argument.partition("=")
        lines = [f"{key} = {value:g}" for key, value in parameters(Path(run)).items()]
        sys.stdout.write("\n".join((f'[run."{name}"]', *lines, "")) + "\n")


if __name__ == "__main__":
    main()
