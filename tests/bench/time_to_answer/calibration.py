"""Choose how many products make a step a given share longer, and measure by how much they do.

The ratio that a study is judged by is not the one that was wanted but the one that was measured:
steps with and without the products by turns in one process, for nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from harness.stats.estimate import centre, centre_interval
from tests.adapters.interpreter import ROOT, python

DIFFERENCES = (0.02, 0.05, 0.1)
_TRIED = 40
_ROUNDS = 60


@dataclass(frozen=True)
class Planted:
    """An amount of work added to each step."""

    difference: float
    """By how much longer a step was to take."""
    products: int
    ratio: float
    """The rate with it over the rate without, as measured by itself."""
    low: float
    high: float


def calibrated(framework: str, file: Path) -> tuple[Planted, ...]:
    """Give the amounts for a framework: as they were measured before, else measured now."""
    known = known_amounts(file)
    if framework not in known:
        known[framework] = tuple(_measured(framework))
        file.parent.mkdir(parents=True, exist_ok=True)
        told = {name: [asdict(one) for one in amounts] for name, amounts in known.items()}
        file.write_text(json.dumps(told, indent=1))
    return known[framework]


def known_amounts(file: Path) -> dict[str, tuple[Planted, ...]]:
    """Read what was measured before, by framework."""
    found = json.loads(file.read_text()) if file.is_file() else {}
    return {name: tuple(Planted(**one) for one in amounts) for name, amounts in found.items()}


def _measured(framework: str) -> list[Planted]:
    plain, more = _inside(framework, [0, _TRIED])
    product_s = median(b - a for a, b in zip(plain, more, strict=True)) / _TRIED
    if product_s <= 0:
        raise SystemExit(f"{framework}: {_TRIED} products took no time that shows; try once more")
    counts = [max(1, round(one * median(plain) / product_s)) for one in DIFFERENCES]
    base, *others = _inside(framework, [0, *counts])
    found = []
    for difference, count, seconds in zip(DIFFERENCES, counts, others, strict=True):
        ratios = [a / b for a, b in zip(base, seconds, strict=True)]
        told = centre_interval(ratios)
        assert told is not None, "there are many rounds"
        found.append(Planted(difference, count, centre(ratios), told.low, told.high))
    return found


def _inside(framework: str, products: Sequence[int]) -> list[list[float]]:
    """Run one process in the framework's interpreter."""
    module = "tests.bench.time_to_answer.inside"
    made = subprocess.run(
        [python(framework), "-m", module, framework, str(_ROUNDS), json.dumps(products)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise SystemExit(made.stderr)
    seconds: list[list[float]] = json.loads(made.stdout.splitlines()[-1])
    return seconds
