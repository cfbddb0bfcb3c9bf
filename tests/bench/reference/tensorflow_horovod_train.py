"""Train AlexNet or ResNet-50 in plain TensorFlow with Horovod's tape.

    horovodrun -np 2 python tensorflow_horovod_train.py {alexnet,resnet50} [--batch 16]

It shares nothing with the harness: TensorFlow's strategy ``horovod`` is measured against it.
"""

import horovod.tensorflow as hvd

from tests.bench.reference import tensorflow_train
from tests.bench.reference.rank import main


class Averaged(tensorflow_train.Alone):
    """A rank of Horovod's."""

    def begin(self, variables):
        hvd.broadcast_variables(variables, root_rank=0)

    def gradient(self, tape, loss, learned):
        return hvd.DistributedGradientTape(tape).gradient(loss, learned)


def prepare(name, batch, precision="fp32"):
    """Make a training step of this rank; calling it trains once and returns the loss tensor."""
    if not hvd.is_initialized():
        hvd.init()
    return tensorflow_train.prepare(name, batch, precision, strategy=Averaged())


if __name__ == "__main__":
    main(prepare)
