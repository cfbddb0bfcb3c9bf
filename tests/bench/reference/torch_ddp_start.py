"""Train the tiny network once in plain PyTorch with DistributedDataParallel, over gloo.

    torchrun --nproc-per-node 2 torch_ddp_start.py

It prints the monotonic clock when its first step is done. It shares nothing with the harness: the
start of a trial is measured against it.
"""

import os
import time

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from tests.bench.reference.torch_train import TinyCNN

BATCH = 8


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(TinyCNN(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()
    print(time.monotonic(), flush=True)
    os._exit(0)  # what comes after the first step is nobody's business here


if __name__ == "__main__":
    main()
