"""Compute in float64 what an update from a start should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.exact.layer import Array
from harness.exact.passes import Pass
from harness.exact.training import clipped, loss
from harness.gate import tolerances
from harness.gate.proof.start import Start
from harness.worker.gate.subject import stride
from harness.worker.network.rule import SequenceShape
from harness.worker.network.shapes import couples_samples, sites
from harness.worker.network.workload import Training

THIN = 1 << 20
"""Items of a tensor that a trial gives back. Behind a dropout each column of a dense layer has to
meet rows whose units live."""


@dataclass(frozen=True)
class Gradients:
    """What the reference says of one update."""

    gradients: Mapping[str, Array]
    """As many items as a trial gives back."""
    sizes: Mapping[str, float]
    """Of what each gradient adds up."""
    statistics: Sequence[Mapping[str, Array]]
    """Of each part of the batch."""
    slopes: Array
    """The gradient of each sample's output."""


def reference(
    workload: Training, start: Start, number: int, masks: Mapping[str, Array] | None = None
) -> Gradients:
    """Compute the gradients of an update; ``masks`` are those of its living sample.

    A picture is computed once, with what all its copies in the batch send back. The mean of the
    parts' mean losses is that of the batch: only batch norms see a part alone.
    """
    state = {name: np.asarray(one, np.float64) for name, one in start.state.items()}
    rows, live = np.asarray(start.batches[number - 1]), start.lives[number - 1]
    target = np.asarray(start.targets[number - 1])
    passes, sent_back = [], []
    for part in np.split(np.arange(len(rows)), start.parts):
        if live is not None and not couples_samples(workload.network):
            part = np.array([live])  # the others matter to nothing
        shown, place = np.unique(rows[part], return_inverse=True)
        x = np.asarray(start.pictures[shown], np.float64)
        passed = Pass(workload.network, state, x, masks, np.bincount(place).astype(np.float64))
        slope = len(part) / len(rows) * loss(workload.loss, passed.output[place], target[part])[1]
        if live is not None:
            slope[part != live] = 0.0
        together = np.zeros_like(passed.output)
        np.add.at(together, place, slope)
        passed.backward(together)
        passes.append(passed)
        sent_back.append(slope)
    gradients = {
        name: sum((one.gradients[name] for one in passes), np.zeros(()))
        for name in passes[0].gradients
    }
    gradients = dict(clipped(workload, gradients))
    slopes = {
        path: np.concatenate([one.slopes[path] for one in passes]) for path in passes[0].slopes
    }
    in_sequence = {
        site.path for site in sites(workload.network) if isinstance(site.output, SequenceShape)
    }
    sizes = {name: float(np.max(np.abs(one))) for name, one in gradients.items()}
    for name in sizes:
        path, _, kind = name.rpartition("/")
        if kind != "weight":  # sums over samples and positions, which may cancel
            terms = slopes[path].swapaxes(1, 2) if path in in_sequence else slopes[path]
            sizes[name] = max(sizes[name], tolerances.size_of_sums(terms, "fp32"))
    return Gradients(
        {name: thinned(one) for name, one in gradients.items()},
        sizes,
        [one.statistics for one in passes],
        np.concatenate(sent_back),
    )


def thinned(values: Array) -> Array:
    """Take the items that a trial gives back."""
    flat: Array = values.reshape(-1)[:: stride(values.size, THIN)]
    return flat
