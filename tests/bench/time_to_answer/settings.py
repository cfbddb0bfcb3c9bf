"""What is held against what: frameworks, planted differences, conditions and methods."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tests.bench.time_to_answer.calibration import DIFFERENCES

FRAMEWORKS = ("torch", "jax", "tensorflow")
CONDITIONS = ("quiet", "neighbour")
METHODS = ("turns", "blocks")
MOST_BLOCKS = 12

_STUDY = """title = "{name}"
[matrix]
workload = "tinycnn"
framework = "planted-{framework}"
batch = 16
threads = 1
planted-{framework}.{sides}
[measure]
{stop}
warmup = "5 steps"
until = "3 s"
timeout = "5 min"
turns = {turns}
tolerate = ["contended", "throttled", "stalled"]
reference = {{ planted-{framework}.{reference} }}
"""
_PLATFORM = """title = "this machine"
as_found = true
nodes = 1
[frameworks.planted-{framework}]
interpreter = "{python}"
"""


@dataclass(frozen=True)
class Setting:
    """One kind of study."""

    framework: str
    difference: float
    """0: two equal cells."""
    condition: str
    method: str

    def __str__(self) -> str:
        percent = f"{self.difference * 100:.0f}"
        return f"{self.framework}-{percent}-{self.condition}-{self.method}"

    def study(self, products: int, *, blocks: int | None = None) -> str:
        """Write the study; of so many blocks, or until it is answered."""
        sides, reference = f"products = [0, {products}]", "products = 0"
        if not products:
            sides, reference = 'copy = ["first", "second"]', 'copy = "first"'
        stop = (
            f"trials = {blocks}" if blocks else f'stop = "answered"\ntrials_at_most = {MOST_BLOCKS}'
        )
        return _STUDY.format(
            name=self,
            framework=self.framework,
            sides=sides,
            reference=reference,
            stop=stop,
            turns="true" if self.method == "turns" else "false",
        )

    def platform(self, python: str) -> str:
        """Write the platform: this machine, with the framework's interpreter."""
        return _PLATFORM.format(framework=self.framework, python=python)


def in_order(number: int, frameworks: Sequence[str], conditions: Sequence[str]) -> list[Setting]:
    """Give each setting once, in a random order that is the same in each session."""
    every = [Setting(*one) for one in product(FRAMEWORKS, (0.0, *DIFFERENCES), CONDITIONS, METHODS)]
    random.Random(number).shuffle(every)
    return [one for one in every if one.framework in frameworks and one.condition in conditions]
