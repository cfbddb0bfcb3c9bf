"""A GPU day: what a machine with an NVIDIA GPU and no network shows, in steps (docs/gpu-day.md).

    python -m tests.gpu --python INTERPRETER --out FOLDER [--only probe,nvml] [--wheels FOLDER]

Exit codes: 0 every step that is possible here is fine; 1 a step failed or is not finished, or none
was possible, or it was interrupted; 2 the command line or this interpreter is not fit.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path


def main() -> int:
    """Do the steps that were asked for; write the summary after each."""
    if sys.version_info < (3, 11):  # noqa: UP036 any Python may be asked to start this
        return _refuse("Bakeoff's own side needs Python 3.11 or later; make .venv with one.")
    asked = _arguments()
    found = shutil.which(asked.python)
    if found is None:
        return _refuse(f"PYTHON={asked.python} (--python): no program of this name is here.")
    python = str(Path(found).absolute())  # not resolved: by its own name a venv is found
    from tests.gpu import host

    out = asked.out.absolute()
    problem = host.prepare(out / "work" / "packages", asked.wheels)
    if problem is not None:
        return _refuse(problem)
    from harness.errors import nearest
    from tests.gpu import results, summary
    from tests.gpu.day import Day
    from tests.gpu.table import STEPS

    names = [step.name for step in STEPS]
    wanted = asked.only.split(",") if asked.only else names
    for name in wanted:
        if name not in names:
            meant = nearest(name, names)
            known = f"    Known: {', '.join(names)}."
            return _refuse(f"STEPS={name} (--only): no step is called so.{meant}\n{known}")
    day = Day(python, out, asked.dry_run)
    if not asked.dry_run:
        left_s = 60 * asked.minutes - results.spent_s(day, STEPS)
        day = replace(day, ends_s=time.monotonic() + left_s)
    (day.work / "steps").mkdir(exist_ok=True)
    if (other := results.other_day(day)) is not None:
        return _refuse(f"{out} has the day of {other}; name another folder for {python}.")
    states = []
    for step in STEPS:
        if step.name in wanted:
            states.append(results.carry_out(day, step)["state"])
            summary.write(day)
    print(out / "summary.md")
    if day.left_s <= 0:
        over = f"The day's {asked.minutes:g} minutes are over"
        print(
            f"{over}: MINUTES={2 * asked.minutes:g} (--minutes) goes on with it.", file=sys.stderr
        )
    is_bad = {results.FAILED, results.UNFINISHED} & set(states)
    return 1 if is_bad or results.OK not in states else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu")
    parser.add_argument("--python", required=True, help="the interpreter that has the frameworks")
    parser.add_argument("--out", type=Path, required=True, help="the folder to fill")
    parser.add_argument("--only", help="steps, separated by commas; default: all")
    parser.add_argument("--minutes", type=float, default=24, help="all steps together, all calls")
    parser.add_argument("--wheels", type=Path, help="wheels of what this interpreter lacks")
    parser.add_argument(
        "--dry-run", action="store_true", help="rehearse on CPUs with the smallest network"
    )
    return parser.parse_args()


def _refuse(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted. What finished is kept; the same command goes on.")
