"""Stand in for pycaffe: nets in Caffe's text format, by Caffe's rules, in torch's fp32.

It has what an examination uses of pycaffe's interface, and proves nothing about Caffe. With
PYCAFFE_FOLDS it makes a BatchNorm and the Scale behind it one layer, as Intel's engines do.
"""

import os
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from harness.worker.adapters.caffe import blobs, prototxt
from harness.worker.adapters.caffe.prototxt import every, one

__version__ = "1.0.0-stand-in"
TRAIN, TEST = 0, 1


def set_mode_cpu():
    pass


class Blob:
    def __init__(self, shape):
        self.data = np.zeros(shape, np.float32)
        self.diff = np.zeros(shape, np.float32)


class Net:
    def __init__(self, path, phase):
        assert phase == TRAIN
        message = prototxt.read(Path(path).read_text(encoding="utf-8"))
        assert one(message, "force_backward")
        shapes = blobs.infer(message)
        self.layers = every(message, "layer")
        self.blobs = {name: Blob(shape) for (_, name), shape in shapes.tops.items()}
        self.params = {
            name: [Blob(shape) for shape in held] for name, held in shapes.parameters.items()
        }
        if os.environ.get("PYCAFFE_FOLDS"):
            self.layers = list(self.folded())
        self.outputs = []
        for layer in self.layers:
            read = every(layer, "bottom")
            self.outputs = [name for name in self.outputs if name not in read]
            self.outputs += every(layer, "top")
        self.weights = {one(layer, "name"): one(layer, "loss_weight", 1) for layer in self.layers}

    def folded(self):
        for before, layer in zip([[], *self.layers], self.layers, strict=False):
            if one(layer, "type") != "Scale":
                yield layer
                continue
            assert one(before, "type") == "BatchNorm"
            self.params[one(before, "name")] += self.params.pop(one(layer, "name"))
            before += [field for field in layer if field[0] in ("param", "scale_param")]
            before.remove(("top", one(before, "top")))
            before.append(("top", one(layer, "top")))

    def forward(self):
        self.values, self.inputs = {}, {}
        self.held = {
            (name, index): torch.from_numpy(blob.data.copy()).requires_grad_()
            for name, held in self.params.items()
            for index, blob in enumerate(held)
        }
        for layer in self.layers:
            bottoms = [self.values[name] for name in every(layer, "bottom")]
            tops = every(layer, "top")
            if not bottoms:
                for top in tops:
                    self.inputs[top] = torch.from_numpy(self.blobs[top].data).requires_grad_()
                    self.values[top] = self.inputs[top]
                continue
            name = one(layer, "name")
            held = [self.held[name, index] for index in range(len(self.params.get(name, ())))]
            self.values[tops[0]] = RULES[one(layer, "type")](layer, held, self, *bottoms)
        for name, value in self.values.items():
            if name not in self.inputs:
                self.blobs[name].data[...] = value.detach().numpy()

    def backward(self):
        for name in self.outputs:
            if name == "loss":
                self.blobs[name].diff[...] = self.weights[name]
        ends = [name for name in self.outputs if name not in self.inputs]
        starts = {**{("in", name): value for name, value in self.inputs.items()}, **self.held}
        slopes = torch.autograd.grad(
            [self.values[name] for name in ends],
            list(starts.values()),
            [torch.from_numpy(self.blobs[name].diff) for name in ends],
            allow_unused=True,
        )
        for (name, index), slope in zip(starts, slopes, strict=True):
            blob = self.blobs[index] if name == "in" else self.params[name][index]
            if slope is not None:
                blob.diff[...] += slope.numpy()


def pair(own, what, plain):
    both = one(own, "kernel_size" if what == "kernel" else what, plain)
    return one(own, what + "_h", both), one(own, what + "_w", both)


def convolution(layer, held, net, x):
    own = one(layer, "convolution_param")
    bias = held[1] if len(held) > 1 else None
    stride, pad = pair(own, "stride", 1), pair(own, "pad", 0)
    return functional.conv2d(x, held[0], bias, stride, pad, groups=one(own, "group", 1))


def pooling(layer, held, net, x):
    own = one(layer, "pooling_param")
    if one(own, "global_pooling"):
        return x.mean((2, 3), keepdim=True)
    kind = {"MAX": functional.max_pool2d, "AVE": functional.avg_pool2d}[one(own, "pool")]
    sizes = pair(own, "kernel", 0), pair(own, "stride", 1), pair(own, "pad", 0)
    return kind(x, *sizes, ceil_mode=True)


def batch_norm(layer, held, net, x):
    own = one(layer, "batch_norm_param")
    axes = [0, *range(2, x.ndim)]
    mean, variance = x.mean(axes), x.var(axes, unbiased=False)
    count = x.numel() // x.shape[1]
    new = mean, variance * count / (count - 1), torch.ones(1)
    for blob, value in zip(net.params[one(layer, "name")][:3], new, strict=True):
        blob.data *= one(own, "moving_average_fraction", 0.999)
        blob.data += value.detach().numpy()
    form = (1, -1, *[1] * (x.ndim - 2))
    spread = torch.sqrt(variance + one(own, "eps", 1e-5)).view(form)
    x = (x - mean.view(form)) / spread
    return scale(layer, held[3:], net, x) if len(held) > 3 else x


def scale(layer, held, net, x):
    form = (1, -1, *[1] * (x.ndim - 2))
    return x * held[0].view(form) + held[1].view(form)


def lrn(layer, held, net, x):
    own = one(layer, "lrn_param")
    return functional.local_response_norm(
        x, one(own, "local_size"), one(own, "alpha"), one(own, "beta"), one(own, "k")
    )


def crop(layer, held, net, x, like):
    top, left = every(one(layer, "crop_param"), "offset")
    return x[:, :, top : top + like.shape[2], left : left + like.shape[3]]


RULES = {
    "Convolution": convolution,
    "Pooling": pooling,
    "BatchNorm": batch_norm,
    "Scale": scale,
    "LRN": lrn,
    "Crop": crop,
    "InnerProduct": lambda layer, held, net, x: functional.linear(x.flatten(1), *held),
    "ReLU": lambda layer, held, net, x: functional.leaky_relu(
        x, one(one(layer, "relu_param", []), "negative_slope", 0)
    ),
    "TanH": lambda layer, held, net, x: torch.tanh(x),
    "Power": lambda layer, held, net, x: x * one(one(layer, "power_param"), "scale"),
    "Dropout": lambda layer, held, net, x: functional.dropout(
        x, one(one(layer, "dropout_param"), "dropout_ratio")
    ),
    "Flatten": lambda layer, held, net, x: x.flatten(1),
    "Eltwise": lambda layer, held, net, *xs: sum(xs),
    "SoftmaxWithLoss": lambda layer, held, net, x, t: functional.cross_entropy(x, t.long()),
    "EuclideanLoss": lambda layer, held, net, x, t: ((x - t) ** 2).sum() / 2 / len(x),
}


class Solver:
    """Train by Caffe's formulas: rates and decays by each parameter's multipliers."""

    def __init__(self, path):
        message = prototxt.read(Path(path).read_text(encoding="utf-8"))
        self.net = Net(one(message, "net"), TRAIN)
        self.own = message
        self.callbacks, self.iteration = [], 0
        self.moments = {}

    def add_callback(self, on_start, on_gradients_ready):
        self.callbacks.append((on_start, on_gradients_ready))

    def step(self, count):
        for _ in range(count):
            for blob in (blob for held in self.net.params.values() for blob in held):
                blob.diff[...] = 0
            for on_start, _ in self.callbacks:
                on_start()
            self.net.forward()
            self.net.backward()
            for _, on_gradients_ready in self.callbacks:
                on_gradients_ready()
            self.iteration += 1
            self.update()

    def update(self):
        for layer in self.net.layers:
            params = every(layer, "param")
            for index, blob in enumerate(self.net.params.get(one(layer, "name"), ())):
                own = params[index] if index < len(params) else []
                rate = one(self.own, "base_lr") * one(own, "lr_mult", 1)
                decay = one(self.own, "weight_decay", 0) * one(own, "decay_mult", 1)
                if rate:
                    blob.diff += decay * blob.data
                    blob.data -= self.moved((one(layer, "name"), index), rate, blob.diff)

    def moved(self, key, rate, slope):
        first, second = self.moments.setdefault(key, (np.zeros_like(slope), np.zeros_like(slope)))
        kept = one(self.own, "momentum", 0)
        if one(self.own, "type") == "SGD":
            first *= kept
            first += rate * slope
            return first
        other, step = one(self.own, "momentum2"), self.iteration
        first += (1 - kept) * (slope - first)
        second += (1 - other) * (slope * slope - second)
        correction = np.sqrt(1 - other**step) / (1 - kept**step)
        return rate * correction * first / (np.sqrt(second) + one(self.own, "delta"))


get_solver = Solver
