"""Run studies one after the other, and write down what each answered, and after how long.

A record is written when its study has ended; one that was cut off begins anew.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.analysis.analyse import analyse
from harness.analysis.blocks.paired_blocks import log_ratios
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.run.progress import Progress
from harness.run.session import start
from harness.store.dataset import Dataset
from harness.store.outcome import Outcome
from harness.study.study import load_study
from harness.verdicts.results import Comparison
from tests.adapters.interpreter import python
from tests.bench.time_to_answer.neighbour import coming_and_going
from tests.bench.time_to_answer.settings import Setting

PLANTING = Path(__file__).parent / "planting"


class Interrupted(Exception):
    """Somebody ended the session."""


@dataclass(frozen=True)
class Record:
    """What a study said, beside what is true."""

    framework: str
    difference: float
    condition: str
    method: str
    number: int
    truth: float
    """The ratio as it was measured by itself."""
    seconds: float
    """From the study's start to its answer, or to its end without one."""
    answer: str
    ratio: float | None
    low: float | None
    high: float | None
    logs: dict[int, float]
    """Block log ratios."""
    block_s: dict[int, float]
    """What the trials of a block kept the machine busy for."""

    @property
    def setting(self) -> Setting:
        """Give what kind of study it was."""
        return Setting(self.framework, self.difference, self.condition, self.method)


class _Silent:
    """An observer that draws nothing."""

    def progressed(self, progress: Progress) -> None:
        """Draw nothing."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Draw nothing; what failed is in the run."""

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Draw nothing."""


def recorded(file: Path) -> list[Record]:
    """Read what was written down."""
    return list(_records(file)) if file.is_file() else []


def _records(file: Path) -> Iterator[Record]:
    for line in file.read_text().splitlines():
        found: dict[str, Any] = json.loads(line)
        for name in ("logs", "block_s"):
            found[name] = {int(block): value for block, value in found[name].items()}
        yield Record(**found)


def run(
    setting: Setting,
    number: int,
    folder: Path,
    *,
    products: int,
    truth: float,
    blocks: int | None = None,
) -> Record:
    """Run one study, and write down what it said."""
    if str(PLANTING) not in sys.path:
        sys.path.insert(0, str(PLANTING))
    place = folder / "runs" / f"{setting}-{'bank' if blocks else 'study'}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    file, platform = place / "study.toml", place / "platform.toml"
    file.write_text(setting.study(products, blocks=blocks))
    platform.write_text(setting.platform(python(setting.framework)))
    study = load_study(file)
    plan = make_plan(study, load_platform(str(platform)))
    beside = coming_and_going(number) if setting.condition == "neighbour" else nullcontext()
    with beside:
        began = time.monotonic()
        result = start(plan, root=place / "run", study_text=study.text, observer=_Silent())
        seconds = time.monotonic() - began
    if result.interrupted:
        raise Interrupted
    return _record(setting, number, truth, seconds, place / "run")


def keep(record: Record, file: Path) -> None:
    """Add a record to a file."""
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(record)) + "\n")


Compared = tuple[str, Comparison, dict[int, float], dict[int, float]]
"""A cell's name, what was said of it, its block log ratios, and seconds of work by block."""


def compared_in(run: Path) -> Iterator[Compared]:
    """Give each cell of a run that is compared; a block's work is its own and the reference's."""
    dataset = Dataset([run])
    results = analyse(dataset)
    by_key = {cell.key: cell for cell in results.cells}
    for cell in results.cells:
        told = cell.comparison
        if told is None or told.answer == "reference":
            continue
        base = by_key[told.reference_key]
        block_s: dict[int, float] = {}
        for one in dataset.trials:
            if one.outcome.cell_key in (cell.key, base.key):
                spent = block_s.get(one.name.block, 0.0)
                block_s[one.name.block] = spent + one.outcome.at_work_s
        yield cell.label, told, dict(log_ratios(cell, base, rejected=frozenset())), block_s


def _record(setting: Setting, number: int, truth: float, seconds: float, run: Path) -> Record:
    ((_, told, logs, block_s),) = compared_in(run)
    interval = told.interval
    return Record(
        **vars(setting),
        number=number,
        truth=truth,
        seconds=seconds,
        answer=told.answer,
        ratio=told.ratio,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        logs=logs,
        block_s=block_s,
    )
