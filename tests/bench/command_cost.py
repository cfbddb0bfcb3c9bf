"""Measure what commands cost: CPU seconds of whole processes, the smallest of several.

The smallest, because on a shared machine everything else only adds. Bytecode is kept, as where a
package is installed, whatever this environment says.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.runs import RecordedCell, Recording, write_run

HELP_S, PLAN_S, REPORT_S = 0.10, 0.5, 0.5
CELLS, TRIALS = 50, 6
REPEATS = 5

WIDE = """title = "A thousand cells"
[matrix]
workload = ["alexnet", "resnet50"]
framework = ["torch", "jax"]
batch = [{batches}]
precision = ["fp32", "bf16"]
[measure]
trials = 6
"""


def cpu_s(arguments: list[str], cwd: Path) -> float:
    """Give the least CPU seconds of several runs of the command."""
    spent = []
    for _ in range(REPEATS):
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "harness.cli", *arguments],
            {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONDONTWRITEBYTECODE": "",
                "PYTHONPYCACHEPREFIX": str(cwd / "bytecode"),
            },
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        _, status, used = os.wait4(pid, 0)
        assert status == 0, (arguments, cwd)
        spent.append(used.ru_utime + used.ru_stime)
    return min(spent)


def main() -> bool:
    """Print each cost beside its limit; tell whether all are kept."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        study = place / "wide.toml"
        study.write_text(WIDE.format(batches=", ".join(map(str, range(1, 126)))), encoding="utf-8")
        cells = [RecordedCell(factors={"batch": number}) for number in range(1, CELLS + 1)]
        run = write_run(place, cells, Recording(trials=TRIALS))
        rows = (
            ("bakeoff --help", ["--help"], HELP_S),
            ("bakeoff plan, 1,000 cells", ["plan", str(study)], PLAN_S),
            (f"bakeoff report, {CELLS} cells", ["report", str(run)], REPORT_S),
        )
        kept = []
        for what, arguments, limit in rows:
            seconds = cpu_s(arguments, place)
            kept.append(seconds <= limit)
            print(f"{what}: {seconds:.3f} CPU-s (limit {limit})")
    return all(kept)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
