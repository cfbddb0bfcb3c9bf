"""Train AlexNet or ResNet-50 in plain PyTorch with DistributedDataParallel, over gloo.

    torchrun --nproc-per-node 2 torch_ddp_train.py {alexnet,resnet50} [--batch 16] [--steps 20]

It shares nothing with the harness: the torch adapter's strategy ``ddp`` is measured against it.
"""

from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from tests.bench.reference import torch_train
from tests.bench.reference.rank import main

WITHIN = "in parallel"


def prepare(name, batch, precision="fp32"):
    """Make a training step of this rank; calling it trains once and returns the loss tensor."""
    if not distributed.is_initialized():
        distributed.init_process_group("gloo")
    make, rate, decay = torch_train.MODELS[name]

    def parallel():
        return DistributedDataParallel(make(), gradient_as_bucket_view=True)

    torch_train.MODELS[WITHIN] = (parallel, rate, decay)
    return torch_train.prepare(WITHIN, batch, precision)


if __name__ == "__main__":
    main(prepare)
