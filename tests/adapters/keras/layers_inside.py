"""Hold Keras' layers to loops, and every workload to its parameters."""

import importlib
import tempfile

from harness.worker import place
from harness.worker.adapters.keras import adapter
from harness.worker.adapters.keras.lowering import KerasLowering
from harness.worker.job import Job, Span
from harness.worker.scale import Scale
from tests.adapters.tensorflow import small_networks

WORKLOADS = ("alexnet_caffe", "cosmoflow_lee", "neuron_inverter", "resnet50", "tinycnn")
FACTORS = {"precision": "fp32", "device": "cpu"}
NAMES = ("examine", "k", "t", "check", "", "keras", "", "keras", "none")
JOB = Job(*NAMES, Scale(), FACTORS, {}, Span(1), Span(1), 3, tempfile.gettempdir())
OPENED = adapter.open(JOB, place.find({}))


def hold(network, precision, tolerance):
    small_networks.hold(OPENED, network, precision, tolerance, is_bessel_corrected=False)


# In this order: an examination in float64 makes that Keras' type for the rest of the process.


def test_every_workload_is_built_with_its_parameters():
    for name in WORKLOADS:
        workload = importlib.import_module("workloads." + name).WORKLOAD
        model = KerasLowering(workload.network, is_dropping=True).model
        counted = sum(
            int(variable.value.shape.num_elements()) for variable in model.trainable_weights
        )
        assert counted == workload.parameters, name


def test_dropout_drops_its_rate_and_scales_the_rest():
    small_networks.hold_dropout(OPENED)


def test_two_dimensions_as_timed_agree_with_loops_in_float32():
    hold(small_networks.IN_TWO, "timed", 1e-4)


def test_one_dimension_as_timed_agrees_with_loops_in_float32():
    hold(small_networks.IN_ONE, "timed", 1e-4)


def test_three_dimensions_as_timed_agree_with_loops_in_float32():
    hold(small_networks.IN_THREE, "timed", 1e-4)


def test_two_dimensions_agree_with_loops_in_float64():
    hold(small_networks.IN_TWO, "float64", 1e-11)


def test_one_dimension_agrees_with_loops_in_float64():
    hold(small_networks.IN_ONE, "float64", 1e-11)


def test_three_dimensions_agree_with_loops_in_float64():
    hold(small_networks.IN_THREE, "float64", 1e-11)


def test_averages_agree_with_loops_in_float64():
    hold(small_networks.AVERAGES, "float64", 1e-11)
