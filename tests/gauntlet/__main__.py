"""Make the gauntlet's parts side by side, keep each, and print what they come to.

``python -m tests.gauntlet`` goes on where it was interrupted, or ended after ``--minutes``: parts
are kept under ``--folder``, by the code that they tested. ``--part STAGE NUMBER …`` makes some and
prints what they found: that is how a finding is looked into.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.store.files import write_json
from tests.gauntlet import command, faults, fuzzing, hostile, injector, kills
from tests.gauntlet.part import Part, Stage

STAGES = {stage.name: stage for stage in (kills.STAGE, faults.STAGE, fuzzing.STAGE, hostile.STAGE)}
ROOT = Path(__file__).resolve().parents[2]
_TESTED = ("harness", "reports", "workloads", "tests/gauntlet")
_CODE = (".py", ".toml", ".c", ".j2", ".js", ".css")
_SHOWN = 30


def tested_code() -> str:
    """Give a digest of what is tested: parts of other code are not counted together."""
    digest = hashlib.sha256()
    for folder in _TESTED:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in _CODE:
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def one_part(stage: Stage, seed: int, number: int) -> Part:
    """Make one part in a folder of its own."""
    in_memory = Path("/dev/shm") if stage is fuzzing.STAGE else None
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-gauntlet-", dir=in_memory))
    try:
        began = time.monotonic()
        part = stage.make(seed, number, folder)
        part.counts["seconds"] += round(time.monotonic() - began)
        return part
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lane(
    stage: Stage, wanted: argparse.Namespace, folder: Path, numbers: Sequence[int], until: float
) -> None:
    """Make those of some parts that are not kept yet, while there is time."""
    for number in numbers:
        kept = folder / f"{stage.name}-{number}.json"
        if not kept.exists() and time.monotonic() < until:
            write_json(kept, vars(one_part(stage, wanted.seed, number)))


def kept_parts(stage: Stage, folder: Path) -> Iterator[Part]:
    """Read the parts of a stage that were made."""
    for kept in folder.glob(f"{stage.name}-*.json"):
        raw = json.loads(kept.read_text(encoding="utf-8"))
        yield Part(Counter(raw["counts"]), raw["findings"], raw["largest"])


def start_lanes(wanted: argparse.Namespace, stage: str) -> list[subprocess.Popen[bytes]]:
    """Start the lanes of a stage, each a process with every n-th part."""
    words = ("--seed", str(wanted.seed), "--folder", str(wanted.folder), "--inputs")
    words += (str(wanted.inputs),)
    more = ("--minutes", str(wanted.minutes), "--lanes", str(wanted.lanes))
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.gauntlet", *words, *more, "--lane", stage, str(number)]
        )
        for number in range(wanted.lanes)
    ]


def shown(stage: Stage, part: Part, made: int) -> str:
    """Write a stage's row and what it found."""
    largest = ", ".join(f"{what} {value:,.4g}" for what, value in sorted(part.largest.items()))
    done = f"{part.counts[stage.units]:,} {stage.units} | {made} parts"
    lines = [f"| {stage.title} | {done} | {len(part.findings)} findings | {largest} |"]
    counts = (f"{what} {count:,}" for what, count in sorted(part.counts.items()))
    lines.append(f"    {', '.join(counts)}")
    seen = Counter(json.dumps(_kind(found)) for found in part.findings)
    for kind, count in seen.most_common(_SHOWN):
        lines.append(f"    {count} × {kind}")
    return "\n".join(lines)


def _kind(found: dict[str, object]) -> dict[str, object]:
    """Leave out of a finding what differs from one to the next of its kind."""
    return {key: found[key] for key in ("what", "parser", "where", "call") if key in found}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gauntlet", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/gauntlet"))
    parser.add_argument("--minutes", type=float, default=180)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--only", choices=STAGES, action="append")
    parser.add_argument("--inputs", type=int, default=fuzzing.INPUTS, help="to all parsers")
    parser.add_argument("--part", nargs="+", metavar="STAGE NUMBER")
    parser.add_argument("--lane", nargs=2, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    folder = wanted.folder / f"{tested_code()}-{wanted.seed}"
    if wanted.part or wanted.lane:
        name, *numbers = wanted.part or wanted.lane
        stage = STAGES[name]
        if stage is faults.STAGE:
            injector.preload()
            faults.keep_in(folder)
        command.prepare(f"{os.getpid()}")
        fuzzing.ask_for(wanted.inputs)
        if wanted.part:
            whole = Part()
            for number in map(int, numbers or range(stage.parts())):
                whole.add(one_part(stage, wanted.seed, number))
            print(json.dumps(vars(whole), indent=1))
            return bool(whole.findings)
        until = time.monotonic() + wanted.minutes * 60
        # In an order of chance: what an end in the middle leaves out is anything, not the last.
        every = random.Random(wanted.seed).sample(range(stage.parts()), stage.parts())
        lane(stage, wanted, folder, every[int(numbers[0]) :: wanted.lanes], until)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wanted.minutes * 60
    failed = False
    for name in wanted.only or STAGES:
        wanted.minutes = max(0.0, (until - time.monotonic()) / 60)
        for one in start_lanes(wanted, name):
            failed |= one.wait() != 0
    for name in wanted.only or STAGES:
        whole, made = Part(), 0
        for part in kept_parts(STAGES[name], folder):
            whole.add(part)
            made += 1
        print(shown(STAGES[name], whole, made))
        failed |= bool(whole.findings)
    return failed


if __name__ == "__main__":
    sys.exit(main())
