"""Save a state with no framework at all: one array, written in one go.

It is as large as the weights of the network and its optimiser's state, and every step changes it in
every part, so that a checkpoint that mixes two moments shows.
"""

from __future__ import annotations

import hashlib
import os
import random
from typing import Mapping

from harness.worker.network.workload import SGD, Adam, AdamW, Training

_PART = 1 << 20
_FILE = "state.bin"
_FLOAT = 4
MOMENTS = {SGD: 1, Adam: 2, AdamW: 2}
"""Numbers that an optimiser keeps of each parameter."""


class PlainState:
    """Steps that change an array, and what saves it; activity and saver in one."""

    name = "one file, written plainly"
    together = False

    def __init__(self, size: int, seed: int, units: Mapping[str, float]) -> None:
        self.units = units
        self.bytes = size
        part = random.Random(seed).getrandbits(8 * _PART).to_bytes(_PART, "little")
        self.state = bytearray(part * (size // _PART) + part[: size % _PART])
        self.steps = 0

    def step(self) -> None:
        """Write the number of the step into every part."""
        self.steps += 1
        told = self.steps.to_bytes(8, "little")
        for place in range(0, self.bytes - len(told), _PART):
            self.state[place : place + len(told)] = told

    def sync(self) -> None:
        """Return at once: nothing runs on a device."""

    def values(self) -> Mapping[str, float]:
        """Have computed nothing."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: one rank has nobody to agree with."""
        return value

    def saver(self) -> PlainState:
        """Save by itself."""
        return self

    def save(self, folder: str) -> None:
        """Write the array."""
        with open(os.path.join(folder, _FILE), "wb", buffering=0) as file:
            rest = memoryview(self.state)
            while rest:
                rest = rest[file.write(rest) :]

    def restore(self, folder: str) -> None:
        """Read the array, and the number of its step."""
        with open(os.path.join(folder, _FILE), "rb", buffering=0) as file:
            rest = memoryview(self.state)
            while rest:
                count = file.readinto(rest)
                if not count:
                    raise ValueError("{} is too short".format(file.name))
                rest = rest[count:]
        self.steps = int.from_bytes(self.state[:8], "little")

    def digest(self) -> str:
        """Hash the array."""
        return hashlib.sha256(self.state).hexdigest()


def state_bytes(training: Training) -> int:
    """Say how large a network's state is: its weights, and one or two moments of each."""
    return _FLOAT * training.parameters * (1 + MOMENTS[type(training.optimiser)])
