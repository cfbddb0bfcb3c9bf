"""Write the gate's requests to a worker, which ``harness/worker/gate/subject.py`` reads.

reference     weights and a batch, from which the reference is computed
semantics     everything in float64, the later updates from the reference's states
layers        each layer on inputs that a precision holds exactly, for the reference in float64
timed         the same layers, in that precision
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.gate.tensors import draws, folders, reduced_size, sensitive_inputs
from harness.worker.gate.subject import resized
from harness.worker.gate.tensors import Folder, Tensor
from harness.worker.network.layers import Dense, MaxPool, Scale, Tanh
from harness.worker.network.shapes import parameter_shapes, sites
from harness.worker.network.workload import Training

THIN = 65_536
LEFT_ALONE = 2
"""So many updates go on from what the one before left; each further one starts from the
reference's state.

The second shows what a step keeps beside its state, and loading would refresh. Further ones would
only amplify rounding."""

_NOTHING = {"gradients": False, "updates": 0, "layers": False, "thin": 0}


def examined(workload: Training) -> Training:
    """Give the workload at the size at which it is examined."""
    small = resized(workload, None, shallow=True)
    return resized(small, reduced_size.reduced(small.network))


def write_reference(workload: Training, folder: Path) -> None:
    """Draw what the reference of an examined workload starts from."""
    inputs, target = draws.batch(workload, reduced_size.samples(workload.network))
    tensors = {"input": inputs, "target": target}
    tensors |= {f"initial/{name}": values for name, values in draws.initial(workload.network)}
    folders.write(folder, tensors, {"updates": reduced_size.updates(workload.network)})


def write_semantics(workload: Training, given: Folder, reference: Folder, folder: Path) -> None:
    """Write the request for the semantics, with the states of the reference to restart from."""
    tensors: dict[str, Tensor] = dict(given.tensors)
    count = given.about["updates"]
    for update in restarted(count):
        for name, tensor in reference.under(f"after/{update - 1}/").items():
            tensors[f"restart/{update}/{name}"] = tensor
    asked = {"precision": "float64", "gradients": True, "updates": count, "thin": THIN}
    folders.write(folder, tensors, _about(workload, asked))


def restarted(updates: int) -> range:
    """Give the updates that start from the reference's state, not from what the one before left."""
    return range(LEFT_ALONE + 1, updates + 1)


def write_layers(
    workload: Training, given: Folder, reference: Folder, precision: str, folder: Path
) -> None:
    """Write each layer's inputs and weights, rounded to values that the precision holds exactly."""
    layers = {site.path: site.layer for site in sites(workload.network)}
    tensors: dict[str, Any] = {"target": given.tensors["target"]}
    for name, tensor in given.tensors.items():
        if name != "target":
            tensors[name] = _rounded(precision, folders.array(tensor))
    for name, tensor in reference.under("layer/").items():
        path, _, part = name.rpartition("/")
        values = folders.array(tensor)
        if part == "gradient":
            # A backward pass is linear: brought to 1, no gradient is too small for a precision.
            values = values / (np.max(np.abs(values)) or 1.0)
        elif isinstance(layer := layers[path], MaxPool):
            values = draws.distinct(f"layer/{name}", tensor.shape, layer.kernel)
        else:
            values = sensitive_inputs.with_sensitive_part(layer, values)
        tensors[f"layer/{name}"] = _rounded(precision, values)
    asked = {"precision": "timed", "gradients": last_learned(workload), "layers": True}
    folders.write(folder, tensors, _about(workload, asked))


def _rounded(precision: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Round numbers to a precision; tokens are as they are."""
    return values if values.dtype.kind == "i" else draws.to(precision, values)


def last_learned(workload: Training) -> list[str]:
    """Name the parameters of the last dense layer, if no kink lies behind it.

    Their gradients say what the loss sends back, and rounding moves them as little as the output.
    """
    for site in reversed(sites(workload.network)):
        if isinstance(site.layer, Dense):
            return [name for name, _ in parameter_shapes(site)]
        if not isinstance(site.layer, (Tanh, Scale)):
            break
    return []


def write_timed(given: Folder, folder: Path) -> None:
    """Write the request for these layers as they are timed."""
    folders.write(folder, given.tensors, given.about)


def _about(workload: Training, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {**_NOTHING, "input": list(workload.network.input), "shallow": True, **asked}
