"""Train AlexNet or ResNet-50 in plain TensorFlow on two logical CPUs of one process.

    python tensorflow_mirrored_train.py {alexnet,resnet50} [--batch 16] [--steps 20]

It shares nothing with the harness: the strategy ``mirrored`` is measured against it.
"""

import tensorflow as tf

from tests.bench.reference import tensorflow_train
from tests.bench.reference.rank import main
from tests.bench.reference.tensorflow_multiworker_train import Replicas

DEVICES = ["CPU:0", "CPU:1"]


def prepare(name, batch, precision="fp32", joined=None):
    """Make a training step of both devices; a process divides its CPU but once."""
    if joined is None:
        (cpu,) = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration() for _ in DEVICES]
        tf.config.set_logical_device_configuration(cpu, parts)
        joined = tf.distribute.MirroredStrategy(DEVICES)
    return tensorflow_train.prepare(name, batch, precision, strategy=Replicas(joined))


if __name__ == "__main__":
    main(prepare)
