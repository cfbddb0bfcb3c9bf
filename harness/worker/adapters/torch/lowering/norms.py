"""What of a network of bfloat16 weights is still added up in float32.

What one batch adds to a running statistic is lost in bfloat16: a tenth of what it is off is below
half a unit in its last place as soon as it is 4 % off. torch normalises narrow batches by float32
statistics if scale and shift are float32 too, so these are widened on the way, a number a channel.

On a CPU torch adds up in bfloat16 what comes back for a token's row, which ends at 512 of a
thousand ones, and for a norm of positions' scale and shift: there these are widened, too. A GPU's
kernels add up in float32 by themselves. Layers get these forward passes where weights are narrow;
everywhere else they are torch's own, with nothing around them.
"""

from __future__ import annotations

from typing import Any, Mapping

import torch
from torch import nn
from torch.nn import functional


class _WideStatistics:
    """A batch norm's forward pass, which any of torch's three classes may follow."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        """Normalise a batch."""
        kept = self.running_mean.dtype
        return functional.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight.to(kept),
            self.bias.to(kept),
            self.training,
            self.momentum,
            self.eps,
        )


class BatchNorm1d(_WideStatistics, nn.BatchNorm1d):
    """Over positions in a row, or none."""


class BatchNorm2d(_WideStatistics, nn.BatchNorm2d):
    """Over an image's positions."""


class BatchNorm3d(_WideStatistics, nn.BatchNorm3d):
    """Over a volume's positions."""


class Embedding(nn.Embedding):
    """A table of tokens."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Take each token's row."""
        return functional.embedding(tokens, self.weight.float()).to(self.weight.dtype)


class LayerNorm(nn.LayerNorm):
    """Over the features of each position."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise a batch."""
        bias = None if self.bias is None else self.bias.float()
        shape = self.normalized_shape
        wide = functional.layer_norm(x.float(), shape, self.weight.float(), bias, self.eps)
        return wide.to(x.dtype)


class RMSNorm(nn.RMSNorm):
    """Over the features of each position, whose mean stays."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise a batch."""
        shape = list(self.normalized_shape)
        return functional.rms_norm(x.float(), shape, self.weight.float(), self.eps).to(x.dtype)


def is_narrow_on_cpu(weight: torch.Tensor) -> bool:
    """Say whether a weight is one that torch's kernels for CPUs are rough with."""
    return weight.dtype == torch.bfloat16 and not weight.is_cuda


_WIDE: Mapping[type, type] = {
    nn.BatchNorm1d: BatchNorm1d,
    nn.BatchNorm2d: BatchNorm2d,
    nn.BatchNorm3d: BatchNorm3d,
}
_WIDE_ON_CPU: Mapping[type, type] = {
    nn.Embedding: Embedding,
    nn.LayerNorm: LayerNorm,
    nn.RMSNorm: RMSNorm,
}


def narrow(network: nn.Module) -> None:
    """Hold what a network learns in bfloat16, and running statistics as they are."""
    statistics = {name: buffer.dtype for name, buffer in network.named_buffers()}
    network.to(torch.bfloat16)
    for name, buffer in network.named_buffers():
        buffer.data = buffer.data.to(statistics[name])
    on_cpu = any(map(is_narrow_on_cpu, network.parameters()))
    wide = {**_WIDE, **(_WIDE_ON_CPU if on_cpu else {})}
    for module in network.modules():
        module.__class__ = wide.get(type(module), type(module))
