"""Say what a computed layer is: its output, and a way back for the gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

Own = Mapping[str, Array]
"""What a layer holds, or the gradients of it, by kind: weight, bias, gamma, beta."""

Back = Callable[[Array], tuple[Array, Own]]
"""From the gradient of the output to those of the input and of what the layer holds."""

Forward = tuple[Array, Back]
