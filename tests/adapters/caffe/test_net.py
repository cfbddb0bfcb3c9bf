"""Hold the nets that Caffe reads to the networks they were written from."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness import plugins
from harness.plan.rules import network_rules
from harness.study.framework import framework_info
from harness.worker import place
from harness.worker.adapters.caffe import blobs, prototxt
from harness.worker.adapters.caffe.blobs import convolved, pooled
from harness.worker.adapters.caffe.engines import Engines
from harness.worker.adapters.caffe.solver import solver
from harness.worker.adapters.caffe.training_net import lower
from harness.worker.contracts import Unsupported
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    MaxPool,
    Network,
    ReLU,
    Residual,
)
from harness.worker.network.rule import ImpossibleNetwork
from harness.worker.network.shapes import sites
from harness.worker.network.workload import SGD, Adam, DataSet, Training
from tests.adapters.tinygrad import every_layer
from tests.scales import fed

ALONE = place.find({})
BVLC = Engines("bvlc", None)
POSSIBLE = ("tinycnn", "alexnet", "alexnet_caffe", "alexnet_chien", "resnet50", "neuron_inverter")


def workload(name: str) -> Training:
    found: Training = importlib.import_module("workloads." + name).WORKLOAD
    return found


def training(shape: tuple[int, ...], *layers: Layer) -> Training:
    rule = SGD(rate=0.1)
    data = DataSet("x", 1)
    return Training("x", "X", "images", Network(shape, layers), "cross-entropy", rule, data, 0, 0)


def net(made: Training, batch: int = 2, engines: Engines = BVLC) -> prototxt.Message:
    message, _ = lower(made, fed(made, {"batch": batch}, ALONE), engines)
    return prototxt.read(prototxt.write(message))


def possible(shape: tuple[int, ...], *layers: Layer) -> Training:
    """Give a network, or try another example where there can be none."""
    made = training(shape, *layers)
    try:
        sites(made.network)
    except ImpossibleNetwork:
        assume(False)
    return made


def layer(message: prototxt.Message, name: str) -> prototxt.Message:
    return next(
        one for one in prototxt.every(message, "layer") if prototxt.one(one, "name") == name
    )


@pytest.mark.parametrize("name", POSSIBLE)
def test_the_prototxt_learns_the_published_number_of_parameters(name: str) -> None:
    assert blobs.infer(net(workload(name))).learned == workload(name).parameters


@pytest.mark.parametrize(
    "made", [*map(workload, POSSIBLE), every_layer.WORKLOAD], ids=lambda one: one.name
)
def test_every_layer_comes_out_in_the_described_shape(made: Training) -> None:
    message, tops = lower(made, fed(made, {"batch": 2}, ALONE), BVLC)
    inferred = {layer: shape for (layer, _), shape in blobs.infer(message).tops.items()}
    for site in sites(made.network):
        is_line = len(made.network.input) == 2 and len(site.output) == 2
        expected = (site.output[0], 1, site.output[1]) if is_line else site.output
        assert inferred[tops[site.path]] == (2, *expected), site.path


@pytest.mark.parametrize("name", ["cosmoflow", "cosmoflow_lee"])
def test_volumes_are_an_honest_hole(name: str) -> None:
    with pytest.raises(Unsupported, match="Caffe pools pictures only"):
        net(workload(name))


@pytest.mark.parametrize(
    ("engine", "of_net", "of_sum"),
    [
        (None, None, "CAFFE"),
        ("MKLDNN", "MKLDNN", "CAFFE"),
        ("MKL2017", "MKL2017", None),
        ("CAFFE", "CAFFE", None),
    ],
)
def test_intel_s_sums_are_caffe_s_own_where_mkl_dnn_s_may_train_wrongly(
    engine: str | None, of_net: str | None, of_sum: str | None
) -> None:
    message = net(workload("tinycnn"), engines=Engines("intel", engine))
    assert prototxt.one(message, "engine") == of_net
    named = {
        prototxt.one(one, "name"): prototxt.one(one, "engine")
        for one in prototxt.every(message, "layer")
    }
    assert {name for name, own in named.items() if own} == ({"block"} if of_sum else set())
    assert named["block"] == of_sum


def test_an_engine_that_was_asked_for_is_the_one_used_where_the_log_names_none() -> None:
    assert Engines("intel", "MKLDNN").used(None, "cpu") == "MKLDNN"
    assert Engines("intel", "MKLDNN").used("CAFFE", "cpu") == "CAFFE"
    assert Engines("intel", None).used(None, "cpu") is None


@pytest.mark.parametrize("name", sorted(plugins.workload_names()))
def test_a_plan_knows_which_networks_have_no_net(name: str) -> None:
    made = plugins.workload(name)
    if not isinstance(made, Training):
        return
    factors = {"device": "cpu", "compile": False}
    why = network_rules.why_not(made, framework_info("caffe"), factors)
    try:
        net(made)
    except Unsupported:
        assert why is not None
    else:
        assert why is None


def test_the_net_of_tinycnn_is_the_accepted_one(golden: Callable[[str, str], None]) -> None:
    golden("caffe/tinycnn.prototxt", prototxt.write(net(workload("tinycnn"), batch=32)))


KERNELS = st.integers(1, 5)


@settings(deadline=None)
@given(st.integers(4, 20), KERNELS, st.integers(1, 4), st.integers(0, 4), st.integers(0, 4))
def test_a_convolution_of_uneven_pads_keeps_exactly_the_windows_it_should(
    size: int, kernel: int, stride: int, before: int, after: int
) -> None:
    conv = Conv("c", 1, kernel, stride, (before, after))
    made = possible((1, size, size), conv, Flatten("f"))
    message = net(made)
    wanted = sites(made.network)[0].output[1]
    own = prototxt.one(layer(message, "c"), "convolution_param")
    pad = prototxt.one(own, "pad")
    crop = [one for one in prototxt.every(message, "layer") if prototxt.one(one, "type") == "Crop"]
    offset = prototxt.one(prototxt.one(crop[0], "crop_param"), "offset") if crop else 0
    kept = [(offset + i) * stride - pad for i in range(wanted)]
    assert kept == [i * stride - before for i in range(wanted)]
    assert offset + wanted <= convolved(size, kernel, stride, pad)
    assert kept[-1] + kernel <= size + pad


@settings(deadline=None)
@given(
    st.integers(4, 20),
    KERNELS,
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
)
def test_a_pool_keeps_the_first_windows_or_says_that_it_cannot(
    size: int, kernel: int, stride: int, before: int, after: int, ceil: bool
) -> None:
    assume(max(before, after) < kernel)
    pool = MaxPool("p", kernel, stride, (before, after), ceil)
    made = possible((1, size, size), pool, Flatten("f"))
    wanted = sites(made.network)[0].output[1]
    has_enough = pooled(size, kernel, stride, before) >= wanted
    if not has_enough:
        with pytest.raises(Unsupported, match="pads pools on both sides alike"):
            net(made)
        return
    inferred = blobs.infer(net(made)).tops
    assert inferred["f", "f"] == (2, wanted * wanted)


@settings(deadline=None)
@given(st.integers(4, 40), KERNELS, st.integers(1, 4), st.integers(0, 4))
def test_even_pads_are_never_a_hole(size: int, kernel: int, stride: int, pad: int) -> None:
    assume(pad < kernel)
    net(possible((1, size, size), MaxPool("p", kernel, stride, (pad, pad)), Flatten("f")))


def test_nothing_overwrites_what_another_branch_reads() -> None:
    body = (ReLU("r"), Conv("c", 3, 1), BatchNorm("n"), ReLU("s"))
    made = training((3, 4, 4), Conv("a", 3, 1), Residual("b", body), ReLU("e"), Flatten("f"))
    message = net(made)
    written: dict[str, str] = {}
    for one in prototxt.every(message, "layer"):
        for top in prototxt.every(one, "top"):
            written.setdefault(top, prototxt.one(one, "name"))
    first = layer(message, "b/r")
    assert prototxt.one(first, "top") != prototxt.one(first, "bottom")
    assert prototxt.every(layer(message, "b"), "bottom")[1] == "a"
    assert prototxt.one(layer(message, "b/s"), "top") == "b/c"
    assert prototxt.one(layer(message, "e"), "top") == "b"


def test_a_layer_whose_values_backward_needs_is_not_overwritten() -> None:
    made = training((4, 4, 4), LRN("l", 3, 0.1, 0.75, 1.0), ReLU("r"), Flatten("f"), ReLU("s"))
    message = net(made)
    assert prototxt.one(layer(message, "r"), "top") == "r"
    assert prototxt.one(layer(message, "s"), "top") == "s"


def test_conventions_are_translated() -> None:
    message = net(every_layer.WORKLOAD)
    lrn = prototxt.one(layer(message, "lrn"), "lrn_param")
    assert prototxt.one(lrn, "alpha") == pytest.approx(3 * 0.02)  # Caffe divides by the size
    norm = layer(message, "norm")
    own = prototxt.one(norm, "batch_norm_param")
    assert prototxt.one(own, "moving_average_fraction") == pytest.approx(0.7)
    assert [prototxt.one(param, "lr_mult") for param in prototxt.every(norm, "param")] == [0] * 3
    loss = layer(message, "loss")
    assert prototxt.one(loss, "type") == "EuclideanLoss"
    assert prototxt.one(loss, "loss_weight") == pytest.approx(2 / 3)


def test_weights_decay_and_nothing_else() -> None:
    message = net(workload("tinycnn"))
    for one in prototxt.every(message, "layer"):
        decays = [prototxt.one(param, "decay_mult") for param in prototxt.every(one, "param")]
        if prototxt.one(one, "type") in ("Convolution", "InnerProduct"):
            assert decays == [1, 0]
        else:
            assert not any(decays)


def test_a_dropout_that_drops_nothing_is_left_out() -> None:
    message = net(training((4,), Dropout("d", 0.0), Dense("x", 2)))
    assert [prototxt.one(one, "name") for one in prototxt.every(message, "layer")] == [
        "input",
        "x",
        "loss",
    ]


def test_class_numbers_stay_below_their_count() -> None:
    made = prototxt.one(layer(net(workload("alexnet")), "input"), "dummy_data_param")
    images, labels = prototxt.every(made, "data_filler")
    assert prototxt.one(images, "type") == "gaussian"
    assert 999 < prototxt.one(labels, "max") < 1000


@pytest.mark.parametrize(
    "rule", [SGD(0.1, 0.9, 1e-4, rate_batch=256), Adam(1e-3)], ids=["sgd", "adam"]
)
def test_a_solver_states_its_rule_and_saves_nothing(rule: SGD | Adam) -> None:
    made = Training("x", "X", "i", Network((4,), ()), "cross-entropy", rule, DataSet("x", 1), 0, 0)
    written = solver(made, net="n", batch_per_step=64, display=3, device="cpu", seed=7)
    said = dict(prototxt.read(prototxt.write(written)))
    assert said["snapshot_after_train"] is False
    assert said["display"] == 3
    assert said["base_lr"] == pytest.approx(0.025 if isinstance(rule, SGD) else 1e-3)
    momenta = (0.9, None) if isinstance(rule, SGD) else (0.9, 0.999)
    assert (said["momentum"], said.get("momentum2")) == momenta


def test_an_average_pool_that_rounds_down_is_cut() -> None:
    message = net(training((2, 5, 5), AveragePool("p", 2, 2), Flatten("f")))
    assert prototxt.one(layer(message, "p/crop"), "type") == "Crop"


@settings(deadline=None)
@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_texts_survive_writing_and_reading(text: str) -> None:
    message: prototxt.Message = [("a", text), ("b", [("c", 1.5e-7), ("d", prototxt.Word("MAX"))])]
    assert prototxt.read(prototxt.write(message)) == message
