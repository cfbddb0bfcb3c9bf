"""Small networks with one of every layer, examined through the gate's own door.

Each is held to ``plain_loops.py``: activations layer by layer, running statistics, and the gradient
of the loss along a random direction. Python 3.7 grammar.
"""

import tempfile

import numpy

from harness.worker.gate import tensors
from harness.worker.gate.subject import examine
from harness.worker.network import shapes
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
    ReLU,
    Residual,
    Scale,
    Tanh,
)
from harness.worker.network.workload import SGD, DataSet, Training
from tests.adapters.tensorflow.plain_loops import PlainLoops

BATCH = 3
IN_TWO = Network(
    (4, 15, 15),
    (
        Conv("conv1", 6, 3, stride=2, pad=(1, 2), groups=2),
        BatchNorm("bn1", epsilon=1e-3, momentum=0.3),
        LRN("lrn1", size=3, alpha=0.2, beta=0.75, k=1.5),
        MaxPool("pool1", 3, 2, pad=(1, 1)),
        Conv("conv2", 8, 3, pad=(1, 1), bias=False),
        LRN("lrn2", size=5, alpha=0.1, beta=0.5, k=2.0),
        Residual(
            "block",
            (Conv("conv1", 4, 1), ReLU("relu1"), Conv("conv2", 6, 3, pad=(1, 1))),
            (Conv("projection", 6, 1, bias=False),),
        ),
        LeakyReLU("leaky", 0.3),
        MaxPool("pool2", 2, 2, ceil=True),
        Flatten("flatten"),
        Dense("fc1", 5),
        Tanh("tanh"),
        Scale("scale", 1.2),
        Dense("fc2", 3, bias=False),
    ),
)
IN_ONE = Network(
    (3, 21),
    (
        Conv("conv1", 4, 4),
        MaxPool("pool1", 4, 4, ceil=True),
        ReLU("relu1"),
        Flatten("flatten"),
        BatchNorm("bn1"),
        Dropout("drop1", 0.5),
        Dense("fc1", 3),
    ),
)
IN_THREE = Network(
    (2, 8, 8, 8),
    (
        BatchNorm("bn0"),
        Conv("conv1", 4, 3, pad=(1, 1)),
        LeakyReLU("leaky", 0.3),
        MaxPool("pool1", 2, 2),
        Conv("conv2", 3, 3, stride=2, pad=(0, 1)),
        BatchNorm("bn1"),
        Flatten("flatten"),
        Dense("fc1", 3),
    ),
)
AVERAGES = Network(
    (2, 9, 8, 8),
    (AveragePool("pool1", 2, 2), Conv("conv1", 3, 1), GlobalAverage("all"), Dense("fc1", 3)),
)


def workload(network):
    sgd, data = SGD(rate=0.1), DataSet("none", 1)
    return Training("check", "", "things", network, "mean-squared-error", sgd, data, 0, 0)


def drawn(network):
    draw = numpy.random.RandomState(5)
    state = {}
    for site in shapes.sites(network):
        for name, shape in shapes.parameter_shapes(site):
            state[name] = draw.uniform(-0.6, 0.6, shape) + name.endswith("gamma")
        if isinstance(site.layer, BatchNorm):
            for kind in ("mean", "variance"):
                state[site.path + "/" + kind] = draw.uniform(0.5, 1.5, site.input[:1])
    x = draw.normal(size=(BATCH, *network.input))
    return state, x, draw.normal(size=(BATCH, 3))


def made(adapter, network, precision, given, **about):
    with tempfile.TemporaryDirectory() as folder:
        paths = [folder + "/given", folder + "/made"]
        writer = tensors.Writer(paths[0])
        for name, array in given.items():
            writer.put(name, array.shape, numpy.ascontiguousarray(array).reshape(-1))
        writer.close(dict(about, precision=precision))
        examine(adapter, workload(network), *paths)
        found = tensors.read(paths[1]).tensors
        return {
            name: numpy.frombuffer(tensor.items()).reshape(tensor.shape)
            for name, tensor in found.items()
        }


def given_of(network):
    state, x, target = drawn(network)
    named = {"initial/" + name: array for name, array in state.items()}
    return dict(named, input=x, target=target)


def hold(adapter, network, precision, tolerance, is_bessel_corrected=True):
    """Hold one network to the loops."""
    state, x, target = drawn(network)
    found = made(adapter, network, precision, given_of(network), gradients=True)
    loops = PlainLoops(network, state, is_bessel_corrected)
    output = loops.run(x)
    for path, expected in loops.activations.items():
        if "activation/" + path in found:
            near(found["activation/" + path], expected, tolerance, path)
    near(found["output"], output, tolerance, "output")
    near(found["loss"], ((output - target) ** 2).mean(), tolerance, "loss")
    for name, expected in loops.statistics.items():
        near(found["statistic/" + name], expected, tolerance, name)
    draw = numpy.random.RandomState(6)
    names = [name for name in state if not name.endswith(("/mean", "/variance"))]
    for name in names:
        way = draw.normal(size=state[name].shape)
        slope = (
            lost(network, state, name, 1e-6 * way) - lost(network, state, name, -1e-6 * way)
        ) / 2e-6
        along = float((found["gradient/" + name] * way).sum())
        size = float(numpy.sqrt((found["gradient/" + name] ** 2).sum() * (way**2).sum()))
        assert abs(along - slope) < max(tolerance, 1e-7) * max(size, 1), (name, along, slope)


def lost(network, state, name, step):
    _, x, target = drawn(network)
    output = PlainLoops(network, dict(state, **{name: state[name] + step})).run(x)
    return ((output - target) ** 2).mean()


def near(value, expected, tolerance, what):
    assert value.shape == numpy.shape(expected), (what, value.shape, numpy.shape(expected))
    error = numpy.max(numpy.abs(value - expected)) / max(numpy.max(numpy.abs(expected)), 1e-9)
    assert error < tolerance, (what, error)


def hold_dropout(adapter):
    """Hold a dropout, examined as a layer, to its rate, its scale and its gradient."""
    network = Network((1000,), (Dropout("drop", 0.2), Dense("fc1", 3)))
    ones = numpy.ones((BATCH, 1000))
    given = dict(given_of(network), **{"layer/drop/input": ones, "layer/drop/gradient": 2 * ones})
    found = made(adapter, network, "timed", given, layers=True)
    output = found["layer/drop/output"]
    assert set(numpy.round(output, 5).flat) == {0.0, 1.25}
    assert 0.15 < (output == 0).mean() < 0.25
    near(found["layer/drop/input-gradient"], 2 * output, 1e-6, "gradient")
