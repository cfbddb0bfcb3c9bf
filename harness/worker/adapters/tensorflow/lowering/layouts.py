"""Move tensors between the canonical layouts and those that TensorFlow works in.

Canonical is channels first, weights (out, in, spatial …), as ``gate/subject.py`` states.
TensorFlow's convolution weights are (spatial …, in, out), its dense weights (in, out). One spatial
dimension is worked as two, the first of size 1, because TensorFlow's 1-D convolutions are exactly
that.

A channels-last ``Flatten`` yields positions before channels. Rather than transpose every
activation, what follows keeps that order up to the next ``Dense``, and the parameters on the way
(batch norms over the flat sample, the rows of the ``Dense``) are stored permuted. Only here is that
known: in and out of an examination the canonical order returns.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy

from harness.worker.contracts import Unsupported
from harness.worker.network.layers import BatchNorm, Conv, Dense, Flatten, Layer, Network
from harness.worker.network.rule import SequenceShape, Shape
from harness.worker.network.shapes import Site, branches, parameter_shapes, sites, statistic_shapes


class Spot(NamedTuple):
    """A layer where it stands, and the shape its flat features were flattened from, if any."""

    path: str
    layer: Layer
    input: Shape
    output: Shape
    flat_in: Optional[Shape]
    flat_out: Optional[Shape]

    @property
    def site(self) -> Site:
        """Give the layer as what counts it knows it."""
        return Site(self.path, self.layer, self.input, self.output)


class Arrangement:
    """The layout of one network's activations and parameters."""

    def __init__(self, network: Network, channels_last: bool, lifts: bool = True) -> None:
        self.channels_last = channels_last
        self._lifts = lifts
        """Whether one spatial dimension is worked as two."""
        self.input = network.input
        self.spots: Dict[str, Spot] = {}
        by_path = {site.path: site for site in sites(network)}
        self.flat_end = self._walk(network.layers, "", None, by_path)
        self.parameters: Dict[str, Tuple[int, ...]] = {}  # PARAMETER -> canonical shape
        self.statistics: Dict[str, Tuple[int, ...]] = {}
        for spot in self.spots.values():
            self._name(spot)

    def sample(self) -> List[int]:
        """Give the shape of one input sample in this layout."""
        return list(self.activation_in(numpy.broadcast_to(0.0, (1, *self.input)), None).shape[1:])

    def activation_in(self, array: Any, flat: Optional[Shape], canonical: Shape = ()) -> Any:
        """Bring a canonical activation into this layout; one of a sequence's shape stays."""
        if isinstance(canonical, SequenceShape):
            return array
        if array.ndim == 2:
            return self._flat_in(array, 1, flat)
        if array.ndim == 3 and self._lifts:
            array = array[:, :, None]
        return numpy.ascontiguousarray(
            numpy.moveaxis(array, 1, -1) if self.channels_last else array
        )

    def activation_out(self, array: Any, canonical: Shape, flat: Optional[Shape]) -> Any:
        """Bring an activation of a layer whose canonical sample shape is given back out."""
        if isinstance(canonical, SequenceShape):
            return array
        if array.ndim == 2:
            return self._flat_out(array, 1, flat)
        array = numpy.moveaxis(array, -1, 1) if self.channels_last else array
        return numpy.ascontiguousarray(array).reshape(array.shape[0], *canonical)

    def sample_out(self, array: Any) -> Any:
        """Bring a batch of the network's input back out, in whatever size it came."""
        if self.channels_last and array.ndim > 2:
            array = numpy.moveaxis(array, -1, 1)
        if array.ndim > len(self.input) + 1:  # one spatial dimension that is worked as two
            array = array[:, :, 0]
        return numpy.ascontiguousarray(array)

    def parameter_in(self, name: str, array: Any) -> Any:
        """Bring a canonical parameter or statistic into this layout."""
        spot = self.spots[name.rpartition("/")[0]]
        if isinstance(spot.layer, Conv) and array.ndim > 1:
            array = array[:, :, None] if array.ndim == 3 and self._lifts else array
            return numpy.moveaxis(array, (0, 1), (-1, -2))
        if isinstance(spot.layer, Dense) and array.ndim > 1:
            return self._flat_in(array, 1, spot.flat_in).T
        if isinstance(spot.layer, BatchNorm):
            return self._flat_in(array, 0, spot.flat_in)
        return array

    def parameter_out(self, name: str, array: Any) -> Any:
        """Bring a parameter, its gradient or a statistic back out."""
        spot = self.spots[name.rpartition("/")[0]]
        if isinstance(spot.layer, Conv) and array.ndim > 1:
            array = numpy.moveaxis(array, (-1, -2), (0, 1))
            return array[:, :, 0] if array.ndim == 4 and len(spot.input) == 2 else array
        if isinstance(spot.layer, Dense) and array.ndim > 1:
            return self._flat_out(array.T, 1, spot.flat_in)
        if isinstance(spot.layer, BatchNorm):
            return self._flat_out(array, 0, spot.flat_in)
        return array

    def _flat_in(self, array: Any, axis: int, flat: Optional[Shape]) -> Any:
        """Reorder one axis from channels first to channels last."""
        if flat is None:
            return array
        apart = array.reshape(*array.shape[:axis], *flat)
        return numpy.moveaxis(apart, axis, -1).reshape(array.shape)

    def _flat_out(self, array: Any, axis: int, flat: Optional[Shape]) -> Any:
        """Reorder one axis from channels last to channels first."""
        if flat is None:
            return array
        apart = array.reshape(*array.shape[:axis], *flat[1:], flat[0])
        return numpy.moveaxis(apart, -1, axis).reshape(array.shape)

    def _walk(
        self, layers: Sequence[Layer], prefix: str, flat: Optional[Shape], by_path: Dict[str, Site]
    ) -> Optional[Shape]:
        for layer in layers:
            path = prefix + layer.name
            site = by_path[path]
            before = flat
            if branches(layer):
                flat, other = (
                    self._walk(branch, path + "/", before, by_path) for branch in branches(layer)
                )
                if flat != other:
                    raise Unsupported(
                        "TensorFlow: '{}' joins flat features of two orders".format(path)
                    )
            elif isinstance(layer, Flatten) and self.channels_last and len(site.input) > 1:
                flat = site.input
            elif isinstance(layer, Dense):
                flat = None
            self.spots[path] = Spot(path, layer, site.input, site.output, before, flat)
        return flat

    def _name(self, spot: Spot) -> None:
        self.parameters.update(parameter_shapes(spot.site))
        self.statistics.update(statistic_shapes(spot.site))
