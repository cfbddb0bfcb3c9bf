"""Train the tiny network once in plain PyTorch with DistributedDataParallel, over gloo.

    torchrun --nproc-per-node 2 torch_ddp_start.py

It prints the monotonic clock when its first step is done. It shares nothing with the harness: the
start of a trial is measured against it.
"""

import os
import time

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 8


class TinyCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv3, self.bn3 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv4 = nn.Conv2d(16, 32, 3, stride=2)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        y = F.relu(self.bn2(self.conv2(x)))
        x = F.relu(self.bn3(self.conv3(y)) + x)
        x = F.relu(self.conv4(F.pad(x, (0, 1, 0, 1))))
        return self.fc(x.mean((2, 3)))


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
