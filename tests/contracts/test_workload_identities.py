import importlib
import pkgutil
import subprocess
import sys

import pytest

import workloads
from harness.study.framework import framework_info
from harness.worker.network.shapes import count
from harness.worker.network.workload import Reading, Training
from workloads.resnet50 import resnet50_network

# Published identities (parameters, forward multiplications per sample), computed with torch.
TABLE = {
    "alexnet": (61_100_840, 714_188_480),
    "alexnet-caffe": (60_965_224, 724_406_816),
    "alexnet-chien": (58_699_238, 1_135_446_016),
    "resnet50": (25_557_032, 4_089_184_256),
    "resnet50-v1": (25_557_032, 3_857_973_248),
    "cosmoflow": (8_907_556, 34_431_049_984),
    "cosmoflow-lee": (9_444_140, 16_510_354_432),
    "neuron-inverter": (2_988_843, 14_166_048),
    "tinycnn": (10_154, 1_917_248),
    "gpt2-124m": (124_439_808, 145_824_153_600),
    "gpt2-124m-erf": (124_439_808, 145_824_153_600),
    "llama-3-2-1b": (1_235_814_400, 14_521_284_427_776),
    "llama-3-1-8b": (8_030_261_248, 79_070_347_919_360),
    "bert-base": (110_106_428, 11_654_831_616),
    "vit-b16": (86_567_656, 17_563_828_224),
    "tinygpt": (136_960, 9_437_184),
    "tinyvit": (114_250, 1_942_400),  # by hand
    "tinyllama": (131_392, 9_437_184),
    "tinybert": (145_154, 3_596_416),  # by hand
}
MODULES = sorted(module.name for module in pkgutil.iter_modules(workloads.__path__))


def workload_of(name):
    return importlib.import_module("workloads." + name.replace("-", "_")).WORKLOAD


def shape_of(name, path):
    return dict(count(workload_of(name).network).shapes)[path]


@pytest.mark.parametrize("name", TABLE)
def test_counts_equal_the_published_ones_to_the_unit(name) -> None:
    counts = count(workload_of(name).network)
    assert (counts.parameters, counts.macs) == TABLE[name]


@pytest.mark.parametrize("name", TABLE)
def test_a_workload_states_the_identity_it_is_counted_to_have(name) -> None:
    workload = workload_of(name)
    assert (workload.parameters, workload.macs) == TABLE[name]


def test_what_networks_but_those_of_texts_are_fed_is_read_alone_too() -> None:
    """The rungs below a training, which is what the framework null has to run."""
    those = [workload_of(module) for module in MODULES]
    fed = {one.content for one in those if isinstance(one, Training) and one.content}
    assert {one.content for one in those if isinstance(one, Reading)} == {
        content for content in fed if not content.endswith("tokens")
    }


def test_what_null_cannot_be_fed_names_the_workloads_that_read() -> None:
    why = framework_info("null").refuses("input", "files")
    assert why is not None
    assert "what only reads (read-tiny-pictures for tinycnn" in why


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_named_after_its_workload(module) -> None:
    assert workload_of(module).name == module.replace("_", "-")


def test_every_training_workload_stands_in_the_table() -> None:
    trained = {workload_of(m).name for m in MODULES if isinstance(workload_of(m), Training)}
    assert trained == set(TABLE)


def test_identities_of_all_workloads_differ() -> None:
    named = {*TABLE} - {"gpt2-124m-erf"}  # another GELU: it counts and is shaped as gpt2-124m
    assert len({count(workload_of(name).network).identity for name in named}) == len(named)


def test_shapes_separate_resnet_versions_that_have_equal_parameters() -> None:
    assert shape_of("resnet50", "stage2_block1/conv1") == (128, 56, 56)
    assert shape_of("resnet50-v1", "stage2_block1/conv1") == (128, 28, 28)


@pytest.mark.parametrize(
    ("name", "path", "shape"),
    [
        ("alexnet", "pool5", (256, 6, 6)),
        ("alexnet-caffe", "pool1", (96, 27, 27)),
        ("alexnet-chien", "conv1", (96, 56, 56)),
        ("alexnet-chien", "pool5", (256, 6, 6)),
        ("resnet50", "pool1", (64, 56, 56)),
        ("resnet50", "pool5", (2048,)),
        ("cosmoflow", "flatten", (512 * 4**3,)),
        ("cosmoflow-lee", "flatten", (256 * 2**3,)),
        ("neuron-inverter", "flatten", (4320,)),
        ("tinycnn", "conv2", (32, 8, 8)),
    ],
)
def test_shapes_stand_where_the_papers_put_them(name, path, shape) -> None:
    assert shape_of(name, path) == shape


def test_activations_of_a_small_network_are_counted_by_hand() -> None:
    # conv1, bn1, relu1; pool1; block of six and its relu; conv2, relu2; pool2; fc
    by_hand = 3 * 16 * 32**2 + 16 * 16**2 + 7 * 16 * 16**2 + 2 * 32 * 8**2 + 32 + 10
    assert count(workload_of("tinycnn").network).activations == by_hand


def test_resnet50_has_fifty_weighted_layers_on_its_main_path() -> None:
    shapes = count(resnet50_network(stride_in_first=False)).shapes
    weighted = [p for p, _ in shapes if p.split("/")[-1].rstrip("123") in ("conv", "fc")]
    assert len(weighted) == 50


def test_workloads_import_nothing_beyond_the_worker_side() -> None:
    code = (
        "import sys, importlib\n"
        "before = set(sys.modules)\n"
        f"for name in {MODULES!r}: importlib.import_module('workloads.' + name)\n"
        "tops = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["harness", "workloads"]
