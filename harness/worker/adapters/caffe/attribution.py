"""Divide a step by what ``caffe time`` prints of each layer, and the solver's part by a training.

It prints the means of a few iterations, forward and backward, so that each run of it is one traced
step here, its layers one behind the other. It updates nothing: by how much a training's step is
longer is the update, with all else that the solver does. Where a training is quicker, it is 0.
"""

from __future__ import annotations

import re
from statistics import median
from typing import Any, Dict, Iterator, List, Mapping, Tuple

from harness.worker.adapters.caffe import prototxt
from harness.worker.attribution.account import Attribution, Operation, Ran, Span, attribution
from harness.worker.attribution.marks import (
    BACKWARD,
    FORWARD,
    OF_INPUT,
    OF_LOSS,
    OF_UPDATE,
    UNMARKED,
    Place,
)
from harness.worker.attribution.steps import FEWEST, MOST, TRACED_S
from harness.worker.job import Span as Stretch

_SPLIT = re.compile(r"_(.+)_\d+_split$")
"""What Caffe puts behind a blob that several layers read: BLOB_LAYER_NUMBER_split."""
_OWN = {"input": OF_INPUT, "loss": OF_LOSS}
"""Layers of the training net that are none of the network's."""
_SOLVER = Operation("what the solver does beside both passes", "float32", "")


def attribute(activity: Any, network_paths: List[str]) -> Attribution:
    """Time the net a few times, and train for about a second."""
    timings = [activity.time() for _ in range(FEWEST)]
    untraced_s = _training_steps(activity)
    passes_s = median(sum(one.passes.values()) for one in timings)
    solver_s = max(0.0, median(untraced_s) - passes_s)
    kinds = {
        prototxt.one(layer, "name"): prototxt.one(layer, "type")
        for layer in prototxt.every(activity.net, "layer")
    }
    steps: List[Span] = []
    ran: List[Ran] = []
    at = 0
    for timing in timings:
        made = list(_one_step(timing, network_paths, kinds, solver_s, at))
        end = at + round((sum(timing.passes.values()) + solver_s) * 1e9)
        end = max(end, max((one.end for one in made), default=end))
        steps.append((at, end))
        ran += made
        at = end
    return attribution("caffe time", steps, ran, untraced_s)


def _training_steps(activity: Any) -> List[float]:
    """Train until about a second of steps, and enough stretches of them, were seen."""
    found: List[float] = []
    marks = activity.marks(Stretch(seconds=TRACED_S))
    before = next(marks)
    spent = 0.0
    for mark in marks:
        each = (mark.wall_ns - before.wall_ns) / 1e9 / (mark.steps - before.steps)
        spent += each * (mark.steps - before.steps)
        before = mark
        found.append(each)
        if len(found) > FEWEST and (spent > TRACED_S or len(found) > MOST):
            break
    marks.close()
    return found[1:]  # the first holds what is made once


def _one_step(
    timing: Any, paths: List[str], kinds: Mapping[str, str], solver_s: float, at: int
) -> Iterator[Ran]:
    """Lay the layers of both passes one behind the other, then the solver's part."""
    ordered: List[Tuple[str, str, Dict[str, float]]] = [
        (name, FORWARD, layer) for name, layer in timing.layers.items()
    ]
    ordered += [(name, BACKWARD, layer) for name, _, layer in reversed(ordered)]
    for name, phase, layer in ordered:
        end = at + round(layer.get(phase, 0.0) * 1e9)
        place = _place(name, phase, paths)
        shape = "x".join(map(str, timing.shapes.get(name, ())))
        yield Ran(at, end, 0, place, Operation(kinds.get(name, "Split"), "float32", shape))
        at = end
    yield Ran(at, at + round(solver_s * 1e9), 0, Place("", OF_UPDATE), _SOLVER)


def _place(name: str, phase: str, paths: List[str]) -> Place:
    """Give the network's layer that a layer of Caffe's is a part of, by its name."""
    if name in _OWN:
        return Place("", _OWN[name])
    split = _SPLIT.search(name)
    if split is not None:
        behind = [one for one in paths if "_{}".format(split.group(1)).endswith("_" + one)]
    else:
        behind = [one for one in paths if (name + "/").startswith(one + "/")]
    return Place(max(behind, key=len), phase) if behind else UNMARKED
