"""Count in the text of a step that XLA has optimised what its convolutions and products multiply.

They are counted as a network's are: at every place of a window, beyond the edge too, but not where
XLA itself has put zeros between. A convolution that is strided has gradients that are dilated:

    forward              (3x3 stride=2x2)           places of the window × its size
    of the weights       (8x8 rhs_dilate=2x2)       the same, with result and window exchanged
    of what enters       (3x3 lhs_dilate=2x2)       the places where no zero was put between

What a loop repeats counts as often as XLA says that the loop runs.
"""

from __future__ import annotations

import re
from typing import Dict, List, Set, Tuple

from harness.worker.facts.hlo import HEAVY, MULTIPLYING, TARGET
from harness.worker.facts.multiplications import Tally, Uncounted
from harness.worker.network.rule import product

SHAPED = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = [a-z]+[0-9]*\[([0-9,]*)\]", re.MULTILINE)
# … = f32[4,13]{1,0} dot(f32[4,9]{1,0} %left, %right), lhs_contracting_dims={1}, …
MULTIPLIED = re.compile(
    r"= [a-z]+[0-9]*\[([0-9,]*)\]\S* (?:convolution|dot)"
    r"\((?:[a-z]+[0-9]*\[\S* )?%?([\w.-]+), (?:[a-z]+[0-9]*\[\S* )?%?([\w.-]+)\)(.*)$",
    re.MULTILINE,
)
CONTRACTED = re.compile(r"lhs_contracting_dims=\{([0-9,]*)\}")
LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
# %body.1 (arg.2: (s32[], f32[4])) -> (s32[], f32[4]) {
COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) (?:\(.*\) -> .*)?\{$", re.MULTILINE)
CALLED = re.compile(r"(?:calls|to_apply|body|condition|branch_computations)=\{?%?([\w.-]+)")
LOOP = re.compile(r" while\(.*body=%?([\w.-]+)(.*)$", re.MULTILINE)
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
WINDOW = re.compile(r"window=\{([^}]*)\}")

Sizes = Tuple[int, ...]


def tally(text: str) -> Tally:
    """Count the multiplications; not where the text tells no shapes, as of a library's calls."""
    calls = (TARGET.search(match[0]) for match in HEAVY.finditer(text))
    for target in calls:
        if target is not None and MULTIPLYING.search(target[1]):
            raise Uncounted("XLA leaves products to a library: {}".format(target[1]))
    shapes = {match[1]: _sizes(match[2]) for match in SHAPED.finditer(text)}
    bodies = _computations(text)
    found = Tally()
    for name, times in _repeated(bodies).items():
        _add_computation(found, bodies[name], times, shapes)
    return found


def _computations(text: str) -> Dict[str, str]:
    """Part the text into its computations, by name; what stands before them is nobody's."""
    starts = list(COMPUTATION.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    if not starts:
        return {"": text}
    return {one[1]: text[one.end() : end] for one, end in zip(starts, ends)}


def _repeated(bodies: Dict[str, str]) -> Dict[str, int]:
    """Say how often each computation runs for every time that what holds the loops does."""
    times = dict.fromkeys(bodies, 1)
    for body in bodies.values():
        for loop in LOOP.finditer(body):
            inside = _reached(loop[1], bodies)
            trips = TRIPS.search(loop[2])
            if trips is not None:
                times.update({name: times[name] * int(trips[1]) for name in inside})
            elif any(MULTIPLIED.search(bodies[name]) for name in inside):
                raise Uncounted("XLA does not tell how often a loop of products runs")
    return times


def _reached(name: str, bodies: Dict[str, str]) -> Set[str]:
    """Name a computation and all that it calls."""
    found: Set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in bodies and one not in found:
            found.add(one)
            waiting += CALLED.findall(bodies[one])
    return found


def _add_computation(found: Tally, text: str, times: int, shapes: Dict[str, Sizes]) -> None:
    """Count what a computation multiplies by itself that runs so many times."""
    for match in MULTIPLIED.finditer(text):
        made, left, right = _sizes(match[1]), shapes.get(match[2]), shapes.get(match[3])
        summed, labels = CONTRACTED.search(match[4]), LABELS.search(match[4])
        if left is None or right is None:
            raise Uncounted("XLA's text tells no shapes of what is multiplied")
        if summed is not None:
            macs = product(made) * product([left[axis] for axis in _sizes(summed[1])])
        elif labels is not None:
            macs = _convolved((left, right, made), labels, _window(match[4]))
        else:
            raise Uncounted("XLA's text does not tell what a product adds up")
        found.add((made, left, right, match[4].partition(", metadata=")[0]), macs, times)


def _convolved(
    shapes: Tuple[Sizes, Sizes, Sizes], labels: re.Match[str], window: Dict[str, List[str]]
) -> int:
    """Count one convolution: features by features, and in each dimension the places that count.

    Those are places of the result, or of what enters where it is less: a window that goes beyond
    the edge multiplies nothing there that it would not in the other direction.
    """
    left, right, made = (dict(zip(labels[n + 1], shape)) for n, shape in enumerate(shapes))
    whole = made["b"] * made["f"] * right["i"]
    for axis in sorted(label for label in right if label.isdigit()):
        at = int(axis)
        spread = int(window["lhs_dilate"][at]) if "lhs_dilate" in window else 1
        pad = window["pad"][at] if "pad" in window else "0_0"
        places = made[axis] * right[axis]
        if spread > 1 and pad == "0_0":  # groups: each meets its own part of the window alone
            places //= spread
        whole *= min(places, left[axis] * right[axis])
    return int(whole)


def _window(form: str) -> Dict[str, List[str]]:
    """Read ``window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2}``, dimension by dimension."""
    found = WINDOW.search(form)
    pairs = [one.partition("=") for one in found[1].split()] if found else []
    return {name: sizes.split("x") for name, _, sizes in pairs}


def _sizes(text: str) -> Sizes:
    return tuple(int(one) for one in text.split(",") if one)
