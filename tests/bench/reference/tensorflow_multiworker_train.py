"""Train AlexNet or ResNet-50 in plain TensorFlow with several workers, over rings.

    TF_CONFIG='{"cluster": …}' python tensorflow_multiworker_train.py {alexnet,resnet50}

It shares nothing with the harness: the strategy ``multiworker`` is measured against it.
"""

import tensorflow as tf

from tests.bench.reference import tensorflow_train
from tests.bench.reference.rank import main

RING = tf.distribute.experimental.CommunicationImplementation.RING


class Replicas(tensorflow_train.Alone):
    """Replicas of tf.distribute."""

    def __init__(self, strategy, options=None):
        self.strategy = strategy
        self.options = options

    def scope(self):
        return self.strategy.scope()

    def batch(self, draw):
        here = self.strategy.extended.worker_devices

        def own(context):
            with tf.device(here[context.replica_id_in_sync_group % len(here)]):
                return draw()

        return self.strategy.experimental_distribute_values_from_function(own)

    def gradient(self, tape, loss, learned):
        context = tf.distribute.get_replica_context()
        own = tape.gradient(loss, learned)
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, own, self.options)

    def run(self, step, batch):
        losses = self.strategy.run(step, args=batch)
        if len(self.strategy.extended.worker_devices) == 1:
            return losses
        return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)


def prepare(name, batch, precision="fp32", joined=None):
    """Make a training step of this worker; a process joins its cluster but once."""
    options = tf.distribute.experimental.CommunicationOptions(implementation=RING)
    strategy = joined or tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    replicas = Replicas(strategy, options)
    return tensorflow_train.prepare(name, batch, precision, strategy=replicas)


if __name__ == "__main__":
    main(prepare)
