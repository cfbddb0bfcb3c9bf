"""Test the method on this machine: two equal cells, and two whose speeds differ by 5 %.

``python -m tests.stats.real_runs`` makes one run of each, 60 blocks of short trials, cuts them into
10 studies of 6 blocks and prints what those say beside what the simulator predicts from the noise
that the runs themselves show. It takes some minutes; nothing else should run. What was
interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

import numpy as np

from harness.analysis.analyse import estimate_cells
from harness.analysis.blocks.paired_blocks import rates_by_block
from harness.stats.compare import compare, log_ratios
from harness.store.dataset import Dataset
from tests.stats.simulator import Truth
from tests.stats.truth import tally

HERE = Path(__file__).parent
BLOCKS, STUDY = 60, 6
SLOWED = 0.95
RUNS = {"equal": ("twin", 1.0), "slowed": ("slowed", SLOWED)}

TEXT = """title = "{name}"
[matrix]
workload = "nothing"
framework = "burner"
burner.work = ["plain", "{other}"]
[measure]
trials = {blocks}
warmup = "60 ms"
until = "400 ms"
reruns = 0
turns = false
tolerate = ["contended", "throttled", "stalled"]
reference = {{ framework = "burner", burner.work = "plain" }}
"""
PLATFORM = """title = "The machine of the tests"
as_found = true
nodes = 1
[frameworks.burner]
interpreter = "{python}"
"""


@dataclass(frozen=True)
class Seen:
    """What a run of 60 blocks says of the method."""

    blocks: int
    ratio: float
    trial_noise: float
    """Deviation of a trial's logarithm that pairing cannot remove."""
    block_noise: float
    """Deviation of what the trials of a block share."""
    answers: Counter[str]
    covered: int
    studies: int


def make(folder: Path, name: str, other: str, blocks: int) -> Path:
    """Run the blocks of two cells; what was interrupted goes on where it was."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(TEXT.format(name=name, other=other, blocks=blocks))
    (folder / "platform.toml").write_text(PLATFORM.format(python=sys.executable))
    run = folder / "runs" / name
    begun = (run / "run.json").is_file()
    new = ("run", f"{name}.toml", "--name", name, "--platform", "platform.toml")
    verb = ("resume", name) if begun else new
    path = os.pathsep.join((str(HERE / "burner"), *sys.path))
    subprocess.run(
        [sys.executable, "-m", "harness.cli", *verb],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return run


def read(run: Path, truth: float) -> Seen:
    """Cut a run into studies and ask each."""
    dataset = Dataset([run])
    (cells,) = estimate_cells(dataset).values()
    plain = next(cell for cell in cells if "plain" in cell.label)
    other = next(cell for cell in cells if "plain" not in cell.label)
    base, row = rates_by_block(plain), rates_by_block(other)
    blocks = sorted(base.keys() & row.keys())
    logs = [
        value
        for value in log_ratios([row[at] for at in blocks], [base[at] for at in blocks])
        if value is not None
    ]
    answers: Counter[str] = Counter()
    covered = 0
    studies = [logs[at : at + STUDY] for at in range(0, len(logs) - STUDY + 1, STUDY)]
    for study in studies:
        told = compare({"other": study})["other"]
        answers[told.answer] += 1
        covered += (told.low or 0) <= truth <= (told.high or 0)
    common = np.log([(base[at] * row[at]) ** 0.5 for at in blocks])
    paired = float(np.std(logs, ddof=1)) / 2**0.5
    shared = max(0.0, float(np.var(common, ddof=1)) - paired**2 / 2) ** 0.5
    return Seen(
        len(blocks), exp(float(np.mean(logs))), paired, shared, answers, covered, len(studies)
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def main() -> None:
    """Run, read, predict and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--read-only", action="store_true", help="the runs are there already")
    wanted = parser.parse_args()
    for name, (other, truth) in RUNS.items():
        run = wanted.folder / "runs" / name
        load = os.getloadavg()[0]
        if not wanted.read_only:
            run = make(wanted.folder, name, other, wanted.blocks)
        seen = read(run, truth)
        predicted = tally(Truth((log(truth),), STUDY, seen.trial_noise, seen.block_noise), 2000)
        told = ", ".join(f"{count} {word}" for word, count in seen.answers.most_common())
        sys.stdout.write(
            f"{name}: {seen.blocks} blocks, load {load:.1f} before, "
            f"{os.getloadavg()[0]:.1f} after; ratio {seen.ratio:.4f} (true {truth}); "
            f"noise of a trial {seen.trial_noise:.2%}, shared by a block {seen.block_noise:.2%}\n"
            f"  {seen.studies} studies of {STUDY}: {told}; "
            f"{seen.covered} intervals hold the truth\n"
            f"  predicted: false news {_share(predicted.false_news)}, "
            f"same {_share(predicted.same)}, power {_share(predicted.power)}, "
            f"covered {_share(predicted.covered)}\n"
        )


if __name__ == "__main__":
    main()
