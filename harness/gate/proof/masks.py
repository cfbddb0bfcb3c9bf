"""Read from an update which inputs a dropout kept for the sample that alone has a gradient.

The weights of the dense layer behind a dropout have one column for each input, and no gradient
where it was dropped: there momentum and decay stand alone, exactly but for rounding. An input that
is zero anyway (behind a ReLU) says nothing, and its column is always so. Where nearly all of a loss
comes from a few outputs, what a column adds to the others' rows is lost in rounding; so the bias in
front of the dropout, if there is one, is asked as well: a gradient reaches it through what was kept
alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.exact.layer import Array
from harness.gate.proof.expected_updates import THIN
from harness.gate.proof.moments import Update
from harness.gate.proof.start import Start
from harness.gate.proof.untrained import Untrained
from harness.worker.gate.subject import stride
from harness.worker.network.layers import Dense, Dropout, Flatten, LeakyReLU, ReLU
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Training

_ROUNDINGS = {"fp32": 8 * 2.0**-24, "bf16": 4 * 2.0**-8}
"""By the precision that moments are held in, of their known parts."""
_OTHERS = {"cross-entropy": 0.0, "mean-squared-error": 1e-3}
"""By loss, how much of the largest gradient may be other samples'."""
_CHANCE = 1e-9
"""Equal masks are one mask where chance makes two equal less often than this."""
_DEVIATIONS = 6.0
"""A dropout this many standard deviations off its rate is not chance."""


class WrongMask(Exception):
    """Say in what a dropout differs from one of its rate."""


def readers(workload: Training) -> dict[str, str]:
    """Name the dense weight behind each dropout."""
    found, waiting = {}, None
    for site in sites(workload.network):
        if isinstance(site.layer, Dropout):
            waiting = site.path
        elif isinstance(site.layer, Dense) and waiting is not None:
            found[waiting], waiting = f"{site.path}/weight", None
        elif not isinstance(site.layer, Flatten):
            waiting = None
    return found


def biases(workload: Training) -> dict[str, str]:
    """Name the bias of the dense layer in front of a dropout, with a kink between at most."""
    found, before = {}, None
    for site in sites(workload.network):
        if isinstance(site.layer, Dense):
            before = f"{site.path}/bias"
        elif isinstance(site.layer, Dropout) and before is not None:
            found[site.path] = before
        elif not isinstance(site.layer, (ReLU, LeakyReLU)):
            before = None
    return found


def read_mask(
    workload: Training,
    path: str,
    living: npt.NDArray[np.bool_],
    rest: Array,
    terms: Array,
    held: str = "fp32",
    of_bias: tuple[Array, Array] | None = None,
) -> Array:
    """Give a dropout's mask: 1 / (1 - rate) where it kept an input.

    ``rest`` is what is left of the moment behind it without momentum and decay, ``terms`` how large
    those were; both as many items as a trial gives back, and ``held`` in a precision. ``of_bias``
    is the same of the bias in front.
    """
    site = next(one for one in sites(workload.network) if one.path == path)
    dense = next(
        one for one in sites(workload.network) if f"{one.path}/weight" == readers(workload)[path]
    )
    assert isinstance(site.layer, Dropout)
    inputs, rate = dense.input[0], site.layer.rate
    columns = np.arange(len(rest)) * stride(inputs * dense.output[0], THIN) % inputs
    kept = np.zeros(inputs, dtype=bool)
    np.logical_or.at(kept, columns[_is_moved(workload, rest, terms, held)], True)
    if of_bias is not None and len(of_bias[0]) == inputs:
        kept |= _is_moved(workload, *of_bias, held)
    lives = living.reshape(-1)
    total, dropped = int(lives.sum()), int((lives & ~kept).sum())
    spread = math.sqrt(rate * (1 - rate) / max(1, total))
    if total and dropped == total:
        raise WrongMask(f"nothing behind {path} is reached by a gradient")
    if abs(dropped / max(1, total) - rate) > _DEVIATIONS * spread:
        raise WrongMask(
            f"{path} drops {dropped} of {total} values where the network says {rate:.0%}"
        )
    return np.where(kept, 1 / (1 - rate), 0.0)


def refuse_one(
    workload: Training,
    drawn: Sequence[Mapping[str, Array]],
    living: Sequence[Mapping[str, npt.NDArray[np.bool_]]],
) -> None:
    """Refuse a dropout whose first and last masks are equal, unless chance may make them so."""
    for path, first in drawn[0].items():
        alive = int((living[0][path] & living[-1][path]).sum())
        is_chance = _chance_of_equal(workload, path, alive) > _CHANCE
        if np.array_equal(first, drawn[-1][path]) and not is_chance:
            raise Untrained(f"{path} drops the same values at every step")


def living_of(start: Start, one: Update) -> dict[str, npt.NDArray[np.bool_]]:
    """Give what enters each dropout alive, of the sample that alone has a gradient."""
    live = start.lives[one.number - 1]
    assert live is not None
    picture = start.batches[one.number - 1][live]
    return {path: np.asarray(of[picture], dtype=bool) for path, of in start.living.items()}


def _chance_of_equal(workload: Training, path: str, alive: int) -> float:
    """Give how probable it is that a dropout treats so many values alike at two steps."""
    (layer,) = (one.layer for one in sites(workload.network) if one.path == path)
    assert isinstance(layer, Dropout)
    each = layer.rate**2 + (1 - layer.rate) ** 2
    return float(each**alive)


def _is_moved(workload: Training, rest: Array, terms: Array, held: str) -> npt.NDArray[np.bool_]:
    """Tell which items of a moment the living sample's gradient reached."""
    of_others = _OTHERS[workload.loss] * float(np.max(np.abs(rest)))
    moved: npt.NDArray[np.bool_] = np.abs(rest) > np.maximum(_ROUNDINGS[held] * terms, of_others)
    return moved
