"""The conditions of a gate's result: the processor, and variables that steer libraries.

A shared home is seen by machines of several kinds, whose kernels differ. ``python -m
harness.gate.conditions`` says what this machine computes on: a launcher runs it on the node where
cells are examined.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.environments.lock import EnvironmentReference, load_lock, lock_files
from harness.environments.worker_python import Interpreter
from harness.errors import Unavailable
from harness.machine.machine import read_machine
from harness.platform.platform import Platform
from harness.platform.variables import laid_over
from harness.ranks.nodes import HERE, launcher, reached
from harness.store.json_text import parse
from harness.study.recorded_variables import is_steering


@dataclass
class Circumstances:
    """The conditions of all cells of a platform; the machine is read once."""

    platform: Platform
    _machine: Mapping[str, Any] = field(default_factory=dict)

    def of(self, environment: str, interpreter: Interpreter) -> dict[str, Any]:
        """Give the conditions of a cell's examination, beside its code and its packages."""
        if not self._machine:
            self._machine = _machine(self.platform)
        reference = EnvironmentReference.parse(environment)
        lock = load_lock(reference.lock) if reference.lock in lock_files() else None
        there = self.platform.variables(environment)
        stated = {*there, *(lock.environment if lock is not None else ())}
        variables = {
            name: value
            for name, value in laid_over(there, interpreter.env).items()
            if name in stated or is_steering(name)
        }
        return {"machine": dict(self._machine), "variables": variables}


def processors() -> dict[str, Any]:
    """Describe this machine's processors, which decide the kernels that a framework picks."""
    machine = read_machine()
    return {
        "cpu": [machine.architecture, machine.cpu_model, *machine.capabilities],
        "gpus": sorted({f"{gpu.name}, driver {gpu.driver}" for gpu in machine.gpus or ()}),
    }


def _machine(platform: Platform) -> dict[str, Any]:
    nodes = launcher(platform).nodes(platform.launcher.settings, os.environ)
    if not nodes or nodes[0] == HERE:
        return processors()
    argv = (sys.executable, "-P", "-m", "harness.gate.conditions")
    return read_processors(reached(platform, nodes[0]).run(*argv), nodes[0])


def read_processors(printed: str, node: str) -> dict[str, Any]:
    """Read what a node printed of its processors; refuse what is no such thing."""
    try:
        told = parse(printed.encode(errors="replace"))
    except ValueError as problem:
        raise Unavailable(f"{node} did not say what its processors are: {problem}.") from None
    if not isinstance(told, dict):
        raise Unavailable(f"{node} did not say what its processors are.")
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(processors()) + "\n")
