"""Hold TensorFlow's lowering to loops, and every workload to its parameters.

Python 3.7 grammar: it runs in TensorFlow 1.15 as well as in 2.x.
"""

import importlib
import tempfile

import numpy

from harness.worker import place
from harness.worker.adapters.tensorflow import adapter, settings
from harness.worker.adapters.tensorflow.lowering.layer_style import Pass
from harness.worker.adapters.tensorflow.lowering.network import Lowering
from harness.worker.job import Job, Span
from harness.worker.network.layers import Dense, Network
from harness.worker.scale import Scale
from tests.adapters.tensorflow import small_networks

WORKLOADS = (
    "alexnet",
    "alexnet_caffe",
    "alexnet_chien",
    "cosmoflow",
    "cosmoflow_lee",
    "neuron_inverter",
    "resnet50",
    "resnet50_v1",
    "tinycnn",
)
FACTORS = {"precision": "fp32", "device": "cpu"}
NAMES = ("examine", "k", "t", "check", "", "tensorflow", "", "tensorflow", "none")
JOB = Job(*NAMES, Scale(), FACTORS, {}, Span(1), Span(1), 3, tempfile.gettempdir())
OPENED = adapter.open(JOB, place.find({}))


def test_two_dimensions_agree_with_loops_in_float64():
    small_networks.hold(OPENED, small_networks.IN_TWO, "float64", 1e-11)


def test_one_dimension_agrees_with_loops_in_float64():
    small_networks.hold(OPENED, small_networks.IN_ONE, "float64", 1e-11)


def test_three_dimensions_agree_with_loops_in_float64():
    small_networks.hold(OPENED, small_networks.IN_THREE, "float64", 1e-11)


def test_averages_agree_with_loops_in_float64():
    small_networks.hold(OPENED, small_networks.AVERAGES, "float64", 1e-11)


def test_two_dimensions_as_timed_agree_with_loops_in_float32():
    small_networks.hold(OPENED, small_networks.IN_TWO, "timed", 1e-4)


def test_one_dimension_as_timed_agrees_with_loops_in_float32():
    small_networks.hold(OPENED, small_networks.IN_ONE, "timed", 1e-4)


def test_three_dimensions_as_timed_agree_with_loops_in_float32():
    small_networks.hold(OPENED, small_networks.IN_THREE, "timed", 1e-4)


def test_averages_as_timed_agree_with_loops_in_float32():
    small_networks.hold(OPENED, small_networks.AVERAGES, "timed", 1e-4)


def test_dropout_drops_its_rate_and_scales_the_rest():
    small_networks.hold_dropout(OPENED)


def test_a_bias_s_gradient_is_not_summed_in_bfloat16():
    import tensorflow.compat.v2 as tf

    if settings.is_first():
        return  # it has no bfloat16 convolutions
    lowering = Lowering(
        Network((8,), (Dense("fc", 4),)), settings.style({"precision": "bf16", "device": "cpu"})
    )
    draw = numpy.random.RandomState(1)
    slope = tf.cast(draw.randn(256, 4), tf.bfloat16)
    bias = tf.Variable(tf.zeros([4]))
    values = {"fc/weight": tf.ones([8, 4]), "fc/bias": bias}

    def run():
        with tf.GradientTape() as tape:
            y = lowering.forward(
                Pass(lowering.style, dict(values), False), tf.zeros([256, 8], tf.bfloat16)
            )
        return tape.gradient(y, bias, output_gradients=slope)

    given = tf.cast(slope, tf.float64).numpy()
    made = settings.jitted(run, compiled=False)().numpy()
    off = abs(made - given.sum(0)).max() / numpy.sqrt((given**2).sum() / 4)
    assert off < 0.01, off


def test_every_workload_is_lowered_with_its_parameters_and_outputs():
    import tensorflow.compat.v2 as tf

    for name in WORKLOADS:
        workload = importlib.import_module("workloads." + name).WORKLOAD
        lowering = Lowering(workload.network, settings.style(FACTORS))
        arrangement = lowering.arrangement

        def forward(lowering=lowering, arrangement=arrangement):
            named = dict(arrangement.parameters, **arrangement.statistics)
            values = {}
            for which, canonical in named.items():
                like = arrangement.parameter_in(which, numpy.broadcast_to(0.0, canonical))
                values[which] = tf.zeros(like.shape)
            now = Pass(lowering.style, values, is_dropping=True)
            return lowering.forward(now, tf.zeros([2, *arrangement.sample()]))

        traced = settings.jitted(forward, compiled=False).get_concrete_function()
        counted = sum(int(numpy.prod(shape)) for shape in arrangement.parameters.values())
        assert counted == workload.parameters, name
        last = list(arrangement.spots.values())[-1]
        assert tuple(traced.outputs[0].shape) == (2, *last.output), name
