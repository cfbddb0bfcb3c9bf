"""The timed step against a plain script of the same framework, in one process by turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import median
from typing import Any

from tests.bench.pairs.ratios import WALL, ratio
from tests.gpu.answer import Answer, Broken
from tests.gpu.day import Day

LIMIT_S = 300.0
_LEAST = 0.95
"""Of the script's speed, by the median over processes; below it, ours is in the way."""
_PRECISIONS = ("fp32", "bf16")
_PROCESSES, _ROUNDS = 3, 3


def compare(day: Day, framework: str) -> Answer:
    """Let both take steps by turns, in each precision and several processes."""
    version = day.framework(framework)["version"]
    lines, measured, faults = [f"{framework} {version} on {day.device}"], {}, []
    network, batch = ("alexnet", 1) if day.is_dry else ("resnet50", 64)
    for precision in _PRECISIONS[:1] if day.is_dry else _PRECISIONS:
        made = [
            _process(day, (framework, network, batch), precision, number)
            for number in range(1 if day.is_dry else _PROCESSES)
        ]
        of_ours = [ratio(times, "plain", "ours", WALL) for times in made]
        of_plain = [ratio(times, "again", "plain", WALL) for times in made]
        label = f"{network}, batch {batch}, {precision}"
        lines.append(
            f"{label}: {median(of_ours):.3f} of the script's speed ({_ends(of_ours)}); "
            f"the script against itself {median(of_plain):.3f} ({_ends(of_plain)})"
        )
        measured[label] = {"of_the_script": of_ours, "script_twice": of_plain}
        if not day.is_dry and median(of_ours) < _LEAST:
            faults.append(f"{label}: {median(of_ours):.3f} of the script's speed")
    return Answer(tuple(lines), measured, tuple(faults))


def _process(
    day: Day, what: tuple[str, str, int], precision: str, number: int
) -> Mapping[str, Any]:
    chosen = {"precision": precision, **({} if day.is_dry else {"device": "gpu"})}
    rounds = 1 if day.is_dry else _ROUNDS
    words = (*what, json.dumps(chosen), rounds, number)
    done = day.framework_python(
        "-m", "tests.bench.pairs.inside", *map(str, words), limit_s=LIMIT_S / 2
    )
    if done.code:
        raise Broken(f"{what[0]} against its script: {done.last}")
    found: Mapping[str, Any] = json.loads(done.out.splitlines()[-1])
    return found


def _ends(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} processes"
