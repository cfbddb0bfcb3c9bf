"""Check beside a SINGA that lowered layers compute what the vocabulary says."""

import itertools

import numpy as np
from singa import autograd, device, tensor

from harness.worker.adapters.singa.lowering import Lowered, ScaledDropout
from harness.worker.adapters.singa.training import ScopedSGD
from harness.worker.contracts import Unsupported
from harness.worker.network.layers import AveragePool, Conv, MaxPool, Network

DEVICE = device.create_cpu_device()


def given(array):
    made = tensor.Tensor(array.shape, DEVICE)
    made.copy_from_numpy(array.astype(np.float32))
    return made


def run(layer, shape):
    x = np.random.default_rng(1).normal(size=(2, *shape)).astype(np.float32)
    net = Lowered(Network(shape, (layer,)), on_cpu=True)
    fed = given(x[:, :, None] if net.is_line else x)
    net.run(fed)
    for one in net.layers.values():
        for number, parameter in enumerate(one.get_params().values()):
            values = np.random.default_rng(number).normal(size=parameter.shape)
            parameter.copy_from_numpy(values.astype(np.float32))
    return x, net, tensor.to_numpy(net.run(fed))


def windows(x, kernel, stride, pad, value):
    wide = np.pad(x, ((0, 0), (0, 0), *[pad] * (x.ndim - 2)), constant_values=value)
    counts = [(n - kernel) // stride + 1 for n in wide.shape[2:]]
    for at in itertools.product(*map(range, counts)):
        cut = tuple(slice(i * stride, i * stride + kernel) for i in at)
        yield at, wide[(slice(None), slice(None), *cut)]


def refused(layer, shape):
    try:
        run(layer, shape)
    except Unsupported as fault:
        return str(fault)
    raise AssertionError(layer)


for shape in ((2, 6, 6), (2, 9)):
    for pad in ((0, 0), (1, 1), (0, 1), (2, 1)):
        x, net, y = run(Conv("c", 3, 3, stride=2, pad=pad), shape)
        weight, bias = (tensor.to_numpy(v) for v in net.layers["c"].get_params().values())
        if len(shape) == 2:
            weight, y = weight[:, :, 0], y[:, :, 0]
        for at, window in windows(x, 3, 2, pad, 0.0):
            axes = list(range(1, window.ndim))
            expected = np.tensordot(window, weight, (axes, axes)) + bias
            np.testing.assert_allclose(y[(slice(None), slice(None), *at)], expected, rtol=1e-4)
    for layer, reduce, pad in (
        (MaxPool("p", 3, 2, (1, 1)), np.max, (1, 1)),
        (AveragePool("p", 2, 2), np.mean, (0, 0)),
    ):
        x, net, y = run(layer, shape)
        y = y[:, :, 0] if len(shape) == 2 else y
        for at, window in windows(x, layer.kernel, layer.stride, pad, -np.inf):
            expected = reduce(window, axis=tuple(range(2, window.ndim)))
            np.testing.assert_allclose(y[(slice(None), slice(None), *at)], expected, rtol=1e-5)

assert "repeats the border" in refused(MaxPool("p", 3, 2, (0, 1)), (1, 6, 6))
assert "repeats the border" in refused(MaxPool("p", 2, 2, ceil=True), (1, 5, 5))
assert "no groups on a CPU" in refused(Conv("c", 4, 1, groups=2), (2, 3, 3))

autograd.training = True
ones = given(np.ones((200, 200)))
dropped = [tensor.to_numpy(ScaledDropout(0.2)(ones)[0]) for _ in range(2)]
assert set(np.unique(dropped[0])) == {np.float32(0), np.float32(1.25)}
assert abs((dropped[0] == 0).mean() - 0.2) < 0.02
assert (dropped[0] != dropped[1]).any()

rule = ScopedSGD(0.1, 0.9, 0.5)
for name, expected in (("a.W", 0.8 - 0.05), ("a.b", 0.8)):
    value = given(np.ones(1))
    rule.apply(name, value, given(np.full(1, 2.0)))
    np.testing.assert_allclose(tensor.to_numpy(value), expected, rtol=1e-6)
print("fine")
