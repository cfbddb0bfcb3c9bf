"""Derive each layer of a network as a workload, count it exactly, and step one as it is timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from harness import plugins
from harness.errors import UsageError
from harness.worker.feed import Feed
from harness.worker.gate.layer_activity import opened
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.alone import (
    BOTH,
    alone_sites,
    bytes_of,
    layer_alone,
    macs_of,
    name_of,
)
from harness.worker.network.precisions import PRECISIONS
from harness.worker.network.shapes import macs_of_step
from harness.worker.network.workload import Training
from harness.worker.scale import Scale
from workloads.tinycnn import WORKLOAD

NETWORKS = [
    name for name in plugins.workload_names() if isinstance(plugins.workload(name), Training)
]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_layers_of_a_network_multiply_what_its_step_does(name: str) -> None:
    training = plugins.workload(name)
    found = [
        layer_alone(training, name_of(name, one.site.path, BOTH))
        for one in alone_sites(training.network)
        if BOTH in one.passes
    ]
    assert sum(map(macs_of, found)) == macs_of_step(training.network)


def test_the_first_layer_is_asked_for_no_gradient_of_its_input() -> None:
    told = {one.site.path: one.to_input for one in alone_sites(WORKLOAD.network)}
    assert not told["conv1"]
    assert all(asked for path, asked in told.items() if path != "conv1")


def test_the_bytes_of_a_layer_are_what_it_is_given_and_what_it_gives() -> None:
    batch = 4
    one = layer_alone(WORKLOAD, "tinycnn/conv2/forward")
    (site,) = (one for one in alone_sites(WORKLOAD.network) if one.site.path == "conv2")
    weight = one.training.parameters
    entering, leaving = (batch * size for size in (_size(site.site.input), _size(site.site.output)))
    assert bytes_of(one, batch, PRECISIONS["fp32"]) == 4 * (entering + leaving + weight)
    assert bytes_of(one, batch, PRECISIONS["bf16"]) == 2 * (entering + leaving) + 4 * weight
    both = layer_alone(WORKLOAD, "tinycnn/conv2/forward+backward")
    assert bytes_of(one, batch, PRECISIONS["bf16-pure"]) == 2 * (entering + leaving + weight)
    assert bytes_of(both, batch, PRECISIONS["fp32"]) == 4 * 2 * (entering + leaving + weight)


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for one in shape:
        count *= one
    return count


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tinycnn/conv1/forwards", "Did you mean 'tinycnn/conv1/forward'?"),
        ("tinycnn/conv1", "NETWORK/LAYER/PASS"),
        ("tinycnn/block/forward", "NETWORK/LAYER/PASS"),
        ("gemm/conv1/forward", "gemm is no network"),
    ],
)
def test_a_layer_that_there_is_not_is_refused_in_words(name: str, said: str) -> None:
    with pytest.raises(UsageError) as fault:
        plugins.workload(name)
    assert said in str(fault.value)


class Recorded:
    """A subject that notes what it was given, and what it was asked to run."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.state: dict[str, int] = {}
        self.shapes: tuple[tuple[int, ...], ...] = ()
        self.to_input = True

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.state = {name: len(tensor.items()) for name, tensor in state.items()}

    def layer(self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True) -> Recorded:
        self.said.append(path)
        self.shapes, self.to_input = (given.shape, gradient.shape), to_input
        assert all(len(set(one.items())) > 100 for one in (given, gradient))
        return self

    def forward(self) -> None:
        self.said.append("forward")

    def both(self) -> None:
        self.said.append("both")

    def sync(self) -> None:
        self.said.append("sync")

    def made(self) -> Iterator[Made]:
        return iter(())


@pytest.mark.parametrize(("passes", "ran"), [("forward", "forward"), (BOTH, "both")])
def test_a_step_is_the_passes_of_the_layer_that_the_gate_examines(passes: str, ran: str) -> None:
    workload = layer_alone(WORKLOAD, f"tinycnn/block/conv2/{passes}")
    subject, asked = Recorded(), []

    def examine(network: Training, precision: str) -> Recorded:
        asked.append((network.network.layers, precision))
        return subject

    feed = Feed(seed=3, scale=Scale(batch_per_device=5))
    activity = opened(examine, workload, feed)  # type: ignore[arg-type]  # a part of a subject
    activity.step()
    activity.sync()
    ((layers, precision),) = asked
    assert [one.name for one in layers] == ["conv2"]
    assert precision == "timed"
    assert subject.said == ["conv2", ran, "sync"]
    assert sum(subject.state.values()) == workload.training.parameters
    assert all(shape[0] == 5 for shape in subject.shapes)
    assert activity.units == {"images": 5.0}
