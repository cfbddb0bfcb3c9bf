"""Compare each layer as it is timed with float64, and name the first that differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

from harness.gate import own_updates
from harness.gate import tolerances as arithmetic
from harness.gate.semantics import TensorComparison, off_by
from harness.gate.tensors import folders, requests, sensitive_inputs
from harness.gate.tensors.sensitive_inputs import TensorPart
from harness.worker.gate.tensors import Folder
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    Layer,
    LeakyReLU,
    MaxPool,
    ReLU,
    Scale,
    Tanh,
)
from harness.worker.network.rule import SequenceShape, product
from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Segments,
    Select,
    SiLU,
    TiedDense,
    ToSequence,
)
from harness.worker.network.shapes import Site, borrowed, branches, parameter_shapes, sites
from harness.worker.network.workload import Training


def timed(
    workload: Training,
    precision: str,
    given: Folder,
    reference: Folder,
    made: Folder,
    declared: Sequence[str] = (),
) -> TensorComparison:
    """Compare each layer as it is timed, then the whole network's output and loss.

    Of a framework that gives them, updates from its own gradients come last.
    """
    worst, named = 0.0, False
    walked = [site for site in sites(workload.network) if not branches(site.layer)]
    samples = given.tensors["input"].shape[0]
    for site in walked:
        finding = layer(site, precision, given, reference, made, declared)
        worst, named = max(worst, finding.error or 0.0), named or finding.named
        if finding.differs is not None:
            return TensorComparison(worst, finding.differs)
    depth = sum(bool(parameter_shapes(site)) for site in walked)
    terms = max(summed(site, samples) for site in walked)
    allowed = arithmetic.network_tolerance(precision, depth, terms)
    output = folders.array(reference.tensors["output"])
    sent_back = arithmetic.loss_slope_tolerance(allowed, output)
    bounds = {"output": allowed, "loss": allowed}
    bounds |= {f"gradient/{name}": sent_back for name in requests.last_learned(workload)}
    for name, most in bounds.items():
        whole = f"the whole network: {name.replace('gradient/', 'gradient of ')}"
        if name not in made.tensors:
            return TensorComparison(worst, f"{whole}: nothing was given")
        found = folders.array(made.tensors[name])
        expected = folders.array(reference.tensors[name])
        off = arithmetic.error(found, expected)
        if off > most:
            return TensorComparison(worst, off_by(whole, found, expected, off, most))
    updates = own_updates.judge(workload, samples, made, declared)
    if updates is None:
        return TensorComparison(worst, named=named)
    return replace(updates, error=max(worst, updates.error or 0.0), named=named or updates.named)


def layer(
    site: Site,
    precision: str,
    given: Folder,
    reference: Folder,
    made: Folder,
    declared: Sequence[str] = (),
) -> TensorComparison:
    """Compare one layer's outputs, gradients and, of a batch norm, its running statistics."""
    terms, is_chain = summed(site, given.tensors["input"].shape[0]), isinstance(site.layer, GELU)
    allowed = arithmetic.layer_tolerance(precision, terms, is_chain=is_chain)
    if isinstance(site.layer, Dropout):
        fault = _dropout(site, given, made, allowed)
        return TensorComparison(0.0, None if fault is None else f"{site.path}: {fault}")
    passed = _passed(site, precision, allowed, given, reference, made)
    if passed.differs is not None or not isinstance(site.layer, BatchNorm):
        return passed
    moved = _moved(site, given, made, declared)
    return replace(moved, error=max(passed.error or 0.0, moved.error or 0.0))


def _passed(
    site: Site, precision: str, allowed: float, given: Folder, reference: Folder, made: Folder
) -> TensorComparison:
    """Compare what passes through a layer, forward and backward, part by part of its channels."""
    worst, prefix = 0.0, f"layer/{site.path}/"
    kinds = ["output"] if isinstance(site.layer, Embedding) else ["output", "input-gradient"]
    kinds += ["gradient/weight"] if borrowed(site) else []
    kinds += [f"gradient/{name.rpartition('/')[2]}" for name, _ in parameter_shapes(site)]
    parts = sensitive_inputs.parts(site.layer, given.tensors[prefix + "input"].shape)
    sizes = [_sizes(site, given, precision, part) for part in parts]
    for kind in kinds:
        where = f"{site.path}: {_part(kind)}"
        if prefix + kind not in made.tensors:
            return TensorComparison(worst, f"{where}: nothing was given")
        found = folders.array(made.tensors[prefix + kind])
        expected = folders.array(reference.tensors[prefix + kind])
        if found.shape != expected.shape:
            return TensorComparison(worst, off_by(where, found, expected, math.inf, allowed))
        for part, size in zip(parts, sizes, strict=True):
            take = part.of_parameter if kind.startswith("gradient/") else part.of
            off = arithmetic.error(take(found), take(expected), scale=size.get(kind, 0.0))
            if off > allowed:
                which = f"{where}, {part.words}," if part.words else where
                return TensorComparison(worst, off_by(which, found, expected, off, allowed))
            worst = max(worst, off)
    return TensorComparison(worst)


def _moved(site: Site, given: Folder, made: Folder, declared: Sequence[str]) -> TensorComparison:
    """Compare a batch norm's running statistics, which are fp32 in every precision."""
    assert isinstance(site.layer, BatchNorm)
    worst, named = 0.0, False
    inputs = folders.array(given.tensors[f"layer/{site.path}/input"])
    count = inputs.size // inputs.shape[1]
    allowed = arithmetic.layer_tolerance("fp32", count)
    for kind, (batch, size) in arithmetic.moments(inputs).items():
        name, where = f"{site.path}/{kind}", f"{site.path}: running {kind}"
        key = f"layer/{site.path}/statistic/{kind}"
        is_declared = any(fnmatch(name, one) for one in declared)
        if key not in made.tensors:
            if is_declared:
                continue
            return TensorComparison(worst, f"{where}: nothing was given")
        before = folders.array(given.tensors[f"initial/{name}"])
        found = folders.array(made.tensors[key])
        off = arithmetic.moved_error(found, before, batch, site.layer.momentum, size)
        if off > allowed and is_declared and kind == "variance":
            biased = batch * ((count - 1) / count)
            adjusted = arithmetic.moved_error(found, before, biased, site.layer.momentum, size)
            if adjusted <= allowed:
                off, named = adjusted, True
        if off > allowed:
            return TensorComparison(worst, off_by(where, found, before, off, allowed))
        worst = max(worst, off)
    return TensorComparison(worst, named=named)


def _dropout(site: Site, given: Folder, made: Folder, tolerance: float) -> str | None:
    """Check a dropout's rate and scale, and that forward and backward use one mask."""
    assert isinstance(site.layer, Dropout)
    prefix = f"layer/{site.path}/"
    passes = []
    for start, end in (("input", "output"), ("gradient", "input-gradient")):
        entering = folders.array(given.tensors[prefix + start])
        leaving = folders.array(made.tensors[prefix + end])
        fault = arithmetic.dropout_fault(entering, leaving, site.layer.rate, tolerance)
        if fault is not None:
            return f"{_part(end)}: {fault}"
        passes.append((entering, leaving))
    forward, backward = passes
    return arithmetic.mask_fault(forward, backward, site.layer.rate)


def _sizes(site: Site, given: Folder, precision: str, part: TensorPart) -> dict[str, float]:
    """Give the size of the terms that a layer's results add up, where they may cancel."""
    if not parameter_shapes(site):
        return {}
    prefix = f"layer/{site.path}/"
    gradient = part.of(folders.array(given.tensors[prefix + "gradient"]))
    is_sequence = isinstance(site.output, SequenceShape)
    channels = gradient.swapaxes(1, 2) if is_sequence else gradient
    sums = arithmetic.size_of_sums(channels, precision)
    found = {"gradient/bias": sums, "gradient/beta": sums}
    if isinstance(site.layer, (LayerNorm, RMSNorm)):  # its terms are slopes times about 1
        found["gradient/gamma"] = sums
    if isinstance(site.layer, BatchNorm):
        inputs = part.of(folders.array(given.tensors[prefix + "input"]))
        gamma = part.of_parameter(folders.array(given.tensors[f"initial/{site.path}/gamma"]))
        found |= arithmetic.sizes_of_norm(inputs, gradient, gamma, site.layer.epsilon)
    return found


def summed(site: Site, samples: int) -> int:
    """Count the products that a layer's largest sum adds up, forward or backward; 0: no sum."""
    return SUMMED[type(site.layer)](site.layer, site, samples)


def _weighed(_layer: Conv | Dense, site: Site, samples: int) -> int:
    _, weight = parameter_shapes(site)[0]
    taps = product(weight[2:])
    return max(weight[0] * taps, weight[1] * taps, _positions(_layer, site, samples))


def _positions(_layer: Layer, site: Site, samples: int) -> int:
    is_sequence = isinstance(site.output, SequenceShape)
    return samples * product(site.output[:-1] if is_sequence else site.output[1:])


def _tied(layer: TiedDense, site: Site, samples: int) -> int:
    return max(layer.features, site.input[-1], _positions(layer, site, samples))


def _of_a_position(layer: Layer, site: Site, samples: int) -> int:
    return max(site.input[-1], _positions(layer, site, samples))


def _samples(_layer: Layer, _site: Site, samples: int) -> int:
    return samples


def _mixed(layer: Attention, site: Site, _samples: int) -> int:
    """Count what meets a query, or what a key gets back from all queries that share it."""
    return max(layer.head, site.input[0] * (layer.heads // layer.kv_heads))


def _windows(layer: MaxPool, site: Site, _samples: int) -> int:
    """Count the windows whose largest value one may be: their gradients add up."""
    return int((-(-layer.kernel // layer.stride)) ** (len(site.input) - 1))


def _no_sum(_layer: Layer, _site: Site, _samples: int) -> int:
    return 0


SUMMED: Mapping[type, Callable[[Any, Site, int], int]] = {
    Conv: _weighed,
    Dense: _weighed,
    BatchNorm: _positions,
    ReLU: _no_sum,
    LeakyReLU: _no_sum,
    # A slope is 1 - tanh², which loses what a few roundings of tanh are.
    Tanh: lambda *_: 1,
    Scale: _no_sum,
    LRN: lambda layer, *_: layer.size,
    MaxPool: _windows,
    AveragePool: lambda layer, site, _: layer.kernel ** (len(site.input) - 1),
    GlobalAverage: lambda _, site, __: product(site.input[1:]),
    Flatten: _no_sum,
    Dropout: _no_sum,
    Embedding: _positions,
    Segments: lambda layer, site, samples: samples * site.input[0] // layer.count,
    Positions: _samples,
    ClassToken: _samples,
    ToSequence: _no_sum,
    LayerNorm: _of_a_position,
    RMSNorm: _of_a_position,
    Attention: _mixed,
    # As a Tanh's: what is near 1 is taken from 1. By tanh it is then multiplied by up to eight: a
    # gradient is 41 roundings of float32 off in the worst of 10 million in JAX, at an input of 4.9,
    # and 63 in TensorFlow.
    GELU: lambda layer, *_: 16 if layer.tanh else 1,
    SiLU: lambda *_: 1,
    Select: _no_sum,
    Gather: _no_sum,
    TiedDense: _tied,
}


def _part(part: str) -> str:
    return part.replace("input-gradient", "gradient of its input").replace(
        "gradient/", "gradient of "
    )
