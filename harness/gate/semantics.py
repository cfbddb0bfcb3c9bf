"""Compare a framework's tensors with the reference and name the first that differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from harness.exact import slips, update_slips
from harness.gate import tolerances as arithmetic
from harness.gate.tensors import folders, requests
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder
from harness.worker.network.layers import BatchNorm, Layer
from harness.worker.network.rule import product
from harness.worker.network.shapes import (
    Site,
    borrowed,
    branches,
    parameter_shapes,
    sites,
    statistic_shapes,
)
from harness.worker.network.workload import Adam, AdamW, Training

Array = npt.NDArray[np.float64]
_GRADIENTS_AGREE = "; every gradient agrees"


@dataclass(frozen=True)
class TensorComparison:
    """The result of comparing many tensors."""

    error: float | None
    """The largest error, of those within tolerance where something differs."""
    differs: str | None = None
    """The first layer that differs and by how much."""
    named: bool = False
    """Whether it agrees only once the declared difference is accounted for."""
    has_updates: bool = False
    """Whether updates from the framework's own gradients were among them."""


@dataclass(frozen=True)
class TensorQuestion:
    """One tensor to compare."""

    made: str
    reference: str
    where: str
    """The layer, and what of it."""
    adjust: Callable[[Array], Array] | None = None
    """Accounts for a declared difference."""
    floor: float = 0.0
    slack: float = 0.0
    """An absolute difference that means nothing."""
    allowed: float = arithmetic.TOLERANCE
    besides: str = ""
    """What else is known where it differs, since the questions before it were answered well."""
    slip: Callable[[Array, Callable[[Array], bool]], str] | None = None
    """Names the usual slip that gives what was found, told that and what agrees with it."""


def semantics(
    workload: Training, given: Folder, reference: Folder, made: Folder, declared: Sequence[str]
) -> TensorComparison:
    """Compare everything in float64; ``declared`` are patterns of tensors that may differ."""
    known = _Known(workload, given, reference, declared)
    worst, named = 0.0, False
    for question in known.questions(made):
        expected = folders.array(reference.tensors[question.reference])
        if question.made not in made.tensors:
            return TensorComparison(worst, f"{question.where}: nothing was given")
        found = folders.array(made.tensors[question.made])
        expected = _as_given(expected, found, question, made)
        off = _error(found, expected, question)
        if off > question.allowed and question.adjust is not None:
            adjusted = question.adjust(expected)
            if _error(found, adjusted, question) <= question.allowed:
                named = True
                off = _error(found, adjusted, question)
        if off > question.allowed:
            words = off_by(question.where, found, expected, off, question.allowed)
            words += _slip(found, question, made)
            return TensorComparison(worst, words + question.besides)
        if question.allowed == arithmetic.TOLERANCE:
            worst = max(worst, off)
    return TensorComparison(worst, named=named)


def _as_given(whole: Array, found: Array, question: TensorQuestion, made: Folder) -> Array:
    """Take of a state what a worker gives back of it."""
    if found.shape == whole.shape or not question.made.startswith("after/"):
        return whole
    return whole.reshape(-1)[:: stride(whole.size, made.about["request"]["thin"])]


def _slip(found: Array, question: TensorQuestion, made: Folder) -> str:
    """Name the usual slip that gives what was found, if one does."""
    if question.slip is None:
        return ""

    def agrees(whole: Array) -> bool:
        taken = _as_given(whole, found, question, made)
        return _error(found, taken, question) <= question.allowed

    return question.slip(found, agrees)


def held(site: Site) -> list[str]:
    """Name a layer's tensors: its parameters, and a batch norm's running statistics."""
    return [name for name, _ in parameter_shapes(site) + statistic_shapes(site)]


class _Known:
    """The reference's tensors, and the sizes below which they are only rounding."""

    def __init__(
        self, workload: Training, given: Folder, reference: Folder, declared: Sequence[str]
    ) -> None:
        self._workload = workload
        self._given = given
        self._reference = reference
        self._declared = tuple(declared)
        self._sites = sites(workload.network)
        self._tied = {borrowed(site) for site in self._sites}
        self._samples = given.tensors["input"].shape[0]
        self._updates = given.about["updates"]
        gradients = {
            name: folders.array(tensor) for name, tensor in reference.under("gradient/").items()
        }
        self._floor = arithmetic.floor(gradients.values())
        self._zero = {name for name, one in gradients.items() if np.max(np.abs(one)) <= self._floor}
        self._following = {
            f"{norm}/mean"
            for path, norm in _normed(workload.network.layers)
            if f"{path}/bias" in self._zero
        }

    def questions(self, made: Folder) -> Iterator[TensorQuestion]:
        """List the comparisons in order: outputs forward, gradients backward, then each update."""
        for site in self._sites:
            name = f"activation/{site.path}"
            if name in self._reference.tensors:
                slip = partial(self._slip_of_layer, site)
                yield TensorQuestion(name, name, f"{site.path}: output", slip=slip)
        yield TensorQuestion("output", "output", "the network's output")
        yield TensorQuestion("loss", "loss", "the loss")
        for site in reversed(self._sites):
            for name, _ in parameter_shapes(site):
                key = f"gradient/{name}"
                where = f"{site.path}: gradient of {_kind(name)}"
                own = partial(self._slip_of_table, site) if name in self._tied else None
                yield TensorQuestion(key, key, where, floor=self._floor, slip=own)
        for site in self._sites:
            for name, _ in statistic_shapes(site):
                key, kind = f"statistic/{name}", _kind(name)
                adjust = self._biased(site, kind, None, 1)
                yield TensorQuestion(key, key, f"{site.path}: running {kind}", adjust)
        for update in range(1, self._updates + 1):
            if update in requests.restarted(self._updates):
                yield from self._states(
                    update, f"after update {update} from the reference's state", 1
                )
                continue
            # Left to itself, a network amplifies rounding; a restarted one cannot.
            allowed = arithmetic.TOLERANCE * arithmetic.GROWTH ** (update - 1)
            for question in self._states(update, f"after update {update}", update):
                yield replace(question, allowed=allowed)

    def _states(self, update: int, words: str, updates: int) -> Iterator[TensorQuestion]:
        """Compare a state; ``updates`` lie between it and the state it started from."""
        before = None if updates == update else f"after/{update - 1}"
        for site in self._sites:
            for name in held(site):
                kind = _kind(name)
                # Of a layer itself are its gradients, which are held to the reference before.
                is_moved = kind not in ("mean", "variance")
                who = f"the optimiser: {site.path}'s {kind}"
                key = f"after/{update}/{name}"
                yield TensorQuestion(
                    key,
                    key,
                    f"{who if is_moved else f'{site.path}: running {kind}'} {words}",
                    self._biased(site, kind, before, updates),
                    slack=self._slack(name, updates),
                    besides=_GRADIENTS_AGREE if is_moved else "",
                    slip=partial(self._slip_of_update, name) if is_moved and update == 1 else None,
                )

    def _slip_of_layer(self, site: Site, found: Array, agrees: Callable[[Array], bool]) -> str:
        key = f"layer/{site.path}/input"
        if key not in self._reference.tensors:  # a sum or a product, which has no slips
            return ""
        entering = folders.array(self._reference.tensors[key])
        start = folders.arrays(self._given, "initial/")
        return slips.of_layer(site, start, entering, found, agrees)

    def _slip_of_table(self, site: Site, _found: Array, agrees: Callable[[Array], bool]) -> str:
        x, slope = (
            folders.array(self._reference.tensors[f"layer/{site.path}/{what}"])
            for what in ("input", "gradient")
        )
        return slips.of_table(site, x, slope, agrees)

    def _slip_of_update(self, name: str, _found: Array, agrees: Callable[[Array], bool]) -> str:
        start, gradients = (
            folders.arrays(folder, prefix)
            for folder, prefix in ((self._given, "initial/"), (self._reference, "gradient/"))
        )
        return update_slips.of_first_update(
            self._workload, self._samples, name, start, gradients, agrees
        )

    def _slack(self, name: str, updates: int) -> float:
        """Say how far rounding alone may have moved a state in so many updates.

        Adam divides a gradient by its own size, so where a gradient is zero in exact arithmetic
        (a bias before a batch norm) rounding may become whole steps, here and there in opposite
        directions. The mean of the batch norm behind such a bias follows it, an update later.
        """
        optimiser = self._workload.optimiser
        if not isinstance(optimiser, (Adam, AdamW)):
            return 0.0
        if name in self._zero:
            return 2 * optimiser.rate * updates
        return 2 * optimiser.rate * (updates - 1) if name in self._following else 0.0

    def _biased(
        self, site: Site, kind: str, before: str | None, updates: int
    ) -> Callable[[Array], Array] | None:
        """Account for a declared running variance without Bessel's correction.

        It is the only declared difference the gate can account for; any other still differs.
        """
        name = f"{site.path}/variance"
        if kind != "variance" or not any(fnmatch(name, one) for one in self._declared):
            return None
        assert isinstance(site.layer, BatchNorm)
        momentum = site.layer.momentum
        folder = self._given.under("initial/") if before is None else {}
        start = folder[name] if before is None else self._reference.tensors[f"{before}/{name}"]
        count = self._samples * product(site.input[1:])

        def adjust(variance: Array) -> Array:
            return arithmetic.biased_variance(
                variance, folders.array(start), momentum=momentum, updates=updates, count=count
            )

        return adjust


def _normed(layers: Sequence[Layer], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Give each layer that a batch norm stands directly behind, and that batch norm."""
    for layer, following in zip_longest(layers, layers[1:]):
        if isinstance(following, BatchNorm):
            yield prefix + layer.name, prefix + following.name
        for row in branches(layer):
            yield from _normed(row, f"{prefix}{layer.name}/")


def _error(found: Array, expected: Array, question: TensorQuestion) -> float:
    is_alike = question.slack and found.shape == expected.shape
    if is_alike and float(np.max(np.abs(found - expected))) <= question.slack:
        return 0.0
    return arithmetic.error(found, expected, floor=question.floor)


def off_by(where: str, found: Array, expected: Array, off: float, allowed: float) -> str:
    """Report that a tensor differs, and by how much."""
    if found.shape != expected.shape:
        return f"{where} has shape {found.shape}, not {expected.shape}"
    if not np.all(np.isfinite(found)):
        return f"{where} is not a number everywhere"
    if math.isinf(off):
        return f"{where} is up to {np.max(np.abs(found)):.1e}, and should be zero"
    return f"{where} is {off:.1e} off (allowed: {allowed:.1e})"


def _kind(name: str) -> str:
    return name.rpartition("/")[2]
