"""This file trains five steps in float64 as one rank of several, and prints the weights.

    python -m tests.adapters.ranks_inside FRAMEWORK STRATEGY

Every rank gets its share of one global batch; the weights are printed as JSON by name. With one
rank and no strategy that is what several ranks have to equal. The network has no batch norm: where
that is not synchronised, ranks rightly differ from one.
"""

import json
import sys
from dataclasses import replace

import numpy

from harness.node import place as places
from harness.node.job import Job, Span
from harness.node.network import Conv, Dense, GlobalAverage, Network, ReLU
from harness.node.workload import SGD, DataSet, Training

BATCH, STEPS, CLASSES = 8, 5, 10
WORKLOAD = Training(
    name="plain",
    title="Two convolutions",
    unit="images",
    network=Network(
        input=(3, 12, 12),
        layers=(
            Conv("conv1", 8, 3, pad=(1, 1)),
            ReLU("relu1"),
            Conv("conv2", 8, 3, pad=(1, 1)),
            ReLU("relu2"),
            GlobalAverage("pool"),
            Dense("fc", CLASSES),
        ),
    ),
    loss="cross-entropy",
    optimiser=SGD(rate=0.05, weight_decay=1e-3),
    data=DataSet("none", 1),
    parameters=898,
    macs=0,
)


def batch(place):
    """Give this rank's share of the batch."""
    chance = numpy.random.RandomState(1)
    x = chance.standard_normal((BATCH, 3, 12, 12))
    target = chance.randint(0, CLASSES, BATCH)
    each = BATCH // place.size
    mine = slice(place.rank * each, (place.rank + 1) * each)
    return x[mine], target[mine]


def torch(job, place):
    import torch

    from harness.node.adapters.torch import settings
    from harness.node.adapters.torch.strategies import strategy
    from harness.node.adapters.torch.training import Trainer

    chosen = replace(settings.apply({}, {}, place), precision="float64")
    joined = strategy.join(job, place, chosen)
    trainer = Trainer(WORKLOAD, chosen, 1, joined)
    trainer.start_optimiser(BATCH)
    x, target = map(torch.from_numpy, batch(place))
    x = trainer.place(x)
    for _ in range(STEPS):
        trainer.step(x, target)
    made = {name: one.detach().numpy() for name, one in trainer.network.named_parameters()}
    largest = joined.agree(float(place.rank))
    joined.close()
    return made, largest


def tensorflow(job, place):
    import tensorflow.compat.v2 as tf

    from harness.node.adapters.tensorflow import settings, strategies
    from harness.node.adapters.tensorflow.lowering import Lowering
    from harness.node.adapters.tensorflow.training import Trainer

    settings.before_import({}, "trial")
    joined = settings.after_import({}, 1, lambda: strategies.join(job, place))
    lowering = Lowering(WORKLOAD.network, settings.style({}, "float64"))
    trainer = Trainer(WORKLOAD, lowering, lowering.initial(1), BATCH, joined)
    x, target = batch(place)
    x = tf.constant(lowering.arrangement.activation_in(x, None))
    target = tf.constant(target, tf.int32)
    step = settings.jitted(joined.run(lambda: trainer.step(x, target, is_dropping=False)), False)
    for _ in range(STEPS):
        step()
    made = {name: one.numpy() for name, one in trainer.learned.items()}
    largest = joined.agree(float(place.rank))
    joined.close()
    return made, largest


def jax(job, place):
    from harness.node.adapters.jax import settings, strategies

    settings.apply({"precision": "float64"}, place, lambda: strategies.meet(job, place))
    joined = strategies.join(job, place)
    from jax import numpy as jnp

    from harness.node.adapters.jax import training
    from harness.node.adapters.jax.lowering import Lowered

    net = Lowered(WORKLOAD.network, True, True)
    state = joined.replicate(training.initial(net, WORKLOAD, 1, "float64"))
    x, target = batch(place)
    given = training.Given(net.activation_in(jnp.asarray(x)), jnp.asarray(target, jnp.int32))
    given = joined.share(given)
    step = joined.jit(training.make_step(net, WORKLOAD, "float64", BATCH, False))
    for _ in range(STEPS):
        state, _ = step(state, given)
    made = {name: numpy.asarray(one) for name, one in state.parameters.items()}
    largest = joined.agree(float(place.rank))
    joined.close()
    return made, largest


def main(framework, strategy):
    import os

    place = places.find(os.environ)
    span = Span(steps=1)
    names = ("trial", "cell", "trial-1", "plain", "", framework, "", strategy)
    job = Job(*names, factors={}, options={}, warmup=span, until=span, seed=1, directory="")
    made, largest = globals()[framework](job, place)
    told = {name: one.ravel().tolist() for name, one in made.items()}
    sys.stdout.write("\n" + json.dumps({"weights": told, "largest": largest}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
