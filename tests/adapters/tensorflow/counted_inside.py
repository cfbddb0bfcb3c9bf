"""Count in graphs that TensorFlow traces; run by its own interpreters, see ``inside.py``."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from harness.worker.facts import graph_multiplications
from harness.worker.facts.multiplications import Uncounted

PICTURES = (4, 12, 12, 3)
CONV1 = 4 * 6 * 6 * 8 * 3 * 3 * 3
CONV2 = 4 * 6 * 6 * 8 * 3 * 3 * 8
DENSE = 4 * 5 * 6 * 6 * 8


class Training:
    """Two convolutions and a product, trained on a batch that lies in a variable."""

    def __init__(self):
        self.pictures = tf.Variable(tf.ones(PICTURES))
        self.weights = [
            tf.Variable(tf.ones(shape)) for shape in ((3, 3, 3, 8), (3, 3, 8, 8), (288, 5))
        ]

    def loss(self, pictures, skipped):
        x = tf.nn.conv2d(pictures, self.weights[0], 2, "SAME")
        if not skipped:
            x = tf.nn.conv2d(x, self.weights[1], 1, "SAME")
        x = tf.reshape(x, (x.shape[0], -1))
        return tf.reduce_mean(tf.matmul(x, self.weights[2][: x.shape[1]]))

    def step(self, taken=lambda x: x, skipped=False, updates=True):
        with tf.GradientTape() as tape:
            loss = self.loss(taken(self.pictures.read_value()), skipped)
        slopes = tape.gradient(loss, self.weights)
        if updates:
            for number, weight in enumerate(self.weights):
                if slopes[number] is not None:
                    weight.assign_sub(0.1 * slopes[number])
        return loss


def macs(function):
    traced = tf.function(function).get_concrete_function()  # its graph does not live without it
    return graph_multiplications.tally(traced.graph).macs


def test_a_step_multiplies_three_times_but_for_the_gradient_of_what_is_given():
    net = Training()
    assert macs(net.step) == 2 * CONV1 + 3 * CONV2 + 3 * DENSE


def test_half_the_batch_multiplies_half_as_much():
    net = Training()
    assert 2 * macs(lambda: net.step(lambda x: x[::2])) == macs(net.step)


def test_pictures_of_half_the_size_multiply_a_quarter():
    net = Training()
    assert 4 * macs(lambda: net.step(lambda x: x[:, ::2, ::2])) == macs(net.step)


def test_gradients_that_nothing_needs_are_not_counted():
    net = Training()
    assert macs(lambda: net.step(updates=False)) == CONV1 + CONV2 + DENSE


def test_a_layer_that_is_skipped_is_not_counted():
    net = Training()
    assert macs(lambda: net.step(skipped=True)) == 2 * CONV1 + 3 * DENSE


def test_what_a_called_function_multiplies_counts():
    net = Training()
    called = tf.function(net.step)
    assert macs(lambda: called() + 1.0) == macs(net.step)


def test_what_may_be_skipped_while_it_runs_is_not_counted():
    net = Training()
    why = None
    try:
        macs(lambda: tf.cond(net.pictures[0, 0, 0, 0] > 0, net.step, lambda: 0.0))
    except Uncounted as fault:
        why = str(fault)
    assert why.startswith("TensorFlow decides while it runs what")


def test_a_sum_over_neighbours_that_is_written_as_a_convolution_multiplies_nothing():
    x, band = tf.Variable(tf.ones((2, 6, 6, 4))), [[[[1.0] * 4] * 4]]
    assert macs(lambda: tf.nn.conv2d(x, tf.cast(tf.constant(band), tf.float32), 1, "VALID")) == 0


def test_volumes_groups_and_sums_count_as_they_are_stated():
    x, w = tf.ones((2, 6, 6, 6, 4)), tf.Variable(tf.ones((3, 3, 3, 4, 8)))
    assert macs(lambda: tf.nn.conv3d(x, w, [1] * 5, "SAME")) == 2 * 6**3 * 8 * 27 * 4
    flat, grouped = tf.ones((2, 6, 6, 4)), tf.Variable(tf.ones((3, 3, 2, 8)))
    assert macs(lambda: tf.nn.conv2d(flat, grouped, 1, "SAME")) == 2 * 36 * 8 * 9 * 2
    left, right = tf.Variable(tf.ones((4, 7))), tf.ones((7, 5))
    assert macs(lambda: tf.einsum("ab,bc->ac", left, right)) == 4 * 7 * 5
