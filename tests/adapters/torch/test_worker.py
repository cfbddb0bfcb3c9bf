"""Run the torch adapter through the worker: training, compiling, examining, probing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.exact.passes import Pass
from harness.exact.training import loss
from harness.worker.gate import tensors
from harness.worker.gate.subject import resized
from harness.worker.network import shapes
from harness.worker.network.layers import BatchNorm
from tests.adapters.interpreter import forked, losses, told, work
from tests.forked_workers import Workers
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework

SMALL = (3, 8, 8)
BATCH = 4
UPDATES = 5
Arrays = dict[str, np.ndarray[Any, Any]]


@pytest.mark.parametrize(
    "factors",
    [{}, {"precision": "bf16"}, {"layout": "channels-first", "threads": 1}],
    ids=["fp32", "bf16", "channels-first"],
)
def test_tinycnn_trains_and_its_loss_falls(tmp_path: Path, factors: dict[str, Any]) -> None:
    events = work("torch", tmp_path, factors={"batch": 8, **factors})
    assert told(events, "finished")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert told(events, "units")["units"] == {"images": 8}
    assert losses(events)[-1] < losses(events)[0] / 2
    facts = told(events, "facts")["facts"]
    assert (facts["device"], facts["compiler"]) == ("cpu", None)
    assert facts["optimiser"] == "SGD, fused"
    assert facts["multiplications"]["counted"] == facts["multiplications"]["asked"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["none", "ddp"])
def test_a_compiled_step_trains_in_one_graph_and_says_what_compiling_took(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "0")  # any: nobody else comes to the meeting
    events = work("torch", tmp_path, strategy=strategy, factors={"batch": 8, "compile": True})
    assert losses(events)[-1] < losses(events)[0] / 2
    facts = told(events, "facts")["facts"]
    assert (facts["compiled_graphs"], facts["graph_breaks"]) == (1, 0)
    assert facts["compile_s"] > 0
    assert facts["multiplications"]["counted"] == facts["multiplications"]["asked"] > 0


def test_what_the_machine_cannot_do_is_an_honest_hole(tmp_path: Path) -> None:
    failed = told(work("torch", tmp_path, factors={"precision": "tf32"}), "failed")
    assert (failed["kind"], failed["message"]) == (
        "unsupported",
        "TF32 exists on NVIDIA GPUs only",
    )


def test_a_probe_says_which_kernels_types_and_layouts_ran(tmp_path: Path) -> None:
    events = work("torch", tmp_path, purpose="probe", factors={"batch": 8, "precision": "fp32"})
    facts = told(events, "facts")["facts"]
    assert any("aten::_fused_sgd_" in name for name in facts["operations"])
    assert facts["onednn_isa"]
    assert any(name.startswith("convolution") for name in facts["onednn_primitives"])
    assert facts["onednn_layouts"]["acdb"] >= 11
    assert facts["layout"] == "channels-last"
    assert set(facts["computed"]) == {"float32"}
    assert facts["busy_threads"] >= 1


def write_given(folder: Path, request: dict[str, Any], made: Arrays) -> None:
    writer = tensors.Writer(str(folder))
    for name, array in made.items():
        kind = "int64" if array.dtype == np.int64 else "float64"
        writer.put(name, array.shape, np.ascontiguousarray(array), kind)
    writer.close({"input": list(SMALL), **request})


def read_made(folder: Path) -> Arrays:
    made = tensors.read(str(folder)).tensors
    return {
        name: np.fromfile(tensor.path, "<f8").reshape(tensor.shape) for name, tensor in made.items()
    }


def initial_state() -> Arrays:
    draw = np.random.default_rng(3)
    state = {}
    for site in shapes.sites(WORKLOAD.network, SMALL):
        for name, shape in shapes.parameter_shapes(site):
            state["initial/" + name] = draw.normal(0, 0.2, shape)
        if isinstance(site.layer, BatchNorm):
            for kind in ("mean", "variance"):
                state[f"initial/{site.path}/{kind}"] = draw.uniform(0.5, 1.5, site.input[:1])
    return state


def batch() -> Arrays:
    draw = np.random.default_rng(4)
    return {"input": draw.normal(size=(BATCH, *SMALL)), "target": draw.integers(0, 10, BATCH)}


def examine(
    workers: Workers, folder: Path, request: dict[str, Any], made: Arrays, **factors: Any
) -> Arrays:
    write_given(folder / "given", request, made)
    events = forked(
        workers,
        "torch",
        folder,
        purpose="examine",
        factors={"batch": BATCH, **factors},
        paths={"given": str(folder / "given"), "made": str(folder / "made")},
    )
    assert told(events, "finished")
    return read_made(folder / "made")


@pytest.fixture(scope="module")
def reference(workers: Workers, tmp_path_factory: pytest.TempPathFactory) -> Arrays:
    request = {"precision": "float64", "gradients": True, "updates": UPDATES}
    place = tmp_path_factory.mktemp("reference")
    return examine(workers, place, request, {**initial_state(), **batch()})


def under(made: Arrays, prefix: str) -> Arrays:
    return {n.removeprefix(prefix): a for n, a in made.items() if n.startswith(prefix)}


def error(
    made: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], floor: float = 1e-30
) -> float:
    return float(np.max(np.abs(made - expected)) / max(float(np.max(np.abs(expected))), floor))


def test_the_examination_names_every_layer_parameter_and_statistic(reference: Arrays) -> None:
    walked = shapes.sites(WORKLOAD.network, SMALL)
    for site in walked:
        assert reference[f"activation/{site.path}"].shape == (BATCH, *site.output)
    names = {name for site in walked for name, _ in shapes.parameter_shapes(site)}
    assert set(under(reference, "gradient/")) == names
    statistics = {"/".join(n.split("/")[:-1]) for n in under(reference, "statistic/")}
    assert statistics == {site.path for site in walked if isinstance(site.layer, BatchNorm)}
    assert reference["loss"].shape == ()


def test_the_loss_is_the_mean_cross_entropy_of_the_output(reference: Arrays) -> None:
    output, target = reference["output"], batch()["target"]
    shifted = output - output.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    assert reference["loss"] == pytest.approx(-logs[np.arange(BATCH), target].mean(), rel=1e-12)


def test_the_first_update_is_the_optimiser_on_the_gradient(reference: Arrays) -> None:
    state, after = under(initial_state(), "initial/"), under(reference, "after/1/")
    for name, gradient in under(reference, "gradient/").items():
        decay = 1e-4 if name.endswith("weight") else 0.0
        expected = state[name] - 0.05 * (gradient + decay * state[name])
        assert error(after[name], expected) < 1e-14, name


def test_restarts_from_ones_own_weights_change_nothing(
    reference: Arrays, workers: Workers, tmp_path: Path
) -> None:
    given = {**initial_state(), **batch()}
    for update in range(2, UPDATES + 1):
        before = under(reference, f"after/{update - 1}/")
        given |= {f"restart/{update}/{name}": array for name, array in before.items()}
    request = {"precision": "float64", "updates": UPDATES}
    made = examine(workers, tmp_path, request, given, layout="channels-first")
    for update in range(1, UPDATES + 1):
        for name, array in under(reference, f"after/{update}/").items():
            assert error(made[f"after/{update}/{name}"], array) < 1e-8, name


def test_the_timed_lowering_matches_layer_by_layer(
    reference: Arrays, workers: Workers, tmp_path: Path
) -> None:
    state, whole = under(initial_state(), "initial/"), batch()
    passed = Pass(resized(WORKLOAD, SMALL).network, state, whole["input"])
    passed.backward(loss(WORKLOAD.loss, passed.output, whole["target"])[1])
    layers = {f"layer/{path}/input": entering for path, entering in passed.inputs.items()}
    layers |= {f"layer/{path}/gradient": slope for path, slope in passed.slopes.items()}
    given = {**initial_state(), **whole, **layers}
    asked = {name: {"precision": name, "layers": True} for name in ("float64", "timed")}
    exact, timed = (examine(workers, tmp_path / name, asked[name], given) for name in asked)
    # A bias before a batch norm has no gradient but rounding, so each is seen beside the largest.
    gradients = under(reference, "gradient/")
    floor = 1e-2 * max(float(np.max(np.abs(array))) for array in gradients.values())
    assert set(exact) == set(timed)
    for name, array in exact.items():
        assert error(timed[name], array, floor) < 1e-4, name
        path, _, part = name.removeprefix("layer/").rpartition("/")
        if part == "output":
            assert error(array, reference[f"activation/{path}"]) < 1e-12, name
        elif path.endswith("/gradient"):
            whole = gradients[path.removesuffix("gradient") + part]
            assert error(array, whole, floor) < 1e-12, name
