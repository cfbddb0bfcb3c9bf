"""Hold JAX's lowering to loops in both layouts, and every workload to its parameters."""

import importlib

import jax
import numpy

from harness.worker import place
from harness.worker.adapters.jax import adapter, settings, strategies
from harness.worker.adapters.jax.lowering.network import Lowered, Pass
from harness.worker.adapters.jax.state import blank
from harness.worker.job import Job, Span
from harness.worker.network.layers import Conv, Flatten, Network
from harness.worker.network.rule import SequenceShape
from harness.worker.network.sequence_layers import Attention
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
STRIDED = Network((4, 5, 7), (Conv("conv1", 6, 1, stride=2), Flatten("flat")))
NETWORKS = (
    small_networks.IN_ONE,
    small_networks.IN_TWO,
    small_networks.IN_THREE,
    small_networks.AVERAGES,
)


def opened(precision, layout="channels-last"):
    factors = {"precision": precision, "layout": layout}
    here, span = place.find({}), Span(steps=1)
    names = ("examine", "cell", "trial-1", "any", "", "jax", "", "jax", "none")
    job = Job(*names, Scale(), factors, {}, warmup=span, until=span, seed=3, directory="")
    return adapter.JaxAdapter(settings.apply(factors, here), job.seed, strategies.Strategy())


def test_every_layer_agrees_with_loops_in_float64_channels_last():
    for network in NETWORKS:
        small_networks.hold(opened("float64"), network, "float64", 1e-11)


def test_every_layer_agrees_with_loops_in_float64_channels_first():
    for network in NETWORKS:
        small_networks.hold(opened("float64", "channels-first"), network, "float64", 1e-11)


def test_every_layer_as_timed_agrees_with_loops_in_float32():
    for network in NETWORKS:
        small_networks.hold(opened("fp32"), network, "timed", 1e-4)


def test_the_ways_to_convolve_on_a_cpu_equal_xla_s_own():
    opened("float64")
    for network, layouts in ((small_networks.IN_THREE, (True, False)), (STRIDED, (True,))):
        state, x, _ = small_networks.drawn(network)
        for channels_last in layouts:
            outputs = []
            for is_cpu in (True, False):
                net = Lowered(network, channels_last, is_cpu)
                given = {n: net.weight_in(n, jax.numpy.asarray(a)) for n, a in state.items()}
                one = Pass(given, given, None, {}, None)
                outputs.append(net.run(net.activation_in(jax.numpy.asarray(x)), one))
            small_networks.near(outputs[0], outputs[1], 1e-12, "output")


def test_a_bias_gradient_in_bf16_is_summed_in_the_bias_own_type():
    opened("bf16")
    net = Lowered(Network((2, 24, 24), (Conv("conv", 4, 1),)), True, True)
    draw = numpy.random.RandomState(0)
    weight = jax.numpy.zeros((1, 1, 2, 4), jax.numpy.float32)
    x = jax.numpy.asarray(draw.randn(4, 24, 24, 2), jax.numpy.bfloat16)
    slope = jax.numpy.asarray(draw.randn(4, 24, 24, 4), jax.numpy.bfloat16)

    def forward(bias):
        given = {"conv/weight": weight, "conv/bias": bias}
        return net.run(x, Pass(given, {}, None, {}, None))

    found = jax.jit(lambda bias: jax.vjp(forward, bias)[1](slope)[0])(jax.numpy.zeros(4))
    expected = numpy.asarray(slope, "float64").sum((0, 1, 2))
    small_networks.near(found, expected, 1e-5, "gradient of the bias")


def test_dropout_drops_its_rate_and_scales_the_rest():
    small_networks.hold_dropout(opened("fp32"))


def test_every_workload_is_lowered_with_its_parameters_and_outputs():
    opened("fp32")
    for name in WORKLOADS:
        workload = importlib.import_module("workloads." + name).WORKLOAD
        net = Lowered(workload.network, True, True)

        def forward(net=net, workload=workload):
            state = blank(net, workload, "fp32")
            x = net.activation_in(jax.numpy.zeros((2, *workload.network.input)))
            run = Pass(state.parameters, state.statistics, state.key, {}, None)
            return state.parameters, net.run(x, run)

        parameters, output = jax.eval_shape(forward)
        assert sum(one.size for one in parameters.values()) == workload.parameters, name
        last = list(net.sites.values())[-1]
        assert output.shape == (2, *last.output), name


def test_every_rank_starts_from_the_same_weights_but_its_own_batch():
    from harness.worker.place import Place
    from tests.scales import fed

    workload = importlib.import_module("tests.adapters.singa.line").WORKLOAD
    starts = []
    for rank in (0, 1):
        where = Place(rank, 2, rank, 2, "here", "none")
        described = fed(workload, {"batch": 2}, where)
        starts.append(opened("fp32").activity(workload, described, {}))
    names = starts[0].trained.parameters
    for name in names:
        assert (starts[0].trained.parameters[name] == starts[1].trained.parameters[name]).all()
    assert (starts[0]._given.input != starts[1]._given.input).any()


def attended(form, dtype, head=8, is_cpu=False):
    """Give what attention makes of numbers, and how its own library was asked for it.

    No GPU is needed: what cuDNN is asked for, XLA computes.
    """
    layer = Attention("a", heads=4, kv_heads=2, head=head, causal=True, form=form)
    net = Lowered(Network(SequenceShape(6, 8 * head), (layer,)), True, is_cpu)
    x = numpy.random.default_rng(5).normal(size=(2, 6, 8 * head))
    asked = []
    right = jax.nn.dot_product_attention

    def watched(*given, implementation, **how):
        asked.append(implementation)
        return right(*given, implementation="xla", **how)

    jax.nn.dot_product_attention = watched
    try:
        y = net.run(jax.numpy.asarray(x, dtype), Pass({}, {}, None, {}, None))
    finally:
        jax.nn.dot_product_attention = right
    return numpy.asarray(y, numpy.float64), asked


def test_fused_attention_is_cudnn_s_where_it_takes_the_numbers_and_the_same():
    for dtype in (jax.numpy.bfloat16, jax.numpy.float16):
        fused, asked = attended("fused", dtype)
        plain, nothing = attended("plain", dtype)
        assert (asked, nothing) == (["cudnn"], [])
        assert fused.shape == plain.shape == (2, 6, 32)
        assert numpy.abs(fused - plain).max() < 2.0**-6


def test_what_cudnn_does_not_take_is_written_out():
    narrow = jax.numpy.bfloat16
    for form, dtype, head, is_cpu in (
        ("fused", jax.numpy.float32, 8, False),
        ("fused", narrow, 6, False),
        ("fused", narrow, 136, False),
        ("fused", narrow, 8, True),
        (None, narrow, 8, False),
    ):
        assert attended(form, dtype, head, is_cpu)[1] == []
