"""Fill a lowered network with the starting weights every framework shares, seeded.

What each starts from says the vocabulary; the draws are made on the CPU, so that a seed means the
same weights on every device.
"""

from __future__ import annotations

import torch

from harness.worker.adapters.torch.lowering.canonical import held
from harness.worker.adapters.torch.lowering.network import Lowered, operator
from harness.worker.network.shapes import parameters, statistics


def fill(network: Lowered, seed: int) -> None:
    """Set every parameter and running statistic."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for path, module in network.at.items():
            site = network.sites[path]
            own = dict(held(operator(module)))
            for name, start in (*parameters(site), *statistics(site)):
                tensor = own[name.rpartition("/")[2]]
                if start.deviation:
                    tensor.normal_(start.mean, start.deviation, generator=generator)
                else:
                    tensor.fill_(start.mean)
