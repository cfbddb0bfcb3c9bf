"""The cell: one point of a study's matrix, its key, its label and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.study.factors import FACTORS, OF_INPUT, goes_without_saying
from harness.toml.values import Value
from harness.worker.scale import FACTORS as OF_SCALE
from harness.worker.scale import Scale

KEY_LENGTH = 16
_SPOKEN = frozenset({"attention", "compile_cache", "shuffle"})
"""Choices whose values do not say by themselves what is chosen."""

_FEW = 2
"""Where more factors than these vary, a label leaves out those at their default."""
_OF_TEXTS = frozenset({"sequence", "attention"})
"""What is absent where a network, or an adapter, has no say in it."""


@dataclass(frozen=True)
class Cell:
    """One point of the matrix, every factor resolved."""

    key: str
    workload: str
    workload_module: str
    framework: str
    """As the study names it, with its environment: tensorflow@1.15."""
    adapter: str
    adapter_module: str
    environment: str
    """The environment its ranks start in; like ``framework``, but for what a strategy implies."""
    strategy: str
    factors: Mapping[str, Any]
    """Every factor but workload and framework, of its own type; None where it says nothing."""
    scale: Scale
    """What the factors of ``OF_SCALE`` come to."""
    options: Mapping[str, Value]
    label: str
    unit: str
    parameters: int | None
    macs: int | None
    epoch_samples: int | None
    start_up_s: float
    """A guess at the time until the first step."""
    content: str | None = None
    """What the files hold that it reads; None if it reads none."""
    own_data: str | None = None
    """The folder that describes a user's own files, where it reads those."""
    own_files: str | None = None
    """The folder that those files lie in."""
    payload: str | None = None
    """The folder of the run that its code lies in, where a side of a comparison has its own."""
    against: str | None = None
    """The cell of the other side that it is held against, where a plan has two sides."""

    @property
    def other_factors(self) -> dict[str, Any]:
        """Give the factors that its scale does not tell."""
        return {name: one for name, one in self.factors.items() if name not in OF_SCALE}

    @property
    def reader_modules(self) -> tuple[str, ...]:
        """Name the module that reads its files, which its loader imports by the format's name."""
        if self.content is None:
            return ()
        return (f"harness.worker.readers.{self.factors['format']}",)


def cell_key(
    workload: str,
    identity: str,
    framework: str,
    factors: Mapping[str, Value],
    options: Mapping[str, Value],
) -> str:
    """Digest what a cell is, so that it is the same on every machine and in every run.

    ``identity`` digests the workload itself. Factors at their vocabulary default say nothing and
    are left out, as are options at theirs (the caller leaves those out), so that a new factor or
    option changes no old key. A batch that follows from ``global_batch`` is left out too.
    """
    changed = {
        name: _whole(value) for name, value in factors.items() if value != FACTORS[name].default
    }
    strategy = changed.pop("strategy", FACTORS["strategy"].default)
    if changed.get("global_batch") is not None:
        changed.pop("batch", None)
    facts = [workload, identity, framework, strategy, changed, dict(options)]
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:KEY_LENGTH]


def _whole(value: Value) -> Value:
    """Write a whole number as one: 20.0 ms are 20 ms, and the same cell."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fingerprint(payload: str, environment: str, platform: str) -> str:
    """Digest what decides whether a finished trial may be kept: code, environment and platform.

    ``payload`` digests the cell's import closure within the payload.
    """
    facts = json.dumps([payload, environment, platform], ensure_ascii=True)
    return hashlib.sha256(facts.encode("ascii")).hexdigest()[:KEY_LENGTH]


def label(
    workload: str,
    framework: str,
    factors: Mapping[str, Value],
    options: Mapping[str, Value],
    varied: Iterable[str],
) -> str:
    """Label a cell by the factors that vary: ``resnet50 · torch · bf16 · batch 64``."""
    words = [workload, framework]
    varied = tuple(varied)
    are_many = len({*varied} - {"workload", "framework", "strategy"}) > _FEW
    for name in varied:
        if name in factors and factors[name] is None and _is_idle(name):
            continue  # it says nothing of such work
        if are_many and goes_without_saying(name, factors.get(name)) and name in factors:
            continue
        if name == "devices_per_rank" and factors.get("device") == "cpu":
            words.append(f"logical CPUs per rank {factors[name]}")
        elif name in factors:
            words.append(_word(name, factors[name]))
        elif name in options:
            words.append(f"{name} {_text(options[name])}")
    return " · ".join(words)


def _is_idle(name: str) -> bool:
    """Whether a factor that is absent has no meaning for the cell."""
    return name in OF_INPUT or name in _OF_TEXTS or FACTORS[name].default is not None


def _word(name: str, value: Value) -> str:
    factor = FACTORS[name]
    words = name.replace("_", " ")
    if name == "communicate":
        return "exchanging" if value else "without exchange"
    if isinstance(value, bool):
        return words if value else f"no {words}"
    if value is None:
        return f"{words} not set"
    if value == "none":
        return f"no {words}"
    if name == "nodes":
        return f"{value} node{'s' if value != 1 else ''}"
    if name == "strategy" or (factor.type == "choice" and name not in _SPOKEN):
        return str(value)
    return f"{words} {value}"


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "not set" if value is None else str(value)


def to_json(cell: Cell) -> dict[str, Any]:
    """Give a cell as plan.json holds it."""
    of_sides = {name for name in ("payload", "against") if getattr(cell, name) is None}
    known = {name: value for name, value in vars(cell).items() if name not in of_sides}
    return {**known, "scale": vars(cell.scale)}
