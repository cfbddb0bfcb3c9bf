"""A block of which a step keeps what enters it: the rest is computed again for its gradients.

What a batch norm follows moved on the first time, and stays where it is the second. Dropouts drop
what they dropped, since torch sets its generators back.
"""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager, Iterator, Sequence, Tuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
"""What follows its batches."""


class Block(nn.Sequential):
    """Layers in a row that are computed twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run a batch through them, and keep the batch alone."""
        output: torch.Tensor = checkpoint(
            super().forward,
            x,
            use_reentrant=False,
            preserve_rng_state=True,
            context_fn=self._contexts,
        )
        return output

    def _contexts(self) -> Tuple[ContextManager[Any], ContextManager[Any]]:
        """Give what each of the two passes runs in."""
        norms = [module for module in self.modules() if isinstance(module, NORMS)]
        return contextlib.nullcontext(), _standing(norms)


@contextlib.contextmanager
def _standing(norms: Sequence[Any]) -> Iterator[None]:
    """Let running statistics stand."""
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
