"""Write what every trial of a cell starts from, and from what it is examined.

``harness/worker/gate/timed_updates.py`` reads it. A batch is filled with few different pictures in
unequal numbers: the reference computes each once, and weights it. For a network without dropout its
gradients are computed here, once; with dropout they depend on the masks that a trial draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from harness.exact.layer import Array
from harness.gate.proof.expected_updates import THIN, Gradients, following, reference
from harness.gate.proof.given_back import THIN_FURTHER
from harness.gate.proof.start import NoStart, Raised, Start, TooNear, filled, out_of_reach
from harness.gate.proof.starting_moments import moments
from harness.gate.tensors import draws, folders
from harness.plan.duration import UPDATES, is_too_long, pictures_of
from harness.worker.gate.tensors import Folder, Writer
from harness.worker.network.layers import Dense
from harness.worker.network.shapes import Site, has_dropout, parameters, sites, statistics
from harness.worker.network.workload import MASKED, Training, clip

_TRIES = 30
_REDRAWN = 100
"""How often samples with two nearly equal values in a window are drawn again."""
_SATURATED = 200.0
"""exp(-200) is 0 in fp32: a sample whose own label is so far ahead has no gradient at all."""
_WIDER = (1, 2, 4, 8)
"""How much wider weights may be than training begins with; powers of two are exact everywhere."""
_CLIPPED = 1.25
"""Of what gradients are clipped to, how long they are at least where that has to show."""
_FAR = 1e6
"""A target so many outputs away: beside its sample's gradients those of the others vanish."""


def write_given(
    workload: Training,
    batch: int,
    seed: int,
    place: Path,
    *,
    parts: int = 1,
    shares: int = 1,
    held: str = "fp32",
) -> None:
    """Write starting weights and a first batch; and, if there is one, a start without kinks.

    ``why`` in ``about`` says why there is none. Batch norms see ``parts`` of the batch; of its
    ``shares`` each takes a mean loss of its own. Weights, moments and pictures are such as the
    precision that they are ``held`` in has, so that what is loaded is what the reference starts
    from.
    """
    writer = Writer(str(place))
    initial = _initial(workload, seed, held)
    for name, values in initial.items():
        folders.put(writer, f"initial/{name}", values, "float32")
    name = f"proof/{seed}/first"
    pictures = _rounded(draws.inputs(workload.network, name, batch), held)
    folders.put(writer, "first/input", pictures, "float32")
    folders.put(writer, "first/target", _targets(workload, name, batch), "float32")
    try:
        start, first = _clipping(
            workload,
            initial,
            lambda begun: _found(workload, batch, seed, begun, parts, shares, held),
        )
    except NoStart as why:
        writer.close({"why": str(why)})
        return
    folders.put(writer, "pictures", start.pictures, "float32")
    for number, target in enumerate(start.targets, start=1):
        folders.put(writer, f"batch/{number}/target", target, "float32")
    for path, living in start.living.items():
        folders.put(writer, f"living/{path}", living.astype(np.int64))
    drops = has_dropout(workload.network)
    found = [first, *(reference(workload, start, at + 1) for at in range(1, UPDATES) if not drops)]
    kept = moments(workload, batch, start.state, first, held)
    for name, values in {**start.state, **kept}.items():
        folders.put(writer, f"start/{name}", values, "float32")
    found = [] if drops else found
    if found and (next_start := following(workload, start, kept, found[-1])) is not None:
        found.append(reference(workload, next_start, UPDATES))
    for number, one in enumerate(found, start=1):
        _write_reference(writer, number, one)
    about = {"batches": [list(one) for one in start.batches], "lives": list(start.lives)}
    about |= {"thin": THIN, "thin_further": THIN_FURTHER}
    writer.close({**about, "sizes": [dict(one.sizes) for one in found], "parts": start.parts})


def no_start(workload: Training, batch: int, parts: int = 1) -> str:
    """Say why a network has no start without kinks, as far as its layers tell; empty: it has."""
    last = sites(workload.network)[-1]
    if has_dropout(workload.network) and not _is_shifted(last):
        return "dropouts drop, and its last layer is not a dense one with a bias"
    if path := out_of_reach(workload.network):
        return f"{path} stands behind a dropout, and is no dense layer"
    if is_too_long(workload, batch, parts):
        return "its float64 reference at this batch takes too long"
    return ""


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
        parts=given.about["parts"],
    )


def _write_reference(writer: Writer, number: int, found: Gradients) -> None:
    """Write what the reference says of an update."""
    for name, one in found.gradients.items():
        folders.put(writer, f"gradient/{number}/{name}", one)
    for part, running in enumerate(found.statistics):
        for name, one in running.items():
            folders.put(writer, f"statistic/{number}/{part}/{name}", one)
    folders.put(writer, f"slopes/{number}", found.slopes)


def _clipping(
    workload: Training, initial: Mapping[str, Array], found: Callable[[Mapping[str, Array]], Start]
) -> tuple[Start, Gradients]:
    """Find a start from which gradients are clipped, if they ever are, and those of its update.

    From weights as small as training begins with they may be shorter than what they are clipped to.
    None is what training began with: a step that kept a copy of that would be right.
    """
    most = clip(workload.optimiser)
    for wider in _WIDER:
        weights = {name: -wider * one for name, one in initial.items() if name.endswith("/weight")}
        start = found({**initial, **weights})
        first = reference(workload, start, 1)
        if most is None or first.norm > _CLIPPED * most:
            break
    return start, first


def _found(
    workload: Training,
    batch: int,
    seed: int,
    initial: Mapping[str, Array],
    parts: int,
    shares: int,
    held: str,
) -> Start:
    """Draw starts until one keeps its distance from every kink."""
    if why := no_start(workload, batch, parts):
        raise NoStart(why)
    for attempt in range(_TRIES):
        with suppress(TooNear):
            return _drawn(workload, batch, f"proof/{seed}/{attempt}", initial, parts, shares, held)
    raise NoStart(f"each of {_TRIES} starts came too near to a kink")


def _drawn(
    workload: Training,
    batch: int,
    name: str,
    initial: Mapping[str, Array],
    parts: int,
    shares: int,
    held: str,
) -> Start:
    last = sites(workload.network)[-1]
    bias = f"{last.path}/bias"
    chance = np.random.default_rng(draws.number(name))
    rows = filled(chance, batch // parts, pictures_of(workload, batch, parts), parts)
    raised, pictures, output = _walked(workload, name, initial, rows, held)
    batches = [
        tuple(int(row) for part in rows for row in chance.permutation(part)) for _ in range(UPDATES)
    ]
    targets = [_targets(workload, f"{name}/{number}", batch) for number in range(UPDATES)]
    if shares > 1:
        targets = [_masked_alike(target) for target in targets]
    if not has_dropout(workload.network):
        if _is_shifted(last):
            raised.state[bias] = draws.to(held, raised.state[bias] - output.mean(axis=0))
        return Start(raised.state, pictures, batches, targets, {}, [None] * UPDATES, parts)
    # The first and the third update have the same living sample: their masks must differ.
    lives = (batch - 1, 0, batch - 1)
    batches[2] = batches[0]
    reach = float(np.max(np.abs(output))) + raised.noise
    for target, live in zip(targets, lives, strict=True):
        if workload.loss == "cross-entropy":
            label = last.output[0] - 1
            target[:], target[live] = label, 0
        else:
            target[live] = draws.to("fp32", _FAR * max(1.0, reach) * target[live])
    if workload.loss == "cross-entropy":
        raised.state[bias] = raised.state[bias].copy()
        raised.state[bias][label] = draws.to(
            held, np.array(raised.state[bias][label] + 2 * reach + _SATURATED)
        )
    return Start(raised.state, pictures, batches, targets, raised.living, lives, parts)


def _walked(
    workload: Training,
    name: str,
    initial: Mapping[str, Array],
    rows: Sequence[Sequence[int]],
    held: str,
) -> tuple[Raised, Array, Array]:
    """Raise a start while pictures walk through it; draw those again that come too near to a tie.

    A large picture has so many windows that few starts would pass with all of theirs at once.
    """
    times = np.bincount(np.concatenate(rows)).astype(np.float64)
    drawn = draws.inputs(workload.network, f"{name}/pictures", len(times))
    pictures = np.asarray(_rounded(drawn, held), np.float64)
    ordinary = _ordinary(workload, name, initial, held)
    for attempt in range(_REDRAWN):
        raised = Raised(workload.network, dict(ordinary), name, times, len(rows), held)
        try:
            return raised, pictures, raised.walk(pictures)
        except TooNear as near:
            if not near.samples:
                raise
            for one in near.samples:
                again = f"{name}/pictures/{attempt}/{one}"
                drawn = draws.inputs(workload.network, again, 1)
                pictures[one] = _rounded(drawn, held)[0]
    raise TooNear("its windows")


def _is_shifted(last: Site) -> bool:
    """Tell whether a bias moves each of a network's outputs alone."""
    return isinstance(last.layer, Dense) and last.layer.bias


def _initial(workload: Training, seed: int, held: str) -> dict[str, Array]:
    """Draw the starting weights that every framework shares."""
    found = {}
    for site in sites(workload.network):
        for name, start in (*parameters(site), *statistics(site)):
            values = np.full(start.shape, float(start.mean))
            if start.deviation:
                drawn = draws.normal(f"proof/{seed}/initial/{name}", start.shape)
                values = draws.to(held, values + start.deviation * drawn)
            found[name] = values
    return found


def _ordinary(
    workload: Training, name: str, initial: Mapping[str, Array], held: str
) -> dict[str, Array]:
    """Give the starting weights, with nothing at a value that hides a mistake."""
    state = dict(initial)
    for site in sites(workload.network):
        followed = statistics(site)
        for key, start in (*parameters(site), *followed):
            if not start.deviation:
                drawn = draws.normal(f"{name}/{key}", start.shape)
                kept = "fp32" if any(key == one for one, _ in followed) else held
                state[key] = draws.to(kept, start.mean + 0.1 * drawn)
    return state


def _rounded(values: Any, held: str) -> Any:
    """Round numbers; tokens are as they are."""
    return values if values.dtype.kind == "i" else draws.to(held, values)


def _masked_alike(targets: Any) -> Any:
    """Mask the first sample's positions in all: only then is a mean of ranks' means that of all.

    What is masked elsewhere in others is asked for the class that the first is asked for there.
    """
    if targets.ndim > 1:
        targets = np.where(targets == MASKED, targets[0], targets)
        targets[:, targets[0] == MASKED] = MASKED
    return targets


def _targets(workload: Training, name: str, batch: int) -> Any:
    output = sites(workload.network)[-1].output
    return draws.targets(workload.loss, f"{name}/target", batch, output)
