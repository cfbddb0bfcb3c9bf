"""Turn the trials of a recorded run into trials that took turns, as a session would write them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import Any

from harness.store.layout import RunPaths, TrialName
from harness.store.outcome import TurnsRecord, read_outcome, write_outcome
from tests.runs import RecordedCell

GAP_NS = 3_000_000_000
"""How long a trial stands still between two of its turns."""


@dataclass(frozen=True)
class Sharing:
    """How the cells of a run took turns."""

    rounds: int = 7
    alone: Mapping[str, str] = field(default_factory=dict)
    """Framework -> why it ran alone."""
    machine_noise: float = 0.0
    """Spread (of the logarithm) of what the machine does to everybody, from round to round."""
    disturbed: Mapping[tuple[str, int], Sequence[int]] = field(default_factory=dict)
    """Framework and block -> the rounds that no attempt made undisturbed."""
    bursts: Mapping[tuple[str, int], Mapping[int, float]] = field(default_factory=dict)
    """Framework and block -> round -> how many times as long its steps took, though it counts."""
    foreign_cores: float = 0.0
    settles: bool = True
    """Whether turns say what they reached while they settled, as those of older runs do not."""
    slow_start: Mapping[str, float] = field(default_factory=dict)
    """Framework -> how many times as long the steps of the first half of a turn took."""
    known: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Framework -> what checks of earlier runs found."""
    turn_s: float | None = None
    """How long a turn lasts in the record, where it is to be long."""


def take_turns(run: Path, cells: Sequence[RecordedCell], sharing: Sharing) -> Path:
    """Rewrite the events and outcomes of a run, in which the first cell is the reference."""
    paths, chance = RunPaths(run), random.Random(4)
    sharing_cells = [cell for cell in cells if cell.framework not in sharing.alone]
    for block in sorted({int(p.name[6:]) for p in paths.cells.glob("*/trial-*")}):
        common = [
            exp(sharing.machine_noise * chance.gauss(0, 1)) for _ in range(sharing.rounds + 1)
        ]
        together = {cell.key: f"trial-{block}" for cell in sharing_cells}
        for cell in cells:
            trial = paths.trial(cell.key, TrialName(block))
            outcome = read_outcome(trial)
            told = TurnsRecord(alone=sharing.alone.get(cell.framework, ""))
            if not told.alone:
                told = TurnsRecord(
                    together=together,
                    reference=cells[0].key,
                    rounds=sharing.rounds,
                    at_work_s=1.0,
                    known=tuple(sharing.known.get(cell.framework, ())),
                )
                for rank in range(cell.scale.ranks):
                    _rewrite(trial.events(rank), cell, block, sharing, common)
            trial.outcome.unlink()
            write_outcome(replace(outcome, turns=told), trial, settled=False)
    return run


def _rewrite(
    file: Path, cell: RecordedCell, block: int, sharing: Sharing, common: Sequence[float]
) -> None:
    events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    measured = [e for e in events if e["event"] == "window" and e["phase"] == "measure"]
    at = next(i for i, e in enumerate(events) if e.get("name") == "measure")
    after = [e for e in events[at + 1 :] if e not in measured]
    lasting = [one["end"] - one["start"] for one in measured]
    each = max(1, len(lasting) // sharing.rounds)
    now, step = int(events[at]["t"]), int(measured[0]["first"])
    told: list[dict[str, Any]] = [{"event": "phase", "name": "wait", "t": now}]
    place = (cell.framework, block)
    number = 0
    for round_number in range(1, sharing.rounds + 1):
        lost = round_number in sharing.disturbed.get(place, ())
        for attempt in range(1, 4 if lost else 2):
            number += 1
            now += GAP_NS
            begin = now
            factor = common[round_number] * sharing.bursts.get(place, {}).get(round_number, 1.0)
            chunk = lasting[(round_number - 1) * each : round_number * each]
            if sharing.turn_s is not None:
                factor *= sharing.turn_s * 1e9 / sum(chunk)
            slow = sharing.slow_start.get(cell.framework, 1.0)
            half = len(chunk) // 2
            chunk = [*(int(slow * one) for one in chunk[:half]), *chunk[half:]]
            work_s = factor * sum(chunk) / 1e9
            steps = measured[0]["steps"]
            settled = {
                "steps": len(chunk) * steps,
                "work_s": work_s,
                "settled_steps": len(chunk) * steps,
                "settled_s": work_s,
            }
            for phase, some in (
                ("settle", [2 * chunk[0]] * 2),
                ("disturbed" if lost else "measure", chunk),
            ):
                told.append({"event": "phase", "name": phase, "t": now})
                for long in some:
                    end = now + int(long * factor)
                    window = {"event": "window", "phase": phase, "first": step, "start": now}
                    told.append({**window, "steps": steps, "end": end, "turn": number})
                    now, step = end + 20_000, step + steps
            told.append({"event": "phase", "name": "wait", "t": now})
            told.append(
                {
                    "event": "turn",
                    "number": number,
                    "round": round_number,
                    "attempt": attempt,
                    "start": begin,
                    "end": now,
                    "disturbed": "others used 0.61 of the 2 cores" if lost else "",
                    "foreign_cores": 0.61 if lost else sharing.foreign_cores,
                    **(settled if sharing.settles else {}),
                }
            )
    for one in after:
        if "t" in one:
            one["t"] = now
    lines = [*events[:at], *told, *after]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
