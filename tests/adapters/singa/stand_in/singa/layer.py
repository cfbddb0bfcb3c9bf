"""Layers: parameters made at the first call, registered by being an attribute."""

import itertools

import numpy as np

from singa import autograd
from singa.tensor import Tensor


class Layer:
    def __init__(self):
        self.__dict__["_layers"] = {}
        self.name = ""

    def __setattr__(self, name, value):
        if isinstance(value, Layer):
            self._layers[name] = value
            value.name = name
        object.__setattr__(self, name, value)

    def parameter(self, kind, shape, value=0.0):
        made = Tensor(shape, stores_grad=True)
        made.name = f"{self.name}.{kind}" if self.name else kind
        made.set_value(value)
        return made

    def get_params(self):
        found = {v.name: v for v in vars(self).values() if isinstance(v, Tensor) and v.name}
        for one in self._layers.values():
            found.update(one.get_params())
        return found

    def __call__(self, x):
        if not hasattr(self, "is_ready"):
            self.initialize(x)
            self.is_ready = True
        return self.forward(x)

    def initialize(self, x):
        pass


class Linear(Layer):
    def __init__(self, out_features, bias=True):
        super().__init__()
        self.out_features, self.bias = out_features, bias

    def initialize(self, x):
        self.W = self.parameter("W", (x.shape[1], self.out_features))
        if self.bias:
            self.b = self.parameter("b", (self.out_features,))

    def forward(self, x):
        return MatMul()(x, self.W, *([self.b] if self.bias else []))[0]


class MatMul(autograd.Operator):
    def forward(self, x, weight, *bias):
        self.cache = x, weight
        return x @ weight + (bias[0] if bias else 0)

    def backward(self, dy):
        x, weight = self.cache
        return (dy @ weight.T, x.T @ dy, dy.sum(0))[: len(self.given)]


class Windows:
    """Cut a padded picture into windows, and add windows back up."""

    def __init__(self, kernel, stride, padding):
        self.kernel, self.stride = kernel, stride
        pads = (*padding[:1] * 2, *padding[1:] * 2) if len(padding) == 2 else padding
        self.pads = ((0, 0), (0, 0), pads[:2], pads[2:])

    def cuts(self, shape):
        sizes = [n + sum(p) for n, p in zip(shape[2:], self.pads[2:], strict=True)]
        counts = [(n - k) // s + 1 for n, k, s in zip(sizes, self.kernel, self.stride, strict=True)]
        for row, column in itertools.product(*map(range, self.kernel)):
            yield (
                ...,
                slice(row, row + counts[0] * self.stride[0], self.stride[0]),
                slice(column, column + counts[1] * self.stride[1], self.stride[1]),
            )

    def cut(self, x, value=0.0):
        wide = np.pad(x, self.pads, constant_values=value)
        pieces = [wide[cut] for cut in self.cuts(x.shape)]
        rows = min(piece.shape[2] for piece in pieces)
        columns = min(piece.shape[3] for piece in pieces)
        return np.stack([piece[:, :, :rows, :columns] for piece in pieces], axis=2)

    def back(self, pieces, shape):
        wide = np.zeros([n + sum(p) for n, p in zip(shape, self.pads, strict=True)], np.float32)
        for index, cut in enumerate(self.cuts(shape)):
            piece = pieces[:, :, index]
            wide[cut][:, :, : piece.shape[2], : piece.shape[3]] += piece
        (_, _, (top, _), (left, _)) = self.pads
        return wide[:, :, top : top + shape[2], left : left + shape[3]]


class Conv2d(Layer):
    def __init__(self, nb_kernels, kernel_size, stride=1, padding=0, group=1, bias=True):
        super().__init__()
        assert len(padding) == 4
        self.kernels, self.kernel_size, self.bias = nb_kernels, kernel_size, bias
        self.group = group
        self.windows = Windows(kernel_size, stride, padding)

    def initialize(self, x):
        if self.group != 1:
            raise ValueError("Not implemented yet")
        self.W = self.parameter("W", (self.kernels, x.shape[1], *self.kernel_size))
        if self.bias:
            self.b = self.parameter("b", (self.kernels,))

    def forward(self, x):
        return Convolve(self.windows)(x, self.W, *([self.b] if self.bias else []))[0]


class Convolve(autograd.Operator):
    def __init__(self, windows):
        self.windows = windows

    def forward(self, x, weight, *bias):
        self.pieces, self.weight, self.shape = self.windows.cut(x), weight, x.shape
        self.flat = weight.reshape(*weight.shape[:2], -1)
        y = np.einsum("nckhw,ock->nohw", self.pieces, self.flat, optimize=True)
        return y + (bias[0][:, None, None] if bias else 0)

    def backward(self, dy):
        pieces = np.einsum("nohw,ock->nckhw", dy, self.flat, optimize=True)
        weight = np.einsum("nohw,nckhw->ock", dy, self.pieces, optimize=True)
        back = self.windows.back(pieces, self.shape), weight.reshape(self.weight.shape)
        return (*back, dy.sum((0, 2, 3)))[: len(self.given)]


class BatchNorm2d(Layer):
    def __init__(self, momentum=0.9):
        super().__init__()
        self.momentum = momentum

    def initialize(self, x):
        self.scale = self.parameter("scale", (x.shape[1],), 1.0)
        self.bias = self.parameter("bias", (x.shape[1],))
        self.running_mean, self.running_var = Tensor((x.shape[1],)), Tensor((x.shape[1],))
        self.running_var.set_value(1.0)

    def forward(self, x):
        return Normalise(self)(x, self.scale, self.bias)[0]


class Normalise(autograd.Operator):
    def __init__(self, layer):
        self.layer = layer

    def forward(self, x, scale, bias):
        self.axes = (0, *range(2, x.ndim))
        self.form = (1, -1, *(1,) * (x.ndim - 2))
        mean, variance = x.mean(self.axes), x.var(self.axes)
        count, share = x.size // x.shape[1], self.layer.momentum
        for kept, new in (
            (self.layer.running_mean.data, mean),
            (self.layer.running_var.data, variance * count / (count - 1)),
        ):
            kept += share * (new - kept)
        self.spread = np.sqrt(variance + 1e-5).reshape(self.form)
        self.unit = (x - mean.reshape(self.form)) / self.spread
        self.scale = scale.reshape(self.form)
        return self.unit * self.scale + bias.reshape(self.form)

    def backward(self, dy):
        d_scale, d_bias = (dy * self.unit).sum(self.axes), dy.sum(self.axes)
        count = dy.size // dy.shape[1]
        shift = (d_bias.reshape(self.form) + self.unit * d_scale.reshape(self.form)) / count
        return (dy - shift) * self.scale / self.spread, d_scale, d_bias


class MaxPool2d(Layer):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        assert len(padding) == 2
        self.windows = Windows(kernel_size, stride or kernel_size, padding)

    def forward(self, x):
        return Largest(self.windows)(x)[0]


class Largest(autograd.Operator):
    def __init__(self, windows):
        self.windows = windows

    def forward(self, x):
        pieces = self.windows.cut(x, -np.inf)
        self.shape, self.count = x.shape, pieces.shape[2]
        self.first = pieces.argmax(2)
        return pieces.max(2)

    def backward(self, dy):
        chosen = self.first[:, :, None] == np.arange(self.count)[:, None, None]
        return (self.windows.back(chosen * dy[:, :, None], self.shape),)


class AvgPool2d(MaxPool2d):
    def __init__(self, kernel_size, stride=None, padding=(0, 0)):
        super().__init__(kernel_size, stride, padding)

    def forward(self, x):
        return Mean(self.windows)(x)[0]


class Mean(autograd.Operator):
    def __init__(self, windows):
        self.windows = windows

    def forward(self, x):
        pieces = self.windows.cut(x)
        self.shape, self.count = x.shape, pieces.shape[2]
        return pieces.mean(2)

    def backward(self, dy):
        share = np.repeat(dy[:, :, None], self.count, 2) / self.count
        return (self.windows.back(share, self.shape),)
