"""Say what a node's sensors told otherwise than the others', which may be why it is slow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.analysis import numbers
from harness.analysis.timelines.hardware_use import in_units
from harness.verdicts.results import TrialResult

_SENSORS = (
    *("clock", "memory clock", "temperature", "power, from its energy counter"),
    *("held back by its quota", "stolen by the host", "cores used by other processes"),
)
"""Readings that may say why a node is slow, of all its cores, sensors and devices."""
_APART, _LEAST = 0.1, {"%": 2.0, "": 0.05}
"""So far must they be from the others': as a part of the larger, and at least, by unit."""


def read_otherwise(
    trials: Mapping[tuple[str, int, int], TrialResult], measure: str, number: int
) -> tuple[str, ...]:
    """Say what was read on a node otherwise than on the others: the medians of trials' means."""
    own: dict[tuple[str, str], list[float]] = {}
    others: dict[tuple[str, str], list[float]] = {}
    for (name, node, _), trial in trials.items():
        if name == measure:
            for sensor, mean in _read(trial).items():
                (own if node == number else others).setdefault(sensor, []).append(mean)
    said = []
    for sensor in sorted(own.keys() & others.keys()):
        here, there = float(np.median(own[sensor])), float(np.median(others[sensor]))
        name, unit = sensor
        apart = max(_APART * max(abs(here), abs(there)), _LEAST.get(unit, 0.0))
        if abs(here - there) > apart:
            here_words = f"{numbers.number(here)} {unit}".strip()
            said.append(f"{name} {here_words} (others {numbers.number(there)})")
    return tuple(said)


def _read(trial: TrialResult) -> dict[tuple[str, str], float]:
    """Average each kind of reading over a node's cores, sensors and devices."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in trial.readings:
        if one.name in _SENSORS and one.scope != "observer":
            mean, _, unit = in_units(one)
            found.setdefault((one.name, unit), []).append(mean)
    return {sensor: float(np.mean(some)) for sensor, some in found.items()}
