"""Measure what reading and judging runs costs: processor time and peak memory.

Processor time of whole processes, imports included, on all cores together; a shared machine's wall
time says nothing. Large runs are made of one recorded cell's files, linked under many names.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from harness.store.layout import RunPaths
from tests.runs import Behaviour, RecordedCell, Recording, write_run

TRIALS, WINDOWS = 10_000, 1_000
BLOCKS = 50
ANALYSE_S, ANALYSE_BYTES, COMPARE_S = 10.0, 2**30, 1.0
COMPARED_CELLS = 100
REPEATS = 3
ANALYSE = """
import sys
from pathlib import Path
from harness.analysis.analyse import analyse
from harness.store.dataset import Dataset
told = analyse(Dataset([Path(sys.argv[1])]))
assert sum(trial.counted for cell in told.cells for trial in cell.trials) == int(sys.argv[2])
"""


def cost(arguments: list[str], folder: Path, repeats: int = REPEATS) -> tuple[float, int]:
    """Give the least processor time of several runs of a program, and the most memory."""
    seconds, memory = [], []
    for _ in range(repeats):
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, *arguments],
            {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONDONTWRITEBYTECODE": "",
                "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
            },
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        _, status, used = os.wait4(pid, 0)
        assert status == 0, arguments
        seconds.append(used.ru_utime + used.ru_stime)
        memory.append(used.ru_maxrss * 1024)
    return min(seconds), max(memory)


def large_run(folder: Path, trials: int = TRIALS, windows: int = WINDOWS) -> Path:
    """Make a run of many trials: one cell is recorded, the others link its event streams."""
    behaviour = Behaviour(windows=windows, warmup=5)
    run = write_run(folder, [RecordedCell(behaviour=behaviour)], Recording(trials=BLOCKS))
    paths = RunPaths(run)
    plan = json.loads(paths.plan.read_text(encoding="utf-8"))
    (first,) = plan["cells"]
    for file in (paths.cells / first["key"]).glob("*/events.0.jsonl"):
        as_workers_write(file)
    for number in range(1, trials // BLOCKS):
        key = f"cell{number:08d}"
        factors = {**first["factors"], "batch": number}
        plan["cells"].append({**first, "key": key, "factors": factors, "label": f"cell {number}"})
        plan["order"] += [[key, block] for block in range(1, BLOCKS + 1)]
        for source in (paths.cells / first["key"]).iterdir():
            target = paths.cells / key / source.name
            target.mkdir(parents=True)
            os.link(source / "events.0.jsonl", target / "events.0.jsonl")
            outcome = (source / "outcome.json").read_text(encoding="utf-8")
            (target / "outcome.json").write_text(outcome.replace(first["key"], key))
    paths.plan.write_text(json.dumps(plan), encoding="utf-8")
    return run


def as_workers_write(file: Path) -> None:
    """Write a recorded stream as a training worker does: without spaces, a loss after each step."""
    lines = []
    for event in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        lines.append(event)
        if event["event"] == "window":
            step = event["first"] + event["steps"] - 1
            lines.append(
                {"event": "values", "step": step, "values": {"loss": 2.302585 / (1 + step)}}
            )
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    file.write_text(text, encoding="utf-8")


def main() -> bool:
    """Print each cost beside its limit; tell whether all are kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = large_run(folder)
        seconds, memory = cost(["-c", ANALYSE, str(run), str(TRIALS)], folder, repeats=1)
        sys.stdout.write(
            f"analysing {TRIALS:,} trials of {WINDOWS:,} windows: {seconds:.1f} CPU-s (limit "
            f"{ANALYSE_S}), {memory / 2**20:.0f} MiB (limit {ANALYSE_BYTES / 2**20:.0f})\n"
        )
        kept = seconds <= ANALYSE_S and memory <= ANALYSE_BYTES
        shutil.rmtree(run)
        cells = [RecordedCell(factors={"batch": n}) for n in range(1, COMPARED_CELLS + 1)]
        runs = [write_run(folder, cells, Recording(name=one, seed=n)) for n, one in enumerate("ab")]
        command = ["-m", "harness.cli", "compare", *map(str, runs)]
        seconds, _ = cost(command, folder)
        sys.stdout.write(
            f"comparing two runs of {COMPARED_CELLS} cells: {seconds:.2f} CPU-s "
            f"(limit {COMPARE_S})\n"
        )
    return kept and seconds <= COMPARE_S


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
