"""Train AlexNet or the tiny network in plain tinygrad on one synthetic batch.

    python tinygrad_train.py {tinycnn,alexnet} [--batch 8]

It shares nothing with the harness: it is what the tinygrad adapter is measured against. Set DEV=CPU
and NUM_CPU_THREADS before it starts.
"""

import argparse
import math
import time

from tinygrad import Context, Device, Tensor, TinyJit, nn


class AlexNet:
    def __init__(self):
        self.convolutions = [
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.Conv2d(256, 256, 3, padding=1),
        ]
        self.dense = [nn.Linear(9216, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000)]

    def __call__(self, x):
        for number, conv in enumerate(self.convolutions):
            x = conv(x).relu()
            if number in (0, 1, 4):
                x = x.max_pool2d((3, 3), 2)
        x = x.flatten(1)
        for linear in self.dense[:2]:
            x = linear(x.dropout(0.5)).relu()
        return self.dense[2](x)


class TinyCNN:
    def __init__(self):
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm(16)
        self.conv3, self.bn3 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm(16)
        self.conv4 = nn.Conv2d(16, 32, 3, stride=2, padding=(0, 1, 0, 1))
        self.fc = nn.Linear(32, 10)

    def __call__(self, x):
        x = self.bn1(self.conv1(x)).relu().max_pool2d((2, 2))
        y = self.bn2(self.conv2(x)).relu()
        x = (self.bn3(self.conv3(y)) + x).relu()
        return self.fc(self.conv4(x).relu().mean((2, 3)))


MODELS = {"alexnet": (AlexNet, 224, 1000, 0.01, 5e-4), "tinycnn": (TinyCNN, 32, 10, 0.05, 1e-4)}


def prepare(name, batch):
    """Make a training step; calling it trains once and returns the loss tensor."""
    make, size, classes, rate, decay = MODELS[name]
    Tensor.manual_seed(0)
    model = make()
    weights, others = [], []
    for path, tensor in nn.state.get_state_dict(model).items():
        if tensor.ndim > 1:
            fan_out = tensor.shape[0] * math.prod(tensor.shape[2:])
            deviation = math.sqrt(2 / fan_out) if tensor.ndim > 2 else 0.01
            tensor.assign(Tensor.randn(*tensor.shape) * deviation)
            weights.append(tensor)
        elif "running" not in path and "num_batches" not in path:
            if path.endswith("bias"):
                tensor.assign(tensor.zeros_like())
            others.append(tensor)
    Tensor.realize(*nn.state.get_parameters(model))
    optimizer = nn.optim.OptimizerGroup(
        nn.optim.SGD(weights, lr=rate, momentum=0.9, weight_decay=decay),
        nn.optim.SGD(others, lr=rate, momentum=0.9),
    )
    images = Tensor.randn(batch, 3, size, size).realize()
    labels = Tensor.randint(batch, high=classes).realize()

    @TinyJit
    def train():
        optimizer.zero_grad()
        loss = model(images).sparse_categorical_crossentropy(labels).backward()
        return loss.realize(*optimizer.schedule_step())

    def step():
        with Context(TRAINING=1):
            return train()

    step.captured = train
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch)
    wait = Device[Device.DEFAULT].synchronize
    for _ in range(3):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    wait()
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
