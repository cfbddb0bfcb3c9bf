"""Fill a lowered network with the starting weights every framework shares, seeded.

Convolutions start Kaiming-normal by fan-out, dense layers normal(0, 0.01), biases 0, gammas 1; the
draws are made on the CPU, so that a seed means the same weights on every device.
"""

from __future__ import annotations

import torch
from torch import nn

from harness.worker.contracts import Unsupported

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
DENSE_DEVIATION = 0.01


def fill(model: nn.Module, seed: int) -> None:
    """Set every parameter and running statistic."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, CONVOLUTIONS):
                nn.init.kaiming_normal_(
                    module.weight, mode="fan_out", nonlinearity="relu", generator=generator
                )
            elif isinstance(module, nn.Linear):
                module.weight.normal_(0, DENSE_DEVIATION, generator=generator)
            elif isinstance(module, NORMS):
                module.weight.fill_(1)
                module.running_mean.zero_()
                module.running_var.fill_(1)
            elif any(True for _ in module.parameters(recurse=False)):
                raise Unsupported(
                    "torch adapter: nothing starts a {}".format(type(module).__name__)
                )
            if getattr(module, "bias", None) is not None:
                module.bias.zero_()
