"""Keep how much trials scattered on this machine, so that later plans can say what they will tell.

What a run's comparisons scattered by is kept under ``STATE/noise/``, one small file for each
machine, platform and way of measuring (by turns or one after the other): of the newest runs, by
cell, the variance of one trial's logarithm and its degrees of freedom; by turns also how much of it
the rounds explain, and how long a trial measured.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import user_folders
from harness.environments import cache
from harness.machine import share
from harness.plan.power.prospects import KnownNoise, Split
from harness.plan.turn_rules import reasons
from harness.store.files import write_json
from harness.store.json_text import parse

if TYPE_CHECKING:
    from harness.analysis.results import Results
    from harness.plan.plan import Plan
    from harness.verdicts.results import CellResult

_VERSION = 2  # 1: first, 2: with what rounds say
_MOST_RUNS = 50
_MOST_BYTES = 1 << 20
_FEWEST_BLOCKS = 3
_LEAST = 1e-4
"""No machine is quieter than that."""


@dataclass(frozen=True)
class _Kept:
    """What one run said of a cell."""

    freedom: int
    variance: float
    within: float | None = None
    """What of it the rounds explain, in trials that measured so many seconds."""
    seconds: float = 0.0


def learn(results: Results) -> None:
    """Keep what the comparisons of one run scattered by; where nothing can be kept, nothing is."""
    (run,) = results.runs
    if run.is_simulated:
        return
    platform = str(run.platform.get("name") or "")
    by_key = {cell.key: cell for cell in results.cells}
    found: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    for cell in results.cells:
        base = by_key.get(cell.comparison.reference_key) if cell.comparison is not None else None
        if base is not None and base is not cell:
            by_turns, variance, blocks = _variance(cell, base)
            if blocks >= _FEWEST_BLOCKS and by_turns == _took_turns(cell):
                told = (variance, *(_within(cell, base) if by_turns else ()))
                found[by_turns][cell.key] = [blocks - 1, *(float(f"{one:.4g}") for one in told)]
    name = f"{run.name}/{run.started_wall_ns}"
    for by_turns, cells in found.items():
        file = _file(platform, by_turns=by_turns)
        if cells:
            before = [one for one in _kept(file) if one["run"] != name]
            kept = [*before, {"run": name, "cells": cells}][-_MOST_RUNS:]
            with suppress(OSError):
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_json(file, {"version": _VERSION, "runs": kept})


def known(plan: Plan) -> KnownNoise | None:
    """Say how much a plan's trials will scatter, if those of earlier runs here are like them.

    Cells that were measured here speak for themselves; where none was, all others do.
    """
    if plan.platform.is_simulated:
        return None
    alone = reasons(plan, plan.platform) if plan.measure.turns else plan.by_key
    file = _file(plan.platform.name, by_turns=len(alone) < len(plan.cells))
    runs = [_numbers(one["cells"]) for one in _kept(file)]
    own = [{key: told for key, told in one.items() if key in plan.by_key} for one in runs]
    chosen = [one for one in (own if any(own) else runs) if one]
    told = [kept for one in chosen for kept in one.values()]
    if not told:
        return None
    scatter = max(sqrt(_pooled([(one.freedom, one.variance) for one in told])), _LEAST)
    return KnownNoise(scatter, len(chosen), any(own), _split(told))


def _split(told: Sequence[_Kept]) -> Split | None:
    """Part the variance into what stays and what shrinks with a trial's length."""
    known = [one for one in told if one.within is not None and one.seconds]
    if not known:
        return None
    shrinks = [(one.freedom, (one.within or 0.0) * one.seconds) for one in known]
    stays = [(one.freedom, one.variance - (one.within or 0.0)) for one in known]
    return Split(max(_pooled(stays), _LEAST**2), _pooled(shrinks))


def _pooled(told: Sequence[tuple[int, float]]) -> float:
    return sum(count * one for count, one in told) / sum(count for count, _ in told)


def _within(cell: CellResult, base: CellResult) -> tuple[float, ...]:
    """Give the variance of one trial that its rounds explain, and how long trials measured."""
    from statistics import fmean

    from harness.analysis.blocks.noisy_rounds import known_to

    taken = [one.turns for one in cell.trials if one.counted and one.turns is not None]
    seconds = [sum(one.seconds for one in turns.rounds) for turns in taken if turns.rounds]
    errors = known_to(cell, base).values()
    return (fmean(one**2 for one in errors) / 2, fmean(seconds)) if errors and seconds else ()


def _variance(cell: CellResult, base: CellResult) -> tuple[bool, float, int]:
    """Give whether two cells took turns, the variance of one trial, and their common blocks."""
    from statistics import variance

    from harness.analysis.blocks.paired_blocks import log_ratios, takes_turns_with

    logs = list(log_ratios(cell, base).values())
    each = variance(logs) / 2 if len(logs) > 1 else 0.0  # a ratio is of two trials
    return takes_turns_with(cell, base), each, len(logs)


def _took_turns(cell: CellResult) -> bool:
    """Whether it took turns with any cell: of two sides, most did with another than the base."""
    return any(one.counted and one.turns is not None and one.turns.together for one in cell.trials)


def _kept(file: Path) -> Iterator[dict[str, Any]]:
    try:
        content = parse(file.read_bytes()[:_MOST_BYTES])
    except (OSError, ValueError):  # less is known then
        return
    runs = content.get("runs") if isinstance(content, dict) else None
    for one in runs if isinstance(runs, list) else ():
        if isinstance(one, dict) and isinstance(one.get("cells"), dict) and "run" in one:
            yield one


def _numbers(cells: Mapping[str, Any]) -> dict[str, _Kept]:
    """Give what is numbers; the file is the user's own, and may be damaged."""
    found = {}
    for key, told in cells.items():
        if not (isinstance(told, list) and len(told) in (2, 4)):
            continue
        freedom, *others = told
        if isinstance(freedom, int) and freedom > 0 and all(map(_is_some, others)):
            found[key] = _Kept(freedom, *map(float, others))
    return found


def _is_some(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value) and value >= 0


def _file(platform: str, *, by_turns: bool) -> Path:
    here = (socket.gethostname(), share.cpu(), os.cpu_count(), platform, by_turns)
    return user_folders.state_home() / "noise" / f"{cache.digest(list(here))}.json"
