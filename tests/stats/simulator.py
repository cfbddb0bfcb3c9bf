"""Simulate runs whose truth is known: trials of many blocks, and windows of a trial.

What disturbs them, and how strongly, was read off recorded runs before the method was tuned and is
frozen in ``recorded.toml``; ``python -m tests.stats.recorded RUN`` reads it off another run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NOISE = 0.01
RECORDED: Mapping[str, Any] = tomllib.loads(
    (Path(__file__).parent / "recorded.toml").read_text(encoding="utf-8")
)
TAILS = (
    "normal",
    "heavy",
    "bursts",
    "uneven",
    "one noisy",
    "ties",
    "bad block",
    "drift",
    "autocorrelation",
    "clocks",
    "nodes",
    "one skewed",
)


@dataclass(frozen=True)
class Truth:
    """A study: log ratios per cell, noise of one trial's logarithm, and what disturbs it."""

    effects: tuple[float, ...]
    blocks: int = 6
    noise: float = NOISE
    block_noise: float = 0.03
    """What the cells of a block have in common; pairing removes it."""
    tail: str = "normal"
    """normal; heavy (t with three degrees); bursts (a tenth of the trials is 10 % slower); uneven
    (cells differ tenfold in noise); one noisy (the first cell has ten times the noise); ties (all
    rates are rounded to 1 %); bad block (in the first block cells differ by another 20 %); drift
    (10 % over the run); autocorrelation (0.9 between trials that follow each other); clocks (four
    in ten trials are 8 % slower); nodes (each trial on one of four that differ); one skewed (the
    first cell's trials are exponential, so that their mean says what their shape hides)."""


def draw(truth: Truth, chance: np.random.Generator) -> Array:
    """Draw log(cell / reference), cells by blocks."""
    logs = trials(truth, chance)
    ratios: Array = logs[1:] - logs[0]
    return ratios


def trials(truth: Truth, chance: np.random.Generator, *, in_blocks: bool = True) -> Array:
    """Draw the logarithm of each trial's rate, the reference's first, cells by blocks.

    Without blocks the trials of a cell follow each other, and then come those of the next.
    """
    cells = len(truth.effects) + 1
    shape = (cells, truth.blocks)
    scale = np.full((cells, 1), truth.noise)
    if truth.tail == "uneven":
        scale = truth.noise * np.logspace(-0.5, 0.5, cells)[:, None]
    elif truth.tail == "one noisy":
        scale[1] *= 10
    heavy = truth.tail == "heavy"
    logs = scale * (chance.standard_t(3, shape) if heavy else chance.standard_normal(shape))
    if truth.tail == "one skewed":
        logs[1] = 5 * truth.noise * (chance.exponential(1, truth.blocks) - 1)
    elif truth.tail == "bad block":
        first = logs[:, 0] if in_blocks else logs.reshape(-1)[:cells]
        first += 0.2 * chance.standard_normal(cells)
    if truth.tail == "bursts":
        logs -= 0.1 * (chance.random(shape) < 0.1)
    elif truth.tail == "clocks":
        logs -= 0.08 * (chance.random(shape) < 0.4)
    elif truth.tail == "nodes":
        logs += 0.02 * chance.standard_normal(4)[chance.integers(0, 4, shape)]
    elif truth.tail in ("drift", "autocorrelation"):
        course = _course(truth, cells * truth.blocks, chance)
        logs += _in_order(course, shape, chance) if in_blocks else course.reshape(shape)
    together = truth.block_noise * chance.standard_normal(truth.blocks)
    logs += together if in_blocks else np.repeat(together, cells).reshape(shape)
    logs += np.array((0.0, *truth.effects))[:, None]
    return np.round(logs, 2) if truth.tail == "ties" else logs


def true_median(truth: Truth) -> float:
    """Give the true median of the reference's trials."""
    if truth.tail == "drift":
        return -0.05
    if truth.tail in ("bursts", "clocks"):
        many = trials(replace(truth, effects=(), blocks=400_000), np.random.default_rng(0))
        return float(np.median(many))
    return 0.0


def _course(truth: Truth, count: int, chance: np.random.Generator) -> Array:
    """Draw how the machine's speed changes from trial to trial."""
    if truth.tail == "drift":
        return np.linspace(0, -0.1, count)
    level = np.zeros(count)
    level[0] = 0.03 * chance.standard_normal()
    for index in range(1, count):
        step = 0.03 * (1 - 0.9**2) ** 0.5 * chance.standard_normal()
        level[index] = 0.9 * level[index - 1] + step
    return level


def _in_order(course: Array, shape: tuple[int, int], chance: np.random.Generator) -> Array:
    """Give each trial its place in the course: blocks follow each other, shuffled within."""
    cells, blocks = shape
    table = np.empty(shape)
    for block in range(blocks):
        table[chance.permutation(cells), block] = course[block * cells : (block + 1) * cells]
    return table


def windows(kind: str, chance: np.random.Generator, count: int = 300) -> Array:
    """Draw the step times of one trial that is disturbed in a known way."""
    noise = 0.01 * chance.standard_normal(count)
    if kind == "drift of 10 %":
        noise += np.linspace(0, 0.1, count)
    elif kind == "drift of 2 %":
        noise += np.linspace(0, 0.02, count)
    elif kind == "wandering by 5 %":
        level = np.zeros(count)
        for index in range(1, count):
            level[index] = 0.98 * level[index - 1] + 0.01 * chance.standard_normal()
        noise += level
    elif kind == "two clocks 8 % apart":
        noise += 0.08 * (chance.random(count) < 0.4)
    elif kind == "a neighbour that comes after 30 % and stays":
        noise[count * 3 // 10 :] += 0.1
    elif kind == "one switch of the clock by 8 %":
        noise[chance.integers(count // 10, count * 9 // 10) :] += 0.08
    elif kind == "rhythm of 8 %":
        noise += 0.08 * (np.arange(count) % 20 < 10)
    elif kind == "bursts":
        noise += 0.2 * (chance.random(count) < 0.02)
    elif kind == "heavy tails":
        noise = 0.01 * chance.standard_t(3, count)
    elif kind == "warm-up of 30 windows":
        noise[:30] += 0.3
    return 0.02 * np.exp(noise)


KINDS = (
    "quiet",
    "bursts",
    "heavy tails",
    "warm-up of 30 windows",
    "drift of 2 %",
    "drift of 10 %",
    "wandering by 5 %",
    "two clocks 8 % apart",
    "a neighbour that comes after 30 % and stays",
    "one switch of the clock by 8 %",
    "rhythm of 8 %",
)
