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
    "processes of others",
    *("corrected memory errors", "uncorrected memory errors"),
    *("link speed", "PCIe lanes", "PCIe generation"),
)
"""Readings that may say why a node is slow, of all its cores, sensors and devices."""
_EACH = {"gpu": "GPU ", "link": "adapter ", "memory": "controller "}
"""Devices that may be sick one by one, so that a mean would hide one: how a reader calls them."""
_APART, _LEAST = 0.1, {"%": 2.0, "": 0.05}
"""So far must they be from the others': as a part of the larger, and at least, by unit."""

Sensor = tuple[str, str, str]
"""Which of a kind of device is told, what was read of it, and the unit."""


def read_otherwise(
    trials: Mapping[tuple[str, int, int], TrialResult], measure: str, number: int
) -> tuple[str, ...]:
    """Say what was read on a node otherwise than on the others: the medians of trials' means."""
    own: dict[Sensor, list[float]] = {}
    others: dict[Sensor, list[float]] = {}
    for (name, node, _), trial in trials.items():
        if name == measure:
            for sensor, mean in _read(trial).items():
                (own if node == number else others).setdefault(sensor, []).append(mean)
    said: dict[tuple[str, str], str] = {}
    for sensor in sorted(own.keys() & others.keys()):
        here, there = float(np.median(own[sensor])), float(np.median(others[sensor]))
        which, name, unit = sensor
        apart = max(_APART * max(abs(here), abs(there)), _LEAST.get(unit, 0.0))
        if abs(here - there) > apart:
            here_words = f"{numbers.number(here)} {unit}".strip()
            device = which.removeprefix("lowest ").removeprefix("highest ")
            told = f"{which}{name} {here_words} (others {numbers.number(there)})"
            said.setdefault((device, name), told)  # where all of a kind differ, once is enough
    return tuple(said.values())


def _read(trial: TrialResult) -> dict[Sensor, float]:
    """Average readings over a node's cores and sensors; of devices give both extremes."""
    found: dict[Sensor, list[float]] = {}
    for one in trial.readings:
        if one.name in _SENSORS and one.scope != "observer":
            mean, _, unit = in_units(one)
            device = _EACH.get(one.scope.partition(":")[0], "")
            found.setdefault((device, one.name, unit), []).append(mean)
    told: dict[Sensor, float] = {}
    for (device, name, unit), some in found.items():
        if device and len(some) > 1:
            told[f"lowest {device}", name, unit] = min(some)
            told[f"highest {device}", name, unit] = max(some)
        else:
            told[device, name, unit] = float(np.mean(some))
    return told
