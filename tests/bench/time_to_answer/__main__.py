"""Measure the machine time to a right answer: planted differences, turns against blocks.

    python -m tests.bench.time_to_answer [studies|bank|table] [--minutes M] [--framework torch …]

Each study compares ``tinycnn`` with itself, or with itself and a known amount of added work
(``planting/``), until it is answered: by turns or by whole trials, on the machine as it is or
beside a neighbour that comes and goes. Kinds of studies take turns in random rounds, so that what
the machine does hits all alike. ``bank`` makes runs of equal cells with a fixed number of blocks,
of which studies are made (``resampling.py``). Results lie in build/time-to-answer, or in another
folder for another state of the machine; a later call goes on there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.bench.time_to_answer import judging, resampling, settings, studies
from tests.bench.time_to_answer.calibration import calibrated, known_amounts

HEAD = (
    "| machine | frameworks | planted | method | studies | right | false | seconds, median "
    "| blocks, median |"
)
DRAWN_HEAD = (
    "| machine | framework | method | blocks | planted | cut: right | false | seconds "
    "| for each right | drawn: right | false | seconds | for each right |"
)
BANKED_BLOCKS = 10


def go_on(options: argparse.Namespace) -> None:
    """Run what is not recorded yet, until the time is over."""
    blocks = BANKED_BLOCKS if options.what == "bank" else None
    folder: Path = options.folder
    file = folder / f"{options.what}.jsonl"
    there = {(one.setting, one.number) for one in studies.recorded(file)}
    planted = {name: {0.0: (0, 1.0)} for name in options.framework}
    if not blocks:
        for name, known in planted.items():
            for one in calibrated(name, folder / "calibration.json"):
                known[one.difference] = (one.products, one.ratio)
    ends = time.monotonic() + 60 * options.minutes
    for number in count(1):
        for setting in settings.in_order(number, options.framework, options.condition):
            if (setting, number) in there or (blocks and setting.difference):
                continue
            if time.monotonic() >= ends:
                return
            products, truth = planted[setting.framework][setting.difference]
            told = studies.run(
                setting, number, folder, products=products, truth=truth, blocks=blocks
            )
            studies.keep(told, file)
            verdict = judging.judged(told.answer, told.truth)
            say(f"{setting} {number}: {told.answer} ({verdict}) after {told.seconds:.0f} s")


def show(folder: Path, drawn: int) -> None:
    """Print what was planted, what studies said, and what drawn studies would."""
    for name, amounts in known_amounts(folder / "calibration.json").items():
        for one in amounts:
            say(
                f"{name}: {one.products} products for {one.difference * 100:.0f} %, "
                f"measured {one.ratio:.4f} [{one.low:.4f}, {one.high:.4f}]"
            )
    found = studies.recorded(folder / "studies.jsonl")
    for by_framework in (False, True):
        say("\n".join(("", HEAD, *judging.table(found, by_framework=by_framework))))
    say("\n".join(("", DRAWN_HEAD)))
    for row in resampling.rows(resampling.banked(studies.recorded(folder / "bank.jsonl")), drawn):
        say(row)


def show_runs(runs: Sequence[Path], condition: str, drawn: int) -> None:
    """Print what studies would say that are made of the blocks of finished runs."""
    say(DRAWN_HEAD)
    for row in resampling.rows(resampling.banked_of_runs(runs, condition), drawn):
        say(row)


def say(line: str) -> None:
    """Print one line of the answer."""
    print(line, flush=True)


def main() -> int:
    """Run studies, or show what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("studies", "bank", "table"), default="studies")
    parser.add_argument("--folder", type=Path, default=Path("build/time-to-answer"))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--framework", nargs="+", default=list(settings.FRAMEWORKS))
    parser.add_argument("--condition", nargs="+", default=list(settings.CONDITIONS))
    parser.add_argument("--drawn", type=int, default=1000, help="studies drawn from each bank")
    parser.add_argument("--runs", type=Path, nargs="+", help="a bank of finished runs of a study")
    options = parser.parse_args()
    if options.runs:
        show_runs(options.runs, " ".join(options.condition), options.drawn)
        return 0
    if options.what != "table":
        try:
            go_on(options)
        except studies.Interrupted:
            return 130
    show(options.folder, options.drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
