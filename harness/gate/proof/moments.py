"""What an optimiser's moments say of one update: the gradient it was given, and how far it moves.

A moment after an update is what it was, decayed, plus the gradient (of SGD also the weight decay).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.exact.layer import Array
from harness.exact.training import change_of
from harness.worker.network.shapes import decayed
from harness.worker.network.workload import SGD, Training


@dataclass(frozen=True)
class Update:
    """One update, as many items of each tensor as a trial gives back."""

    number: int
    before: Mapping[str, Array]
    after: Mapping[str, Array]


def known_parts(workload: Training, name: str, one: Update) -> tuple[list[Array], list[float], str]:
    """Give what a moment holds beside the gradient, with its shares, and the moment's name."""
    optimiser = workload.optimiser
    if isinstance(optimiser, SGD):
        decay = optimiser.weight_decay if name in decayed(workload.network) else 0.0
        key = f"{name}/velocity"
        return [one.before[key], one.before[name]], [optimiser.momentum, decay], key
    return [one.before[f"{name}/first"]], [optimiser.beta1], f"{name}/first"


def gradient_share(workload: Training) -> float:
    """Say with what share a gradient enters a moment."""
    optimiser = workload.optimiser
    return 1.0 if isinstance(optimiser, SGD) else 1 - optimiser.beta1


def rest_of(workload: Training, name: str, one: Update) -> tuple[Array, Array]:
    """Give what a moment holds beyond its known parts, and how large those are."""
    parts, shares, key = known_parts(workload, name, one)
    known = sum((share * part for share, part in zip(shares, parts, strict=True)), np.zeros(()))
    terms = sum(
        (abs(share) * np.abs(part) for share, part in zip(shares, parts, strict=True)), np.zeros(())
    )
    rest: Array = one.after[key] - known
    return rest, np.asarray(terms)


def gradient_of(workload: Training, name: str, one: Update) -> Array:
    """Give the gradient that an update was made with."""
    found: Array = rest_of(workload, name, one)[0] / gradient_share(workload)
    return found


def movement(workload: Training, name: str, one: Update, batch: int) -> Array:
    """Say from the moments after an update how far it moves a weight."""
    optimiser = workload.optimiser
    if isinstance(optimiser, SGD):
        scaled = batch / optimiser.rate_batch if optimiser.rate_batch else 1.0
        moved: Array = optimiser.rate * scaled * one.after[f"{name}/velocity"]
        return moved
    kept = {f"{name}/{moment}": one.before[f"{name}/{moment}"] for moment in ("first", "second")}
    step = int(one.before["step"][0]) + 1
    return change_of(workload, batch, kept)(
        name, one.before[name], gradient_of(workload, name, one), step
    )
