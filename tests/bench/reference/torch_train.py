"""Train a network of pictures in plain PyTorch on one synthetic batch, as fast as it can.

    python torch_train.py {alexnet,resnet50,tinycnn} [--batch 16] [--precision bf16] [--compile]

It shares nothing with the harness: it is what the torch adapter is measured against.
"""

import argparse
import contextlib
import time

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import nn


class AlexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, 1000),
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.projection = None
        if inputs != outputs or stride != 1:
            self.projection = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += x if self.projection is None else self.projection(x)
        return F.relu(y, inplace=True)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        )
        blocks, inputs = [], 64
        for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
            for number in range(count):
                blocks.append(Bottleneck(inputs, width, stride if number == 0 else 1))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


class TinyCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv3, self.bn3 = nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv4 = nn.Conv2d(16, 32, 3, stride=2)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x)), inplace=True), 2)
        y = F.relu(self.bn2(self.conv2(x)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += x
        x = F.relu(self.conv4(F.pad(F.relu(y, inplace=True), (0, 1, 0, 1))), inplace=True)
        return self.fc(x.mean((2, 3)))


MODELS = {
    "alexnet": (AlexNet, 0.01, 5e-4),
    "resnet50": (ResNet50, 0.1, 1e-4),
    "tinycnn": (TinyCNN, 0.05, 1e-4),
}
TINY = {"tinycnn": (32, 10)}


def prepare(name, batch, precision="fp32", compiled=False, device="cpu"):
    """Make a training step; calling it trains once and returns the loss tensor."""
    make, rate, decay = MODELS[name]
    if name == "resnet50":
        rate = rate * batch / 256
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"

    torch.manual_seed(0)
    model = make().to(device).train()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.01)
            nn.init.zeros_(module.bias)
    if device != "cpu":
        model = model.to(memory_format=torch.channels_last)
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD(
        [{"params": weights, "weight_decay": decay}, {"params": others}],
        lr=rate,
        momentum=0.9,
        fused=True,
    )

    def objective(images, labels):
        return F.cross_entropy(model(images), labels)

    loss_of = torch.compile(objective) if compiled else objective
    scaler = torch.amp.GradScaler(device, enabled=precision == "fp16")
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)

    size, classes = TINY.get(name, (224, 1000))
    images = torch.randn(batch, 3, size, size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(classes, (batch,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, kind) if kind else contextlib.nullcontext():
            loss = loss_of(images, labels)
        if kind is torch.float16:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
        return loss.detach()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch, options.precision, options.compile, options.device)
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    for _ in range(3):
        step()
    wait()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    wait()
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
