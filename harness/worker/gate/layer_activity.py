"""Step one layer alone: what the gate examines, on numbers that are drawn once.

Of a layer's input and of the gradient of its output a few thousand numbers are drawn and repeated:
what a layer takes does not depend on them, and the standard library draws slowly.
"""

from __future__ import annotations

import random
import tempfile
from array import array
from typing import Any, Callable, Mapping, Sequence

from harness.worker.feed import Feed
from harness.worker.gate import tensors
from harness.worker.gate.subject import LayerPass, Subject
from harness.worker.network.alone import FORWARD
from harness.worker.network.rule import product
from harness.worker.network.shapes import parameters, sites, statistics, vocabulary
from harness.worker.network.tokens import zipf
from harness.worker.network.workload import LayerAlone

_DRAWN = 65_537
"""A prime: no row, channel or position repeats another."""


class LayerActivity:
    """One pass, or two, of a layer."""

    def __init__(self, layer: LayerPass, workload: LayerAlone, samples: int) -> None:
        self.units: Mapping[str, float] = {workload.unit: float(samples)}
        self.step = layer.forward if workload.passes == FORWARD else layer.both
        self.sync = layer.sync

    def values(self) -> Mapping[str, float]:
        """Give no values: a layer alone has no loss."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: one rank has nobody to agree with."""
        return value


def opened(
    examine: Callable[[Any, str], Subject], workload: LayerAlone, feed: Feed
) -> LayerActivity:
    """Lower a layer as the gate has it lowered, and hand its numbers over."""
    subject = examine(workload.training, "timed")
    (site,) = sites(workload.training.network)
    samples, draw = feed.batch_per_rank, random.Random(feed.seed)
    with tempfile.TemporaryDirectory(prefix="bakeoff-layer-") as folder:
        writer = tensors.Writer(folder)
        for name, held in [*parameters(site), *statistics(site)]:
            numbers = _normal(draw, held.shape, held.mean, held.deviation)
            writer.put("initial/" + name, held.shape, numbers)
        entering, leaving = (samples, *site.input), (samples, *site.output)
        below = vocabulary(workload.training.network)
        if below is None:
            writer.put("input", entering, _normal(draw, entering, 0.0, 1.0))
        else:
            writer.put("input", entering, zipf(feed.seed, product(entering), below), "int64")
        writer.put("gradient", leaving, _normal(draw, leaving, 0.0, 1.0))
        writer.close({})
        drawn = tensors.read(folder)
        subject.load(drawn.under("initial/"))
        layer = subject.layer(
            site.path, drawn.tensors["input"], drawn.tensors["gradient"], workload.to_input
        )
    return LayerActivity(layer, workload, samples)


def _normal(
    draw: random.Random, shape: Sequence[int], mean: float, deviation: float
) -> array[float]:
    count = product(shape)
    some = array("d", (draw.gauss(mean, deviation) for _ in range(min(count, _DRAWN))))
    return (some * (-(-count // len(some))))[:count]
