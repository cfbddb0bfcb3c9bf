"""This file compares what TensorFlow's network is handed with the files; it runs beside it."""

import numpy
import tensorflow.compat.v2 as tf

from harness.node.adapters.tensorflow.arrangement import Arrangement
from harness.node.adapters.tensorflow.feeding import fed
from harness.node.adapters.tensorflow.strategies import Strategy
from tests.adapters.handed import BATCH, feed_of, refusal, stored
from workloads import neuron_inverter, tinycnn


class Still:
    """A trainer that computes next to nothing."""

    strategy = Strategy()

    def step(self, x, target, is_dropping):
        return tf.reduce_sum(tf.cast(x, tf.float32)) + tf.reduce_sum(tf.cast(target, tf.float32))


def handed(workload, folder, lifts=True, channels_last=True, dtype=tf.float32, **factors):
    feed = feed_of(workload, folder, **factors)
    arrangement = Arrangement(workload.network, channels_last, lifts)
    how = {"compiled": False, "autotune": False}
    activity = fed(Still(), feed, workload.unit, arrangement, dtype, **how)
    activity.epochs.turn()
    for _ in range(2):
        activity.fetch()
        activity.step()
    inputs, targets = stored(feed, activity.epochs._delivered[-BATCH:])
    x, target = activity.batch
    assert x.dtype == dtype
    expected = tf.cast(arrangement.activation_in(inputs, None), dtype)
    assert numpy.array_equal(tf.cast(x, tf.float32), tf.cast(expected, tf.float32))
    assert numpy.array_equal(numpy.reshape(target, targets.shape), targets)
    whole = float(tf.reduce_sum(tf.cast(x, tf.float32))) + float(numpy.sum(target))
    assert abs(activity.values()["loss"] - whole) < 1e-2 * max(1.0, abs(whole))


def test_pictures_become_channels_last_whoever_reads_them():
    handed(tinycnn.WORKLOAD, "tiny-pictures-raw", reader="tf-data")
    handed(tinycnn.WORKLOAD, "tiny-pictures-npy", reader="pread")
    handed(tinycnn.WORKLOAD, "tiny-pictures-npy", reader="async-thread", dtype=tf.float16)


def test_pictures_stay_channels_first_where_the_network_is():
    handed(tinycnn.WORKLOAD, "tiny-pictures-raw", channels_last=False, reader="tf-data")


def test_traces_are_worked_in_two_dimensions_or_in_one():
    for lifts in (True, False):
        handed(neuron_inverter.WORKLOAD, "traces-tfrecord", lifts=lifts, reader="tf-data")


def test_files_of_another_shape_are_refused():
    why = refusal(handed, neuron_inverter.WORKLOAD, "tiny-pictures-raw", reader="tf-data")
    assert "hold samples of (3, 32, 32)" in why
