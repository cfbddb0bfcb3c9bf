"""Operators that remember what made a tensor, and the walk back."""

import numpy as np

from singa.tensor import Tensor

training = False


class Operator:
    def __call__(self, *given):
        self.given = given
        made = Tensor(data=np.asarray(self.forward(*(x.data for x in given)), np.float32))
        made.device, made.creator = given[0].device, self
        return (made,)


def backward(loss):
    order, seen = [], set()

    def visit(tensor):
        if tensor.creator is not None and id(tensor.creator) not in seen:
            seen.add(id(tensor.creator))
            for one in tensor.creator.given:
                visit(one)
            order.append(tensor)

    visit(loss)
    assert loss.data.size == 1
    slopes = {id(loss): np.float32(1)}
    found = {}
    for made in reversed(order):
        back = made.creator.backward(slopes[id(made)])
        back = back if isinstance(back, tuple) else (back,)
        for given, slope in zip(made.creator.given, back, strict=True):
            slopes[id(given)] = slopes.get(id(given), 0) + slope
            if given.stores_grad:
                found[id(given)] = given
    for key, parameter in found.items():
        yield parameter, Tensor(data=np.array(slopes[key], np.float32))


class Simple(Operator):
    """An operator of one input, by its value and its slope."""

    def __init__(self, forward, backward):
        self.forward = lambda x: self.remember(x, forward(x))
        self.backward = lambda dy: (backward(self.x, self.y, dy),)

    def remember(self, x, y):
        self.x, self.y = x, y
        return y


def relu(x):
    return Simple(lambda x: np.maximum(x, 0), lambda x, y, dy: dy * (x > 0))(x)[0]


def leakyrelu(x, a=0.01):
    return Simple(lambda x: np.where(x > 0, x, a * x), lambda x, y, dy: dy * np.where(x > 0, 1, a))(
        x
    )[0]


def tanh(x):
    return Simple(np.tanh, lambda x, y, dy: dy * (1 - y * y))(x)[0]


def flatten(x, axis=1):
    assert axis == 1
    return Simple(lambda x: x.reshape(len(x), -1), lambda x, y, dy: dy.reshape(x.shape))(x)[0]


class Add(Operator):
    def forward(self, a, b):
        return a + b

    def backward(self, dy):
        return dy, dy


def add(a, b):
    return Add()(a, b)[0]


class Mul(Operator):
    def forward(self, a, b):
        self.cache = a, b
        return a * b

    def backward(self, dy):
        a, b = self.cache
        return dy * b, np.sum(dy * a).reshape(b.shape)


def mul(a, b):
    return Mul()(a, b)[0]


class Dropout(Operator):
    def __init__(self, seed=0, ratio=0.5):
        self.ratio, self.seed, self.init_seed = ratio, seed, False

    def forward(self, x):
        if not self.init_seed:
            np.random.seed(self.seed)
            self.init_seed = True
        if training:
            self.scale = 1 / 1 - self.ratio  # as SINGA has it
            self.mask = np.random.random(x.shape) < 1 - self.ratio
            x = x * self.mask * self.scale
        return x

    def backward(self, dy):
        return (dy * self.mask * self.scale,)


def dropout(x, seed=0, ratio=0.5):
    return Dropout(seed, ratio)(x)[0]


class SoftMaxCrossEntropy(Operator):
    def __init__(self, target):
        self.target = target.data

    def forward(self, x):
        powers = np.exp(x - x.max(1, keepdims=True))
        self.p = powers / powers.sum(1, keepdims=True)
        return -np.log(self.p[np.arange(len(x)), self.target]).mean()

    def backward(self, dy=1.0):
        dx = self.p.copy()
        dx[np.arange(len(dx)), self.target] -= 1
        return (dx / len(dx),)


def softmax_cross_entropy(x, t):
    return SoftMaxCrossEntropy(t)(x)[0]


def mse_loss(x, t):
    return Simple(
        lambda x: np.mean((x - t.data) ** 2), lambda x, y, dy: 2 / x.size * (x - t.data) * dy
    )(x)[0]
