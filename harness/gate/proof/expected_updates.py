"""Compute in float64 what an update from a start should be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.exact.layer import Array
from harness.exact.passes import Pass
from harness.exact.training import change_of, clipped, loss
from harness.gate import tolerances
from harness.gate.proof.start import Start
from harness.gate.tensors import folders
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder
from harness.worker.network.layers import Dropout, LeakyReLU, MaxPool, Network, ReLU
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
    norm: float = 0.0
    """Of all gradients together, before they are clipped."""


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
    norm = float(np.sqrt(sum(float(np.vdot(one, one)) for one in gradients.values())))
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
        norm,
    )


def stored(given: Folder, number: int) -> Gradients:
    """Read what was written beside a start."""
    return Gradients(
        {k: folders.array(v) for k, v in given.under(f"gradient/{number}/").items()},
        given.about["sizes"][number - 1],
        [
            {k: folders.array(v) for k, v in given.under(f"statistic/{number}/{part}/").items()}
            for part in range(given.about["parts"])
        ],
        folders.array(given.tensors[f"slopes/{number}"]),
    )


def in_order(workload: Training, expected: Gradients) -> list[str]:
    """Name the gradients in the order in which their layers compute forward."""
    order = [site.path for site in sites(workload.network)]
    return sorted(expected.gradients, key=lambda name: order.index(name.rpartition("/")[0]))


def is_smooth(network: Network) -> bool:
    """Tell whether a network has no kinks, and no masks: its gradients change little by little."""
    kinks = (isinstance(one.layer, (Dropout, LeakyReLU, MaxPool, ReLU)) for one in sites(network))
    return not any(kinks)


def following(
    workload: Training, start: Start, moments: Mapping[str, Array], last: Gradients
) -> Start | None:
    """Give the start of the update that goes on from the last one, with its batch again.

    None where it is not known: of large tensors a part of each gradient is kept. Where a network
    has kinks, what keeps its distance from them is one state, not the next; masks are drawn anew.
    """
    if not is_smooth(workload.network):
        return None
    if any(last.gradients[name].size != start.state[name].size for name in last.gradients):
        return None
    kept = {name: np.array(one) for name, one in moments.items()}
    change = change_of(workload, len(start.batches[-1]), kept)
    number = int(moments["step"]) + 1 if "step" in moments else 1
    state = dict(start.state)
    for name, slope in last.gradients.items():
        before = np.asarray(start.state[name], np.float64)
        state[name] = before - change(name, before, slope.reshape(before.shape), number)
    return replace(start, state=state)


def thinned(values: Array) -> Array:
    """Take the items that a trial gives back."""
    flat: Array = values.reshape(-1)[:: stride(values.size, THIN)]
    return flat
