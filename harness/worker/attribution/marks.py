"""The marks that a probe puts around layers, loss, update and steps, and how they are read back.

A layer is marked by its number in ``shapes.sites``: a name that every framework takes, and that no
layer's own name can be taken for. Timed steps carry none of them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple

from harness.worker.network.layers import Network
from harness.worker.network.shapes import sites

STEP = "bakeoff_step"
LOSS = "bakeoff_loss"
UPDATE = "bakeoff_update"
WAIT = "bakeoff_exchange"
"""Around waiting for the other ranks, where no operation of the framework's own shows it."""
SITE = "bakeoff_site_"

FORWARD, BACKWARD = "forward", "backward"
OF_LOSS, OF_UPDATE, OF_INPUT = "loss", "update", "input"
LAYOUT_COPY = "layout copy"
PLAIN_COPY = "plain copy"
EXCHANGE = "exchange"
"""What ranks exchange while nothing else runs: what hides behind computing takes no time."""
OTHER = "other"
"""What carries no mark."""
GAPS = "host gaps"
"""When no operation ran."""

_MARKS = re.compile("{}([0-9]+)|({})|({})".format(SITE, LOSS, UPDATE))
_PARAMETER = re.compile(r"\['([^']+)/\w+'\]")
# JAX: jit(step)/transpose(jvp(…))/…; TensorFlow: gradient_tape/…, in graphs of 1.15 gradients/…
_BACKWARD = re.compile(r"transpose\(|(^|/)gradient(_tape|s)/")
_AGAIN = "rematted_computation"
"""What JAX calls a forward pass that it makes again on the way back."""


class Place(NamedTuple):
    """A layer's path, empty for none, and the pass in which it is computed."""

    site: str
    phase: str


UNMARKED = Place("", OTHER)


class Marks:
    """The marks of one network's layers."""

    def __init__(self, network: Network) -> None:
        self.paths: List[str] = [site.path for site in sites(network)]
        self._numbers: Dict[str, int] = {path: at for at, path in enumerate(self.paths)}

    def of(self, path: str) -> str:
        """Give the mark of a layer, or of the loss or the update, which are their own."""
        if path in (LOSS, UPDATE):
            return path
        return "{}{}".format(SITE, self._numbers[path])

    def of_gradient(self, argument: str, update: str) -> Place:
        """Give the place of a gradient by what it updates.

        JAX calls the argument ``state.moments[0]['conv1/weight']``; TensorFlow marks updates.
        """
        found = _PARAMETER.search(argument)
        if found is not None and found.group(1) in self._numbers:
            return Place(found.group(1), BACKWARD)
        numbers = [int(one.group(1)) for one in _MARKS.finditer(update) if one.group(1)]
        known = [self.paths[one] for one in numbers if one < len(self.paths)]
        return Place(known[-1], BACKWARD) if known else UNMARKED

    def place(self, name: str) -> Place:
        """Read a name that carries marks: the innermost one says where it belongs."""
        found = list(_MARKS.finditer(name))
        if any(one.group(3) for one in found):
            return Place("", OF_UPDATE)
        if not found:
            return UNMARKED
        if found[-1].group(2):
            return Place("", OF_LOSS)
        number = int(found[-1].group(1))
        if number >= len(self.paths):
            return UNMARKED
        is_backward = _BACKWARD.search(name) and _AGAIN not in name
        return Place(self.paths[number], BACKWARD if is_backward else FORWARD)


Mark = Callable[[str], ContextManager[Any]]
"""Opens the mark of a layer's path, of LOSS or of UPDATE."""


@contextmanager
def unmarked(_mark: str) -> Iterator[None]:
    """Mark nothing, as in everything that is timed."""
    yield


def plain(name: str) -> str:
    """Give what stands behind the marks in an operation's name."""
    return name.rpartition("/")[2]
