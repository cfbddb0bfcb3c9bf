"""Write what every trial of a cell starts from, and from what it is examined.

``harness/worker/gate/timed_updates.py`` reads it. For a network without dropout the reference's
gradients are computed here, once; with dropout they depend on the masks that a trial draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.exact.layer import Array
from harness.exact.passes import Pass
from harness.exact.training import loss
from harness.gate import tolerances
from harness.gate.proof.start import NoStart, Raised, TooNear
from harness.gate.tensors import draws, folders
from harness.plan.duration import MOST_START_MACS, UPDATES, start_macs
from harness.worker.gate.subject import stride
from harness.worker.gate.tensors import Folder, Writer
from harness.worker.network.layers import Dense
from harness.worker.network.shapes import has_dropout, parameters, sites, statistics
from harness.worker.network.workload import MOMENTS, SGD, Adam, Training, learning_rate

THIN = 1 << 20
"""Items of a tensor that a trial gives back. Behind a dropout each column of a dense layer has to
meet rows whose units live."""
_PICTURES = 16
"""So many different samples fill a batch: of more, some window has two nearly equal values."""
_PICTURES_DROPPED = 2
_TRIES = 30
_STEP = 3.0
"""How many updates Adam is told it has made: its corrections show."""
_SATURATED = 200.0
"""exp(-200) is 0 in fp32: a sample whose own label is so far ahead has no gradient at all."""


@dataclass(frozen=True)
class Start:
    """A start without kinks and the batches of the updates from it."""

    state: Mapping[str, Array]
    pictures: Array
    batches: Sequence[tuple[int, ...]]
    """For each update, which pictures fill its batch."""
    targets: Sequence[Any]
    living: Mapping[str, Any]
    """Of the inputs of each dropout: which are not zero, by picture."""
    lives: Sequence[int | None]
    """Which sample alone has a gradient; None: all have."""


@dataclass(frozen=True)
class Gradients:
    """What the reference says of one update."""

    gradients: Mapping[str, Array]
    """As many items as a trial gives back."""
    sizes: Mapping[str, float]
    """Of what each gradient adds up."""
    statistics: Mapping[str, Array]


def write_given(workload: Training, batch: int, seed: int, place: Path) -> None:
    """Write starting weights and a first batch; and, if there is one, a start without kinks.

    ``why`` in ``about`` says why there is none.
    """
    writer = Writer(str(place))
    initial = _initial(workload, seed)
    for name, values in initial.items():
        folders.put(writer, f"initial/{name}", values, "float32")
    name = f"proof/{seed}/first"
    pictures = draws.normal(name, (batch, *workload.network.input))
    folders.put(writer, "first/input", pictures, "float32")
    folders.put(writer, "first/target", _targets(workload, name, batch), "float32")
    try:
        start = _found(workload, batch, seed, initial)
    except NoStart as why:
        writer.close({"why": str(why)})
        return
    folders.put(writer, "pictures", start.pictures, "float32")
    for number, target in enumerate(start.targets, start=1):
        folders.put(writer, f"batch/{number}/target", target, "float32")
    for path, living in start.living.items():
        folders.put(writer, f"living/{path}", living.astype(np.int64))
    first = reference(workload, start, 1)
    scales = {name: float(np.sqrt(np.mean(one * one))) for name, one in first.gradients.items()}
    _write_state(workload, writer, initial, start.state, scales, first.sizes)
    sizes = [] if has_dropout(workload.network) else _write_reference(workload, writer, start)
    about = {"batches": [list(one) for one in start.batches], "lives": list(start.lives)}
    writer.close({**about, "sizes": sizes, "thin": THIN})


def read_start(given: Folder) -> Start:
    """Read a start back."""
    updates = range(1, len(given.about["batches"]) + 1)
    return Start(
        state={name: folders.array(one) for name, one in given.under("start/").items()},
        pictures=folders.array(given.tensors["pictures"]),
        batches=[tuple(one) for one in given.about["batches"]],
        targets=[folders.array(given.tensors[f"batch/{number}/target"]) for number in updates],
        living={name: folders.array(one) for name, one in given.under("living/").items()},
        lives=given.about["lives"],
    )


def reference(
    workload: Training, start: Start, number: int, masks: Mapping[str, Array] | None = None
) -> Gradients:
    """Compute the gradients of an update; ``masks`` are those of its living sample."""
    state = {name: np.asarray(one, np.float64) for name, one in start.state.items()}
    rows, live, target = (
        start.batches[number - 1],
        start.lives[number - 1],
        start.targets[number - 1],
    )
    share = 1.0
    if live is not None:
        rows, target, share = rows[live : live + 1], target[live : live + 1], 1 / len(rows)
    x = np.asarray(start.pictures[list(rows)], np.float64)
    passed = Pass(workload.network, state, x, masks)
    passed.backward(share * loss(workload.loss, passed.output, np.asarray(target))[1])
    sizes = {name: float(np.max(np.abs(one))) for name, one in passed.gradients.items()}
    for name in sizes:
        path, _, kind = name.rpartition("/")
        if kind != "weight":  # sums over samples and positions, which may cancel
            sum_size = tolerances.size_of_sums(passed.slopes[path], "fp32")
            sizes[name] = max(sizes[name], sum_size)
    return Gradients(
        {name: thinned(one) for name, one in passed.gradients.items()}, sizes, passed.statistics
    )


def thinned(values: Array) -> Array:
    """Take the items that a trial gives back."""
    flat: Array = values.reshape(-1)[:: stride(values.size, THIN)]
    return flat


def _write_reference(workload: Training, writer: Writer, start: Start) -> list[dict[str, float]]:
    """Write what the reference says of each update; give the sizes."""
    sizes = []
    for number in range(1, len(start.batches) + 1):
        found = reference(workload, start, number)
        for name, one in found.gradients.items():
            folders.put(writer, f"gradient/{number}/{name}", one)
        for name, one in found.statistics.items():
            folders.put(writer, f"statistic/{number}/{name}", one)
        sizes.append(dict(found.sizes))
    return sizes


def _write_state(
    workload: Training,
    writer: Writer,
    initial: Mapping[str, Array],
    state: Mapping[str, Array],
    scales: Mapping[str, float],
    sizes: Mapping[str, float],
) -> None:
    """Write the state before an update: moments as large as gradients, or where updates show."""
    optimiser = workload.optimiser
    rate = learning_rate(optimiser, 1)
    for name, values in state.items():
        if values is initial[name]:
            writer.repeat(f"start/{name}", f"initial/{name}")
        else:
            folders.put(writer, f"start/{name}", values, "float32")
        if name not in scales:
            continue  # a running statistic
        scale = scales[name]
        if isinstance(optimiser, SGD):  # large enough to move a weight beyond its rounding
            shows = 1e-3 * float(np.sqrt(np.mean(values * values))) / rate
            scale = max(scale, min(shows, 100 * sizes[name]))
        for moment in MOMENTS[type(optimiser)]:
            drawn = draws.normal(f"proof/{moment}/{name}", values.shape)
            moments = scale**2 * (0.5 + drawn * drawn) if moment == "second" else scale * drawn
            folders.put(writer, f"start/{name}/{moment}", moments, "float32")
    if isinstance(optimiser, Adam):
        folders.put(writer, "start/step", np.array(_STEP), "float32")


def _found(workload: Training, batch: int, seed: int, initial: Mapping[str, Array]) -> Start:
    """Draw starts until one keeps its distance from every kink."""
    drops = has_dropout(workload.network)
    if start_macs(workload, batch) > MOST_START_MACS:
        raise NoStart("its float64 reference at this batch takes too long")
    if drops and any(True for site in sites(workload.network) for _ in statistics(site)):
        raise NoStart("with batch norms no sample can be left without a gradient")
    if workload.loss != "cross-entropy" and drops:
        raise NoStart("with this loss no sample can be left without a gradient")
    for attempt in range(_TRIES):
        with suppress(TooNear):
            return _drawn(workload, batch, f"proof/{seed}/{attempt}", initial)
    raise NoStart(f"each of {_TRIES} starts came too near to a kink")


def _drawn(workload: Training, batch: int, name: str, initial: Mapping[str, Array]) -> Start:
    drops = has_dropout(workload.network)
    most = min(_PICTURES_DROPPED if drops else _PICTURES, batch)
    pictures = draws.normal(f"{name}/pictures", (most, *workload.network.input))
    chance = np.random.default_rng(draws.number(name))
    batches = [_rows(chance, batch, most) for _ in range(UPDATES)]
    raised = Raised(workload.network, _ordinary(workload, name, initial), name)
    shown = pictures if drops else pictures[list(batches[0])]
    output = raised.walk(shown)
    last = sites(workload.network)[-1]
    if not isinstance(last.layer, Dense) or f"{last.path}/bias" not in raised.state:
        raise NoStart("its last layer is not a dense one with a bias")
    bias = f"{last.path}/bias"
    if not drops:
        raised.state[bias] = draws.to("fp32", raised.state[bias] - output.mean(axis=0))
        targets = [_targets(workload, f"{name}/{number}", batch) for number in range(UPDATES)]
        for rows in batches[1:]:
            again = Raised(workload.network, raised.state, name, is_fixed=True)
            again.walk(pictures[list(rows)])
        return Start(raised.state, pictures, batches, targets, {}, [None] * UPDATES)
    label = last.output[0] - 1
    lead = 2 * float(np.max(np.abs(output))) + raised.noise + _SATURATED
    raised.state[bias] = raised.state[bias].copy()
    raised.state[bias][label] = draws.to("fp32", np.array(raised.state[bias][label] + lead))
    # The first and the third update have the same living sample: their masks must differ.
    lives = [batch - 1, 0, batch - 1]
    batches = [batches[0], batches[1], batches[0]]
    targets = []
    for live in (batch - 1, 0, batch - 1):
        target = np.full(batch, label)
        target[live] = 0
        targets.append(target)
    return Start(raised.state, pictures, batches, targets, raised.living, lives)


def _rows(chance: np.random.Generator, batch: int, most: int) -> tuple[int, ...]:
    """Fill a batch with all pictures, each another number of times as far as there is room."""
    more = (most * chance.random(max(0, batch - most)) ** 2).astype(int)
    return tuple(int(row) for row in chance.permutation([*range(most), *more]))


def _initial(workload: Training, seed: int) -> dict[str, Array]:
    """Draw the starting weights that every framework shares."""
    found = {}
    for site in sites(workload.network):
        for name, held in (*parameters(site), *statistics(site)):
            values = np.full(held.shape, float(held.mean))
            if held.deviation:
                drawn = draws.normal(f"proof/{seed}/initial/{name}", held.shape)
                values = draws.to("fp32", values + held.deviation * drawn)
            found[name] = values
    return found


def _ordinary(workload: Training, name: str, initial: Mapping[str, Array]) -> dict[str, Array]:
    """Give the starting weights, with nothing at a value that hides a mistake."""
    state = dict(initial)
    for site in sites(workload.network):
        for key, held in (*parameters(site), *statistics(site)):
            if not held.deviation:
                drawn = draws.normal(f"{name}/{key}", held.shape)
                state[key] = draws.to("fp32", held.mean + 0.1 * drawn)
    return state


def _targets(workload: Training, name: str, batch: int) -> Any:
    outputs = sites(workload.network)[-1].output[0]
    return draws.targets(workload.loss, f"{name}/target", batch, outputs)
