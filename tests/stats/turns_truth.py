"""Simulate studies by turns and by whole trials on one machine, and count wrong and right answers.

``python -m tests.stats.turns_truth`` prints the tables of docs/method.md, in half an hour of one
core (of 19 cells, and of different ones, it runs a fifth of the studies). The machine's speed is a
chain in which each second depends on the one before (AR(1)). A study by turns and one by whole
trials take as long: each trial starts up, and measures as many seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from math import log

import numpy as np
from scipy.signal import lfilter

from harness.stats.compare import compare
from harness.stats.rounds import FEWEST_ROUNDS
from tests.stats.simulator import Array

START_UP_S = 10
SETTLE = 0.2
"""Share of a turn that its first steps take, and that counts as machine time."""
_AT_ONCE = 250


@dataclass(frozen=True)
class Machine:
    """A machine and what runs on it; spreads are of logarithms."""

    spread: float = 0.3
    """Of the machine's speed over time: two trials of 7 s, one after the other, differ by 0.28."""
    alike: float = 0.955
    """What a second has in common with the one before: two turns in a round differ by 0.1, and
    medians of seven rounds by 0.047."""
    turn: float = 0.02
    """Of a turn by itself."""
    process: float = 0.01
    """Between processes of one cell, which are fresh in each block."""
    kind: str = "plain"
    """plain; heavy (turns and processes with three degrees of freedom); bursts (one turn in ten
    takes half as long again, unnoticed); lost (one turn in five is dropped); two speeds (four
    processes in ten are 8 % slower); one skewed (the first cell's processes are exponential)."""


QUIET = Machine(spread=0.02, alike=0.9, turn=0.01)
MACHINES = {
    "shared": Machine(),
    "shared, heavy tails": Machine(kind="heavy"),
    "shared, bursts in one turn of ten": Machine(kind="bursts"),
    "shared, one turn of five lost": Machine(kind="lost"),
    "shared, processes of two speeds": Machine(kind="two speeds"),
    "shared, one cell's processes skewed": Machine(kind="one skewed"),
    "beside builds": Machine(spread=0.5, alike=0.8, turn=0.05),
    "quiet": QUIET,
    "quiet, heavy tails": replace(QUIET, kind="heavy"),
    "quiet, processes of two speeds": replace(QUIET, kind="two speeds"),
}


@dataclass(frozen=True)
class Design:
    """What is compared, and how."""

    effects: tuple[float, ...]
    """Log ratios of the cells to the reference."""
    blocks: int = 7
    rounds: int = 7
    by_turns: bool = True


def log_ratios(
    machine: Machine, design: Design, studies: int, chance: np.random.Generator
) -> Array:
    """Draw each block's log ratios: studies by cells by blocks, not a number where none counts."""
    cells, blocks, rounds = len(design.effects) + 1, design.blocks, design.rounds
    processes = _processes(machine, (studies, cells, blocks), chance)
    processes[:, 1:] += np.array(design.effects)[:, None]
    if design.by_turns:
        seconds = cells * (START_UP_S + rounds)
        speed = _speed(machine, (studies, blocks, seconds), chance)
        order = np.argsort(chance.random((studies, blocks, rounds, cells)), axis=3)
        moments = cells * START_UP_S + np.arange(rounds)[:, None] * cells + order
        turns = np.take_along_axis(speed, moments.reshape(studies, blocks, -1), axis=2)
        turns = turns.reshape(studies, blocks, rounds, cells) + _turns(
            machine, (studies, blocks, rounds, cells), chance
        )
        ratios = turns[..., 1:] - turns[..., :1]
        common = np.isfinite(ratios).sum(axis=2) >= FEWEST_ROUNDS
        middle = np.nanmedian(np.where(common[:, :, None], ratios, 0.0), axis=2)
        block = np.where(common, middle, np.nan).transpose(0, 2, 1)
        each: Array = processes[:, 1:] - processes[:, :1] + block
        return each
    lasting = START_UP_S + rounds
    speed = _speed(machine, (studies, blocks, cells * lasting), chance)
    whole = speed.reshape(studies, blocks, cells, lasting)[..., START_UP_S:]
    whole = whole + _turns(replace(machine, kind=_kept(machine)), whole.shape, chance)
    places = np.argsort(chance.random((studies, blocks, cells)), axis=2)
    trials = np.take_along_axis(whole.mean(axis=3), places, axis=2).transpose(0, 2, 1)
    told: Array = (trials + processes)[:, 1:] - (trials + processes)[:, :1]
    return told


def _kept(machine: Machine) -> str:
    """Lose no second of a whole trial: nothing of it is dropped."""
    return "plain" if machine.kind == "lost" else machine.kind


def _processes(machine: Machine, shape: tuple[int, ...], chance: np.random.Generator) -> Array:
    if machine.kind == "heavy":
        return machine.process * chance.standard_t(3, shape)
    logs = machine.process * chance.standard_normal(shape)
    if machine.kind == "two speeds":
        logs -= 0.08 * (chance.random(shape) < 0.4)
    elif machine.kind == "one skewed":
        logs[:, 1] = 5 * machine.process * (chance.exponential(1, logs[:, 1].shape) - 1)
    return logs


def _speed(machine: Machine, shape: tuple[int, ...], chance: np.random.Generator) -> Array:
    """Draw the machine's speed, second by second, from its usual spread on."""
    fresh = chance.standard_normal(shape) * (1 - machine.alike**2) ** 0.5
    fresh[..., 0] /= (1 - machine.alike**2) ** 0.5
    speed: Array = machine.spread * lfilter([1.0], [1.0, -machine.alike], fresh, axis=-1)
    return speed


def _turns(machine: Machine, shape: tuple[int, ...], chance: np.random.Generator) -> Array:
    heavy = machine.kind == "heavy"
    noise = chance.standard_t(3, shape) if heavy else chance.standard_normal(shape)
    logs: Array = machine.turn * noise
    if machine.kind == "bursts":
        logs -= log(1.5) * (chance.random(shape) < 0.1)
    elif machine.kind == "lost":
        logs[chance.random(shape) < 0.2] = np.nan
    return logs


@dataclass(frozen=True)
class Told:
    """Shares of studies, or of cells."""

    rejected: float
    """Studies in which an interval of any cell excluded its truth's 1; of equal cells only."""
    news: float
    """Studies in which any equal cell was called faster or slower, or another the wrong way."""
    same: float
    """Equal cells called the same."""
    found: float
    """Other cells called what they are."""
    covered: float
    """Studies whose intervals all held the truth."""
    width: float
    """Median width of an interval of logarithms."""


def tell(machine: Machine, design: Design, studies: int, seed: int = 1) -> Told:
    """Run many studies."""
    chance = np.random.default_rng((seed, len(design.effects), design.blocks))
    rejected = news = covered = same = found = equal = 0
    widths: list[float] = []
    for _ in range(-(-studies // _AT_ONCE)):
        for table in log_ratios(machine, design, _AT_ONCE, chance):
            rows = {
                str(place): [None if np.isnan(one) else float(one) for one in row]
                for place, row in enumerate(table)
            }
            told = list(compare(rows).values())
            wrong = off = missed = False
            for one, effect in zip(told, design.effects, strict=True):
                right = "same" if not effect else "faster" if effect > 0 else "slower"
                equal += not effect
                same += not effect and one.answer == "same"
                found += bool(effect) and one.answer == right
                wrong |= one.answer in ("faster", "slower") and one.answer != right
                off |= not effect and (1.0 if one.p is None else one.p) <= 0.05
                if one.low is not None and one.high is not None:
                    missed |= not log(one.low) <= effect <= log(one.high)
                    widths.append(log(one.high / one.low))
            news, rejected, covered = news + wrong, rejected + off, covered + (not missed)
    counted = -(-studies // _AT_ONCE) * _AT_ONCE
    others = counted * len(design.effects) - equal
    return Told(
        rejected / counted,
        news / counted,
        same / equal if equal else 0.0,
        found / others if others else 0.0,
        covered / counted,
        float(np.median(widths)),
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    for name, machine in MACHINES.items():
        for cells in (1, 5, 19):
            worst = [
                tell(machine, Design((0.0,) * cells, blocks), studies // (5 if cells > 5 else 1))
                for blocks in (6, 7, 10)
            ]
            figures = (
                max(one.rejected for one in worst),
                max(one.news for one in worst),
                min(one.covered for one in worst),
                worst[1].same,
            )
            text = " | ".join(f"{figure:.3f}" for figure in figures)
            sys.stdout.write(f"| {name} | {cells} | {text} |\n")
            sys.stdout.flush()
    for name in ("shared", "beside builds", "quiet"):
        for effect in (0.02, 0.05, 0.1, 0.2):
            for cells in (1, 5):
                line = []
                for by_turns in (True, False):
                    design = Design((log(1 + effect),) * cells, by_turns=by_turns)
                    told = tell(MACHINES[name], design, studies // 5)
                    line += [f"{told.found:.3f}", f"{told.width:.3f}"]
                sys.stdout.write(f"| {name} | {effect} | {cells} | {' | '.join(line)} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
