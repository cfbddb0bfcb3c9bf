"""What all layers share: how a network is written, and one run through it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.lowering.layouts import Spot


class Style:
    """How a network is written: the type it computes in, where channels stand, what is native."""

    def __init__(self, dtype: Any, channels_last: bool, has_groups: Callable[[], bool]) -> None:
        self.dtype = dtype
        self.channels_last = channels_last
        self.has_groups = has_groups
        """Whether a convolution with fewer input channels than its input has, and its gradients,
        exist for this type on this device (oneDNN, cuDNN); else it is split and concatenated."""

    @property
    def channels(self) -> int:
        """Name the axis of the channels."""
        return -1 if self.channels_last else 1

    def format(self, rank: int) -> str:
        """Name the layout as TensorFlow does; ``rank`` counts worked spatial dimensions."""
        if self.channels_last:
            return "NHWC" if rank == 2 else "NDHWC"
        return "NCHW" if rank == 2 else "NCDHW"

    def spread(self, spatial: Sequence[Any], outside: Any) -> List[Any]:
        """Put one value for batch and channels around those of the spatial dimensions."""
        around = [*spatial, outside] if self.channels_last else [outside, *spatial]
        return [outside, *around]


class Pass:
    """One run through the network in training mode: what layers read, and what they leave."""

    def __init__(self, style: Style, values: Dict[str, Any], is_dropping: bool) -> None:
        self.style = style
        self.values = values
        """PARAMETER -> tensor or variable; running statistics too."""
        self.is_dropping = is_dropping
        self.moved: Dict[str, Any] = {}
        """New values of the running statistics."""
        self.activations: Dict[str, Any] = {}

    def weight(self, spot: Spot, kind: str) -> Any:
        """Read a parameter in the type that convolutions and products compute in."""
        return tf.cast(self.values["{}/{}".format(spot.path, kind)], self.style.dtype)
