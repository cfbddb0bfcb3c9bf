"""What surrounds the layers: workloads, starting weights, optimisers, precision."""

import importlib
import math

import torch
from torch import nn

from harness.worker import place
from harness.worker.adapters.torch import failures, settings
from harness.worker.adapters.torch.activity import MarkedActivity, TrainingActivity, draw
from harness.worker.adapters.torch.lowering.network import Lowered
from harness.worker.adapters.torch.training import Trainer, decay_groups
from harness.worker.contracts import OutOfMemory, Unsupported
from harness.worker.network.layers import BatchNorm, Conv, Dense, Flatten, Network, ReLU
from harness.worker.network.shapes import output_shapes
from harness.worker.network.workload import SGD, Adam, DataSet, Training
from tests.scales import fed

SMALL = {
    "alexnet": (3, 64, 64),
    "alexnet_caffe": (3, 67, 67),
    "alexnet_chien": (3, 64, 64),
    "resnet50": (3, 32, 32),
    "resnet50_v1": (3, 32, 32),
    "cosmoflow": (4, 32, 32, 32),
    "cosmoflow_lee": (12, 64, 64, 64),
    "neuron_inverter": (4, 1600),
    "tinycnn": (3, 32, 32),
}
ALONE = place.find({})


def refusal(make, *given, **named):
    """Give what a call raises."""
    try:
        make(*given, **named)
    except (RuntimeError, Unsupported) as error:
        return error
    raise AssertionError((given, named))


def workload(name):
    return importlib.import_module("workloads." + name).WORKLOAD


def tiny(optimiser=None):
    layers = (Conv("c", 4, 3), BatchNorm("n"), ReLU("r"), Flatten("f"), Dense("d", 3))
    chosen = optimiser or SGD(rate=0.1, weight_decay=0.5)
    network = Network((2, 5, 5), layers)
    return Training("x", "x", "images", network, "cross-entropy", chosen, DataSet("x", 1), 0, 0)


def trainer(training=None, seed=1, **factors):
    made = Trainer(training or tiny(), settings.apply(factors, {}, ALONE), seed)
    made.start_optimiser(4)
    return made


def batch(model, size=4):
    described = fed(tiny(), {"batch": size}, ALONE)
    return draw(described, model)


def test_every_workload_learns_the_published_number_of_parameters():
    for name in SMALL:
        own = workload(name)
        count = sum(parameter.numel() for parameter in Lowered(own.network).parameters())
        assert count == own.parameters, name


def test_every_layer_of_every_workload_gives_the_described_shape():
    for name, shape in SMALL.items():
        network = Network(shape, workload(name).network.layers)
        model, seen = Lowered(network), {}
        for path, module in model.at.items():
            module.register_forward_hook(
                lambda _, __, output, path=path, seen=seen: seen.update({path: output.shape[1:]})
            )
        with torch.no_grad():
            model(torch.randn(2, *shape))
        assert {path: tuple(seen[path]) for path in seen} == dict(output_shapes(network)), name


def test_weights_start_as_the_workloads_say():
    layers = (Conv("c", 64, 3, groups=2), BatchNorm("n"), Flatten("f"), Dense("d", 500))
    training = tiny()
    network = Network((32, 5, 5), layers)
    made = trainer(type(training)(**{**vars(training), "network": network})).network.at
    assert abs(float(made["c"].weight.detach().std()) / math.sqrt(2 / (64 * 9)) - 1) < 0.03
    assert abs(float(made["d"].weight.detach().std()) / 0.01 - 1) < 0.03
    assert not made["c"].bias.any()
    assert not made["d"].bias.any()
    assert made["n"].weight.eq(1).all()
    assert made["n"].running_var.eq(1).all()
    assert not made["n"].running_mean.any()


def test_a_seed_means_the_same_weights_in_every_layout():
    one, two = trainer(layout="channels-first"), trainer(layout="channels-last")
    for first, last in zip(one.network.parameters(), two.network.parameters(), strict=True):
        assert torch.equal(first, last)
    assert not torch.equal(one.network.at["c"].weight, trainer(seed=2).network.at["c"].weight)


def test_weight_decay_touches_weights_of_convolutions_and_dense_layers_only():
    model = Lowered(tiny().network)
    decayed, others = decay_groups(model, 0.5)
    assert {id(p) for p in decayed["params"]} == {
        id(model.at["c"].weight),
        id(model.at["d"].weight),
    }
    assert len(others["params"]) == 4
    assert "weight_decay" not in others


def test_sgd_is_heavy_ball_as_torch_writes_it():
    made = trainer(tiny(SGD(rate=0.1, momentum=0.5, weight_decay=0.2, rate_batch=8)))
    rate, x = 0.1 * 4 / 8, batch(made)
    weight, velocity = made.network.at["c"].weight, 0
    for _ in range(3):
        before = weight.detach().clone()
        made.step(*x)
        velocity = 0.5 * velocity + weight.grad + 0.2 * before
        torch.testing.assert_close(weight.detach(), before - rate * velocity)


def test_adam_corrects_its_bias():
    made = trainer(tiny(Adam(rate=0.01, beta1=0.8, beta2=0.9, epsilon=1e-3)))
    x, weight, m, v = batch(made), made.network.at["d"].weight, 0, 0
    for number in range(1, 4):
        before = weight.detach().clone()
        made.step(*x)
        m = 0.8 * m + 0.2 * weight.grad
        v = 0.9 * v + 0.1 * weight.grad**2
        step = (m / (1 - 0.8**number)) / ((v / (1 - 0.9**number)).sqrt() + 1e-3)
        torch.testing.assert_close(weight.detach(), before - 0.01 * step)


def test_channels_last_reaches_the_activations():
    for name, spatial in (("tinycnn", 2), ("cosmoflow", 3)):
        own = workload(name)
        network = Network(SMALL[name], own.network.layers)
        made = trainer(type(own)(**{**vars(own), "network": network}))
        layout = settings.LAYOUTS[spatial]
        seen = {}
        made.network.at["conv2"].register_forward_hook(
            lambda _, __, output, seen=seen: seen.update(output=output)
        )
        made.network(made.place(torch.randn(2, *SMALL[name])))
        assert seen["output"].is_contiguous(memory_format=layout)
        assert not seen["output"].is_contiguous()


def test_one_dimension_has_no_channels_last():
    made = workload("neuron_inverter")
    assert trainer(made).format is None
    reason = refusal(trainer, made, layout="channels-last")
    assert "no channels-last form for 1 spatial" in str(reason)


def test_bfloat16_convolves_in_bfloat16_and_keeps_weights_in_fp32():
    made = trainer(precision="bf16")
    seen = {}
    made.network.at["c"].register_forward_hook(lambda _, __, y: seen.update(output=y))
    made.step(*batch(made))
    assert seen["output"].dtype == torch.bfloat16
    assert made.network.at["c"].weight.grad.dtype == torch.float32


def test_precisions_and_devices_this_machine_lacks_are_refused_with_the_reason():
    for precision in ("tf32", "fp16"):
        assert "GPU" in str(refusal(settings.apply, {"precision": precision}, {}, ALONE))
    if not torch.cuda.is_available():
        assert "CUDA" in str(refusal(settings.apply, {"device": "gpu"}, {}, ALONE))


def test_factors_become_switches_and_facts_read_them_back():
    was = torch.get_num_threads()
    settings.apply({"threads": 1, "deterministic": True, "onednn": False}, {}, ALONE)
    try:
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.mkldnn.enabled
        assert not torch.backends.cudnn.benchmark
    finally:
        settings.apply({"threads": was, "deterministic": False, "onednn": True}, {}, ALONE)
    assert torch.backends.mkldnn.enabled


def test_marks_on_the_device_are_allocated_before_the_first_step():
    made, recorded = [], []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing
            made.append(self)

        def record(self):
            recorded.append(self)

        def elapsed_time(self, end):
            return 5.0

    real, torch.cuda.Event = torch.cuda.Event, Event
    try:
        description = fed(tiny(), {"batch": 4}, ALONE)
        activity = MarkedActivity(trainer(), description, "images")
        before = len(made)
        assert set(recorded) == set(made)
        activity.step()
        activity.step()
        assert len(made) == before
        assert activity.device_steps() == [0.005, 0.005]
    finally:
        torch.cuda.Event = real


def test_a_batch_is_seeded_and_has_the_described_targets():
    made = trainer()
    one, again = batch(made), batch(made)
    assert torch.equal(one[0], again[0])
    assert one[1].dtype == torch.int64
    assert int(one[1].max()) < 3
    activity = TrainingActivity(made, fed(tiny(), {"batch": 4}, ALONE), "images")
    assert activity.units == {"images": 4}
    assert activity.values() == {}


def test_memory_that_cannot_be_had_is_told_as_such():
    error = refusal(nn.Linear, 1 << 30, 1 << 30, device="cpu")
    assert isinstance(failures.read(error), OutOfMemory)
