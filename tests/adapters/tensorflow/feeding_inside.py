"""Compare what TensorFlow's network is handed with the files; it runs beside it."""

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow.feeding import fed
from harness.worker.adapters.tensorflow.lowering.layouts import Arrangement
from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from tests.adapters.handed import BATCH, feed_of, refusal, stored
from workloads import alexnet_chien, neuron_inverter, tinycnn


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


def test_encoded_pictures_become_as_large_as_the_network_takes_them():
    feed = feed_of(alexnet_chien.WORKLOAD, "small-pictures-raw", reader="tf-data", decode=True)
    for channels_last in (True, False):
        arrangement = Arrangement(alexnet_chien.WORKLOAD.network, channels_last)
        how = {"compiled": False, "autotune": False}
        activity = fed(Still(), feed, "images", arrangement, tf.float32, **how)
        activity.epochs.turn()
        activity.fetch()
        samples, targets = activity.epochs._delivered, activity.epochs._dataset.targets()
        for x, sample in zip(activity.batch[0].numpy(), samples):  # noqa: B905 - Python 3.7
            stored = tf.io.read_file(activity.epochs._dataset.paths[sample])
            picture = tf.image.resize(tf.io.decode_jpeg(stored, channels=3), (224, 224)).numpy()
            picture = picture if channels_last else numpy.moveaxis(picture, -1, 0)
            assert numpy.allclose(x, picture / 127.5 - 1, atol=1e-6)
        assert activity.batch[1].numpy().tolist() == [targets[one] for one in samples]


def test_encoded_pictures_are_not_trained_on_undecoded():
    assert "encoded pictures" in refusal(
        handed, alexnet_chien.WORKLOAD, "small-pictures-raw", reader="tf-data"
    )


def test_files_of_another_shape_are_refused():
    why = refusal(handed, neuron_inverter.WORKLOAD, "tiny-pictures-raw", reader="tf-data")
    assert "hold samples of (3, 32, 32)" in why
