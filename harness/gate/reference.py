"""Make and store the gate's reference of each workload: computed with numpy in float64.

No framework has a part in it: layers, losses and optimisers are computed from their definitions
(``harness/exact/``). A reference is two tensor folders, ``given`` and ``made``, named by a hash of
everything that decides what is in them. One takes gigabytes, so what is kept has a bound
(``cache.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import harness
from harness.environments import cache
from harness.exact.layer import Array
from harness.exact.passes import Pass, State, alone
from harness.exact.training import loss, steps
from harness.gate.tensors import draws, folders, reduced_size, requests, sensitive_inputs
from harness.store.bounded_cache import Cache
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder, Writer
from harness.worker.network import (
    layer_rules,
    layers,
    rule,
    sequence_layers,
    sequence_rules,
    shapes,
    tokens,
    workload,
)
from harness.worker.network.layers import Dropout
from harness.worker.network.shapes import sites
from harness.worker.network.workload import Training

Compute = Callable[..., object]
"""Calls a function with arguments, in a process of its own."""


@dataclass(frozen=True)
class GateReference:
    """A reference's inputs and its results."""

    given: Folder
    made: Folder


class GateReferences:
    """The references of a gate, made when first asked for."""

    def __init__(self, kept: Cache, compute: Compute) -> None:
        self._kept = kept
        self._compute = compute
        self._current = ""

    def semantics(self, small: Training) -> GateReference:
        """Give the float64 semantics of an examined workload."""
        return self._keep(small, "semantics", make_semantics)

    def layers(self, small: Training, precision: str) -> GateReference:
        """Give each layer alone, on inputs of a precision."""
        return self._keep(
            small, f"layers-{precision}", make_layers, self.semantics(small), precision
        )

    def _keep(self, small: Training, kind: str, make: Compute, *more: Any) -> GateReference:
        about = key(small)
        if about != self._current:  # another workload: it may need all the room that there is
            self._kept.release_all()
            self._current = about
        place = self._kept.take(
            f"{small.name}-{kind}-{about}",
            lambda beside: self._compute(make, small, beside, *more),
        )
        return _opened(place)


def key(small: Training) -> str:
    """Digest what decides an examined workload's reference, without making it."""
    return cache.digest([code_digest(), np.__version__, repr(small)])


def code_digest() -> str:
    """Digest the code that makes references."""
    package = Path(harness.__file__).parent / "exact"
    gate = (draws, folders, reduced_size, requests, sensitive_inputs)
    words = (layer_rules, layers, rule, sequence_layers, sequence_rules, shapes, workload)
    modules = (*gate, *words, tokens)
    files = [*sorted(package.glob("*.py")), *(Path(one.__file__ or "") for one in modules)]
    whole = hashlib.sha256()
    for file in (*files, Path(__file__)):
        whole.update(file.read_bytes())
    return whole.hexdigest()


def make_semantics(small: Training, place: Path) -> GateReference:
    """Draw a start; compute one pass, what enters and leaves each layer in it, and all updates."""
    requests.write_reference(small, place / "given")
    given = folders.open_folder(place / "given")
    made = Writer(str(place / "made"))
    start = folders.arrays(given, "initial/")
    x, target = (folders.array(given.tensors[name]) for name in ("input", "target"))
    paths = [site.path for site in sites(small.network) if not isinstance(site.layer, Dropout)]
    starting = [update - 1 for update in requests.restarted(given.about["updates"])]
    for number, step in enumerate(steps(small, start, x, target, given.about["updates"]), start=1):
        passed = step.passed
        if number == 1:
            folders.put(made, "output", passed.output)
            folders.put(made, "loss", step.loss)
            written: dict[int, str] = {}
            for path in paths:
                if path not in passed.outputs:
                    continue  # two heads, which are the output
                folders.put(made, f"activation/{path}", passed.outputs[path])
                written[id(passed.outputs[path])] = f"activation/{path}"
            for prefix, arrays in (
                ("gradient", passed.gradients),
                ("statistic", passed.statistics),
            ):
                for name, array in arrays.items():
                    folders.put(made, f"{prefix}/{name}", array)
            for path, array in passed.inputs.items():
                if id(array) in written:  # what left the layer before
                    made.repeat(f"layer/{path}/input", written[id(array)])
                else:
                    folders.put(made, f"layer/{path}/input", array)
                folders.put(made, f"layer/{path}/gradient", passed.slopes[path])
        for name, array in step.state.items():
            if number not in starting:
                array = _compared(array)
            folders.put(made, f"after/{number}/{name}", array)
    made.close({})
    return _opened(place)


def _compared(values: Array) -> Array:
    """Give the items of a state that a worker gives back."""
    step = stride(values.size, requests.THIN)
    return values if step == 1 else values.reshape(-1)[::step]


def make_layers(
    small: Training, place: Path, whole: GateReference, precision: str
) -> GateReference:
    """Compute each layer alone, and the whole network's output and loss."""
    requests.write_layers(small, whole.given, whole.made, precision, place / "given")
    given = folders.open_folder(place / "given")
    made = Writer(str(place / "made"))
    state = folders.arrays(given, "initial/")
    x, target = (folders.array(given.tensors[name]) for name in ("input", "target"))
    passed = Pass(small.network, state, x)
    value, back_from_loss = loss(small.loss, passed.output, target)
    folders.put(made, "output", passed.output)
    folders.put(made, "loss", value)
    for name, array in _last_gradients(small, state, passed, back_from_loss).items():
        folders.put(made, f"gradient/{name}", array)
    for site in sites(small.network):
        prefix = f"layer/{site.path}/"
        if isinstance(site.layer, Dropout) or prefix + "input" not in given.tensors:
            continue
        entering = folders.array(given.tensors[prefix + "input"])
        leaving, back = alone(site, state, entering)
        slope, gradients = back(folders.array(given.tensors[prefix + "gradient"]))
        folders.put(made, prefix + "output", leaving)
        folders.put(made, prefix + "input-gradient", slope)
        for kind, array in gradients.items():
            folders.put(made, f"{prefix}gradient/{kind}", array)
    made.close({})
    return _opened(place)


def _last_gradients(small: Training, state: State, passed: Pass, slope: Array) -> dict[str, Array]:
    """Go back from the loss no further than the last layer whose gradients are compared."""
    names = requests.last_learned(small)
    for site in reversed(sites(small.network) if names else []):
        slope, gradients = alone(site, state, passed.inputs[site.path])[1](slope)
        found = {f"{site.path}/{kind}": array for kind, array in gradients.items()}
        if set(names) <= set(found):
            return found
    return {}


def _opened(place: Path) -> GateReference:
    return GateReference(*(folders.open_folder(place / name) for name in ("given", "made")))
