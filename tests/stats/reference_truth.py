"""Count what a second trial of the reference in each block is worth, in trials to a right answer.

``python -m tests.stats.reference_truth [STUDIES]`` prints the table of
docs/decisions/021-the-reference-runs-once-in-a-block.md. Half of the cells are 5 % faster than the
reference, half are equal to it. A study goes on until all are answered or the budget is spent,
which is so many blocks of one trial each; what is answered leaves. With two trials the reference's
block value is the mean of their logarithms, and a block takes a trial more.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import log

import numpy as np

from harness.stats.answers import ALPHA, CANNOT_TELL, EQUIVALENCE, FEWEST_BLOCKS
from harness.stats.compare import compare, declared_looks

CELLS = (2, 5, 10, 20)
NOISES = (0.01, 0.02, 0.03)
BUDGETS = (8, 12, 20)
_EFFECT = log(1.05)


@dataclass(frozen=True)
class Design:
    """A study's cells beside the reference, its noise and budget, and the reference's trials."""

    cells: int
    noise: float
    budget: int
    references: int

    @property
    def blocks(self) -> int:
        """How many blocks of all cells the budget pays for."""
        return self.budget * (self.cells + 1) // (self.cells + self.references)


def study(design: Design, chance: np.random.Generator) -> tuple[int, int, int]:
    """Give how many cells were answered rightly and wrongly, and the trials that it took."""
    effects = np.array([_EFFECT * (one % 2) for one in range(design.cells)])
    shape = (design.references, design.blocks)
    base = chance.normal(0, design.noise, shape).mean(axis=0)
    own = chance.normal(0, design.noise, (design.cells, design.blocks))
    logs = own + effects[:, None] - base
    looks = declared_looks(FEWEST_BLOCKS, design.blocks)
    answers: dict[int, str] = {}
    trials = done = 0
    for look in looks:
        trials += (look - done) * (design.cells - len(answers) + design.references)
        done = look
        told = compare(
            {str(cell): list(map(float, logs[cell, :look])) for cell in range(design.cells)},
            alpha=ALPHA / len(looks),
            equivalence=EQUIVALENCE,
        )
        for cell in range(design.cells):
            if told[str(cell)].answer != CANNOT_TELL:
                answers.setdefault(cell, told[str(cell)].answer)
        if len(answers) == design.cells:
            break
    right = sum(one == ("faster" if effects[cell] else "same") for cell, one in answers.items())
    return right, len(answers) - right, trials


def row(cells: int, noise: float, budget: int, studies: int) -> str:
    """Give a row: one trial of the reference beside two, and the saving with its 95 % interval."""
    told = [str(cells), f"{noise * 100:.0f} %", str(budget)]
    sums = []
    for references in (1, 2):
        chance = np.random.default_rng((cells, round(1000 * noise), budget, references))
        design = Design(cells, noise, budget, references)
        found = np.array([study(design, chance) for _ in range(studies)])
        right, _, trials = found.sum(axis=0)
        told += [f"{right / studies / cells:.3f}", f"{(found[:, 1] > 0).mean():.3f}"]
        told.append(f"{trials / max(1, right):.1f}")
        each = found[:, 2] / trials - found[:, 0] / max(1, right)
        sums.append((log(trials / max(1, right)), float((each**2).sum())))
    ratio, error = sums[1][0] - sums[0][0], (sums[0][1] + sums[1][1]) ** 0.5
    low, high = np.exp(ratio - 1.96 * error), np.exp(ratio + 1.96 * error)
    told.append(f"{np.exp(ratio):.2f} [{low:.2f}, {high:.2f}]")
    return "| " + " | ".join(told) + " |"


def main(studies: int) -> None:
    """Print the table."""
    for cells in CELLS:
        for noise in NOISES:
            for budget in BUDGETS:
                sys.stdout.write(row(cells, noise, budget, studies) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
