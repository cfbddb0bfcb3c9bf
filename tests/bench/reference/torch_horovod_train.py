"""Train AlexNet or ResNet-50 in plain PyTorch with Horovod's optimiser.

    horovodrun -np 2 python torch_horovod_train.py {alexnet,resnet50} [--batch 16] [--steps 20]

It shares nothing with the harness: the torch adapter's strategy ``horovod`` is measured against it.
"""

import horovod.torch as hvd
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it

from tests.bench.reference.rank import main
from tests.bench.reference.torch_train import MODELS


def prepare(name, batch, _precision="fp32"):
    """Make a training step of this rank; calling it trains once and returns the loss tensor."""
    if not hvd.is_initialized():
        hvd.init()
    make, rate, decay = MODELS[name]
    torch.manual_seed(0)
    model = make().train()
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": weights, "weight_decay": decay}, {"params": others}]
    optimizer = torch.optim.SGD(groups, lr=rate, momentum=0.9, fused=True)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    images = torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch,))

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    main(prepare)
