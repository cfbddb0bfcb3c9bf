"""The examination's order of events, on a subject that only writes them down."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.worker.contracts import Unsupported
from harness.worker.gate import tensors
from harness.worker.gate.subject import Made, examine, resized
from harness.worker.gate.tensors import Tensor
from workloads.tinycnn import WORKLOAD


class ScribeLayer:
    """A layer that has computed its output once both passes were asked for."""

    def __init__(self, output: float) -> None:
        self._output = output
        self._made: list[Made] = []

    def forward(self) -> None:
        raise AssertionError("the gate takes both passes")

    def both(self) -> None:
        self._made = [made("output", self._output)]

    def sync(self) -> None:
        pass

    def made(self) -> Iterator[Made]:
        return iter(self._made)


class Scribe:
    """A network of one weight and one running mean; every update adds 1."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.weight = 0.0

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.weight = state["c/weight"].items()[0]
        self.done.append(f"load {self.weight:g}")

    def reset(self) -> None:
        self.done.append("reset")

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        self.done.append("gradients")
        yield made("output", given.items()[0] + target.items()[0])

    def update(self, given: Tensor, target: Tensor) -> None:
        self.done.append("update")
        self.weight += 1

    def state(self) -> Iterator[Made]:
        yield made("c/weight", self.weight)
        yield made("n/mean", 9.0)

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> ScribeLayer:
        self.done.append(f"layer {path}")
        return ScribeLayer(given.items()[0] * gradient.items()[0])

    def facts(self) -> Mapping[str, Any]:
        return {"scribe": True}


class Adapter:
    def __init__(self) -> None:
        self.subject = Scribe()
        self.asked: list[Any] = []

    def examine(self, workload: Any, precision: str) -> Scribe:
        self.asked.append((workload.network.input, precision))
        return self.subject


def made(name: str, value: float) -> Made:
    return name, (1,), array("d", [value])


def run(tmp_path: Path, request: dict[str, Any], more: dict[str, float]) -> tuple[Adapter, Any]:
    writer = tensors.Writer(str(tmp_path / "given"))
    for name, value in {"input": 2.0, "initial/c/weight": 10.0, **more}.items():
        writer.put(name, (1,), array("d", [value]))
    writer.put("target", (1,), array("q", [3]), "int64")
    writer.close({"precision": "float64", **request})
    adapter = Adapter()
    examine(adapter, WORKLOAD, str(tmp_path / "given"), str(tmp_path / "made"))
    folder = tensors.read(str(tmp_path / "made"))
    return adapter, {name: tensor.items()[0] for name, tensor in folder.tensors.items()}


def test_gradients_come_with_the_statistics_after_one_pass(tmp_path: Path) -> None:
    adapter, made = run(tmp_path, {"gradients": True, "input": [3, 8, 8]}, {})
    assert adapter.asked == [((3, 8, 8), "float64")]
    assert made == {"output": 5.0, "statistic/n/mean": 9.0}


def test_restarts_set_the_weights_and_keep_the_optimiser(tmp_path: Path) -> None:
    restarts = {"restart/3/c/weight": 20.0, "restart/4/c/weight": 30.0}
    adapter, made = run(tmp_path, {"updates": 4}, restarts)
    alone = ["load 10", "reset", "update", "update"]
    again = ["load 20", "update", "load 30", "update"]
    assert adapter.subject.done == ["load 10", *alone, *again]
    assert [made[f"after/{t}/c/weight"] for t in (1, 2, 3, 4)] == [11, 12, 21, 31]


def test_layers_are_examined_by_path(tmp_path: Path) -> None:
    given = {"layer/b/c/input": 4.0, "layer/b/c/gradient": 5.0}
    _, made = run(tmp_path, {"layers": True}, given)
    assert made == {"layer/b/c/output": 20.0}


def test_an_adapter_without_the_door_is_unsupported(tmp_path: Path) -> None:
    tensors.Writer(str(tmp_path / "given")).close({"precision": "float64"})
    with pytest.raises(Unsupported):
        examine(object(), WORKLOAD, str(tmp_path / "given"), str(tmp_path / "made"))


def test_a_reduced_sample_keeps_everything_but_the_shape() -> None:
    assert resized(WORKLOAD, None) is WORKLOAD
    small = resized(WORKLOAD, [3, 8, 8])
    assert small.network.input == (3, 8, 8)
    assert small.network.layers == WORKLOAD.network.layers
