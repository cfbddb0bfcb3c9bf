"""Name the engine of Intel's flavour: whose layers a net computes with.

A net names it in its field ``engine``, and a layer that computes with another one in its own
(``src/caffe/net.cpp``, ``layer_factory.cpp`` of 1.1.6). MKL-DNN's ``Eltwise`` gave the wrong
gradients in residual networks in one build: with the body before the shortcut, the first update of
tinycnn's first convolution was 25 % off, and right (2e-5) with ``Eltwise`` under the engine CAFFE.
In another build tinycnn was right with either; ResNet-50 was not tried there.
"""

from __future__ import annotations

from typing import Optional

from harness.worker.adapters.caffe.prototxt import Message
from harness.worker.contracts import Unsupported

OWN = "CAFFE"
"""The engine that every build has; BVLC's has no other on a CPU."""
_SUMS_RIGHT = (OWN, "MKL2017")


class Engines:
    """Which engine a net and its layers name; a build's own where none is asked for."""

    def __init__(self, flavour: str, asked: Optional[str]) -> None:
        if asked and flavour != "intel":
            raise Unsupported("only Intel's flavour has engines; use caffe@intel")
        self._flavour = flavour
        self._asked = asked

    def of_net(self) -> Message:
        """Give the fields of a net that say it."""
        return [("engine", self._asked)] if self._asked else []

    def of_sum(self) -> Message:
        """Give the fields of an ``Eltwise`` that say it; the build's own engine may be MKL-DNN."""
        if self._flavour != "intel" or self._asked in _SUMS_RIGHT:
            return []
        return [("engine", OWN)]

    def used(self, told: Optional[str], device: str) -> Optional[str]:
        """Say which was used, by what the program ``told``; None where nobody knows."""
        if self._flavour == "intel":
            return told or self._asked
        return OWN if device == "cpu" else None
