"""Examine ranks that train together: each takes its share of one batch, in float64.

The host starts the same request twice, on several ranks with a strategy and on one without, and
compares: several ranks with shares of a batch equal one rank with all of it. An adapter that can
be examined so has a module ``together`` beside it with ``subject(adapter, workload, place) ->
Subject``, whose ``update`` takes the whole batch and trains on this rank's share of it. Where one
rank drives several devices, the subject's ``replicas`` counts them, and ``replica(number)`` gives
the state of each.

What the ranks share out is not what its batch norms see, unless those are synchronised: else they
are left out here, on both sides. The optimiser is one for all, with momentum and weight decay.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from typing import Any, Callable, Dict, Sequence, Set, Tuple

from harness.worker import place as places
from harness.worker.contracts import Unsupported, door
from harness.worker.gate.tensors import Folder, Tensor, Writer
from harness.worker.network.layers import BatchNorm, Layer
from harness.worker.network.shapes import with_branches
from harness.worker.network.workload import SGD, Training

OPTIMISER = SGD(rate=1e-3, momentum=0.9, weight_decay=1e-2)


def examine(
    adapter: Any,
    workload: Training,
    given: Folder,
    made_path: str,
    put: Callable[[Writer, str, Any, int], None],
) -> None:
    """Train as the given folder says; each rank puts what its state is after each update."""
    place = places.find(os.environ)
    asked = given.about["norms"]
    norms = bool(adapter.facts().get("sync_batch_norm")) if asked is None else asked
    network = workload.network
    if not norms:
        network = replace(network, layers=without_norms(network.layers))
    plain = replace(workload, network=network, optimiser=OPTIMISER)
    name = "{}.rank_equality".format(type(adapter).__module__.rpartition(".")[0])
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name != name:
            raise
        raise Unsupported("this adapter's ranks cannot be examined together") from fault
    subject = module.subject(adapter, plain, place)
    initial = _of(given, plain)
    subject.load(initial)
    subject.reset()
    replicas: int = door(subject, "replicas") or 1
    first = place.rank * replicas
    made = [Writer(path_of(made_path, first + replica)) for replica in range(replicas)]
    batch = given.tensors["input"], given.tensors["target"]
    for update in range(1, given.about["updates"] + 1):
        subject.update(*batch)
        for replica, writer in enumerate(made):
            state = subject.state() if replicas == 1 else subject.replica(replica)
            put(writer, "after/{}/".format(update), state, given.about["thin"])
    for writer in made:
        writer.close({"norms": norms, "size": place.size * replicas})


def path_of(made: str, replica: int) -> str:
    """Name the folder of what one of all ranks, or devices, makes."""
    return made if replica == 0 else "{}.{}".format(made, replica)


def share(count: int, rank: int, size: int) -> slice:
    """Say which samples of a batch are a rank's."""
    if count % size:
        raise ValueError("a batch of {} does not divide over {} ranks".format(count, size))
    each = count // size
    return slice(rank * each, (rank + 1) * each)


def without_norms(layers: Sequence[Layer]) -> Tuple[Layer, ...]:
    """Leave out every batch norm."""
    return tuple(
        with_branches(layer, without_norms) for layer in layers if not isinstance(layer, BatchNorm)
    )


def _of(given: Folder, workload: Training) -> Dict[str, Tensor]:
    """Choose the starting values that this network has."""
    from harness.worker.network.shapes import parameter_shapes, sites, statistic_shapes

    names: Set[str] = set()
    for site in sites(workload.network):
        names.update(name for name, _ in parameter_shapes(site) + statistic_shapes(site))
    return {name: one for name, one in given.under("initial/").items() if name in names}
