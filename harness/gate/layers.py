"""Compare each layer as it is timed with float64, and name the first that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from harness.exact import slips
from harness.gate import own_updates
from harness.gate import tolerances as arithmetic
from harness.gate.semantics import TensorComparison, off_by
from harness.gate.tensors import folders, requests, sensitive_inputs
from harness.gate.tensors.sensitive_inputs import TensorPart
from harness.gate.tensors.sums import summed
from harness.worker.gate.tensors import Folder
from harness.worker.network.layers import (
    BatchNorm,
    Dropout,
)
from harness.worker.network.rule import SequenceShape
from harness.worker.network.sequence_layers import (
    GELU,
    Embedding,
    LayerNorm,
    RMSNorm,
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
                words = off_by(which, found, expected, off, allowed)
                if kind == "output":
                    words += _slip(site, allowed, given, found, parts, sizes)
                return TensorComparison(worst, words)
            worst = max(worst, off)
    return TensorComparison(worst)


def _slip(
    site: Site,
    allowed: float,
    given: Folder,
    found: arithmetic.Array,
    parts: Sequence[TensorPart],
    sizes: Sequence[Mapping[str, float]],
) -> str:
    """Say which usual slip alone gives a layer's output, in all its parts."""

    def agrees(output: arithmetic.Array) -> bool:
        return all(
            arithmetic.error(one.of(found), one.of(output), scale=size.get("output", 0.0))
            <= allowed
            for one, size in zip(parts, sizes, strict=True)
        )

    entering = folders.array(given.tensors[f"layer/{site.path}/input"])
    return slips.of_layer(site, folders.arrays(given, "initial/"), entering, found, agrees)


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


def _part(part: str) -> str:
    return part.replace("input-gradient", "gradient of its input").replace(
        "gradient/", "gradient of "
    )
