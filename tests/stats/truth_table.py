"""Count over many simulated studies in parts that are kept, and print the table.

``python -m tests.stats.truth_table --studies 10000`` takes about forty minutes of one core.
Each part has its own seed and is kept under ``--folder``, by the code that it tested: what was
interrupted, or ended after ``--minutes``, goes on where it was. docs/method.md records the table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import log
from pathlib import Path
from zlib import crc32

from harness.store.files import write_json
from tests.stats import others
from tests.stats.simulator import KINDS
from tests.stats.truth import (
    MUST_BE_UNSTEADY,
    NULLS,
    POWER,
    TRUTHS,
    Seed,
    Tally,
    promises_broken,
    tally,
    tally_adaptive,
    tally_runs,
    verdicts,
)

PARTS = 5
RUNS = {"two equal runs of 6, 19 cells": 0.0, "two runs of 6, 19 cells 5 % slower": log(0.95)}
WIDTHS = {f"until an interval of {width * 100:.0f} %": width for width in (0.01, 0.02, 0.05)}
Shares = Mapping[str, float | None]


@dataclass(frozen=True)
class Row:
    """One kind of study, and how to count over some of them."""

    name: str
    count: Callable[[int, Seed], Shares]


@dataclass(frozen=True)
class Table:
    """Rows of one kind."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def _study(name: str, studies: int, seed: Seed) -> Shares:
    return asdict(tally(TRUTHS[name], studies, seed))


def _null(name: str, studies: int, seed: Seed) -> Shares:
    return asdict(tally(NULLS[name], studies, seed))


def _beside(name: str, studies: int, seed: Seed) -> Shares:
    return others.beside(NULLS[name], studies, seed)


def _runs(effect: float, studies: int, seed: Seed) -> Shares:
    return asdict(tally_runs(effect, studies, seed))


def _adaptive(width: float, studies: int, seed: Seed) -> Shares:
    held, blocks = tally_adaptive(width, studies, seed)
    return {"covered": held, "blocks": blocks}


TABLES = {
    "studies": Table(
        ("rejected", "false_news", "power", "same", "covered", "width", "medians"),
        (
            *(Row(name, partial(_study, name)) for name in TRUTHS),
            *(Row(name, partial(_runs, effect)) for name, effect in RUNS.items()),
        ),
    ),
    "no cell differs": Table(
        ("rejected", "false_news", "power", "same", "covered", "width", "medians"),
        tuple(Row(name, partial(_null, name)) for name in NULLS),
    ),
    "beside other tools": Table(
        others.COLUMNS,
        tuple(Row(f"beside: {name}", partial(_beside, name)) for name in NULLS),
    ),
    "repetition": Table(
        ("covered", "blocks"),
        tuple(Row(name, partial(_adaptive, width)) for name, width in WIDTHS.items()),
    ),
    "windows of a trial": Table(
        ("valid", "noisy", "unsteady"),
        tuple(Row(kind, partial(verdicts, kind)) for kind in KINDS),
    ),
}


def tested_code() -> str:
    """Give a digest of the method and of its simulator: parts of another are not merged."""
    known = dict(sys.modules)
    method = sorted(
        Path(str(known[name].__file__)) for name in known if name.startswith("harness.stats.")
    )
    simulator = [
        Path(__file__).with_name(name)
        for name in ("truth.py", "simulator.py", "others.py", "recorded.toml")
    ]
    content = b"".join(file.read_bytes() for file in (*method, *simulator))
    return hashlib.sha256(content).hexdigest()[:12]


def parts(folder: Path, row: Row, studies: int, until: float) -> Iterator[Shares]:
    """Give each part of a row that is kept, and count those that are not while there is time."""
    for number in range(PARTS):
        kept = folder / f"{crc32(row.name.encode()):08x}-{number}.json"
        if not kept.exists():
            if time.monotonic() > until:
                return
            write_json(kept, row.count(studies // PARTS, (number, crc32(row.name.encode()))))
        yield json.loads(kept.read_text(encoding="utf-8"))


def merged(columns: Sequence[str], counted: Sequence[Shares]) -> dict[str, float | None]:
    """Average parts of one size; of medians it gives the mean of the parts'."""
    told: dict[str, float | None] = {}
    for column in columns:
        known = [value for part in counted if (value := part[column]) is not None]
        told[column] = sum(known) / len(known) if known else None
    return told


def broken_by(table: str, name: str, studies: int, shares: Shares) -> list[str]:
    """Say what a row breaks of what is promised."""
    if table == "windows of a trial":
        seldom = name in MUST_BE_UNSTEADY and (shares["unsteady"] or 0) < 0.9
        return [f"unsteady in {shares['unsteady']:.1%}"] if seldom else []
    if table not in ("studies", "no cell differs"):
        return []
    truth = TRUTHS.get(name) or NULLS.get(name)
    found = promises_broken(Tally(studies, **shares), truth)  # type: ignore[arg-type]
    if (shares["power"] or 0) < POWER.get(name, 0):
        found.append(f"power {shares['power']:.3f}")
    return found


def main() -> int:
    """Print the tables, and whether they keep what was promised."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=Path("runs/truth"))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    wanted = parser.parse_args()
    folder = wanted.folder / f"{tested_code()}-{wanted.studies}"
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wanted.minutes * 60
    broken, missing = [], 0
    for title, table in TABLES.items():
        sys.stdout.write(f"\n| {title} | {' | '.join(table.columns)} |\n")
        sys.stdout.write(f"|{'---|' * (len(table.columns) + 1)}\n")
        for row in table.rows:
            counted = list(parts(folder, row, wanted.studies, until))
            missing += PARTS - len(counted)
            if len(counted) < PARTS:
                continue
            shares = merged(table.columns, counted)
            figures = ("–" if share is None else f"{share:.3f}" for share in shares.values())
            sys.stdout.write(f"| {row.name} | {' | '.join(figures)} |\n")
            sys.stdout.flush()
            faults = broken_by(title, row.name, wanted.studies, shares)
            broken += [f"{row.name}: {what}" for what in faults]
    if missing:
        sys.stdout.write(f"\n{missing} parts are still to count: the same command goes on.\n")
        return 1
    sys.stdout.write("\n".join(("", "Not kept:", *broken) if broken else ("", "All kept.")) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
