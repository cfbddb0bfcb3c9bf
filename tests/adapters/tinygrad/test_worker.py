"""Train and examines with tinygrad through the worker, beside the gate's reference."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.worker.gate import tensors
from harness.worker.network import shapes
from harness.worker.network.layers import BatchNorm
from harness.worker.network.workload import Training
from tests.adapters.interpreter import losses, told, work
from workloads.tinycnn import WORKLOAD

pytestmark = pytest.mark.framework

BATCH = 4
TOLERANCE = 1e-8
Arrays = dict[str, np.ndarray[Any, Any]]


def test_tinycnn_trains_and_searches_for_no_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEAM", "2")
    events = work("tinygrad", tmp_path)
    assert told(events, "finished")
    assert told(events, "identity")["lowered"] == WORKLOAD.parameters
    assert told(events, "units")["units"] == {"images": 8}
    assert losses(events)[-1] < losses(events)[0] * 0.8
    facts = told(events, "facts")["facts"]
    assert facts["renderer"]
    assert (facts["device"], facts["device_name"], facts["beam"]) == ("cpu", "CPU", 0)
    assert facts["multiplications"]["counted"] == facts["multiplications"]["asked"] > 0


@pytest.mark.slow
def test_rows_of_a_table_are_not_counted_as_products_of_training(tmp_path: Path) -> None:
    events = work(
        "tinygrad",
        tmp_path,
        workload="tinygpt",
        workload_module="workloads.tinygpt",
        factors={"batch": 2},
    )
    assert told(events, "finished")
    counted = told(events, "facts")["facts"]["multiplications"]
    assert counted["uncounted"] == "in tinygrad a token's row is a sum over its whole table"


def given(folder: Path, workload: Training, request: dict[str, Any], more: Arrays) -> None:
    draw = np.random.default_rng(3)
    writer = tensors.Writer(str(folder))

    def put(name: str, array: np.ndarray[Any, Any]) -> None:
        kind = "int64" if array.dtype == np.int64 else "float64"
        writer.put(name, array.shape, np.ascontiguousarray(array), kind)

    sites = shapes.sites(workload.network)
    for site in sites:
        for name, shape in shapes.parameter_shapes(site):
            put("initial/" + name, draw.normal(0, 0.3, shape))
        if isinstance(site.layer, BatchNorm):
            for kind in ("mean", "variance"):
                put(f"initial/{site.path}/{kind}", draw.uniform(0.5, 1.5, site.input[:1]))
    outputs = sites[-1].output[0]
    put("input", draw.normal(size=(BATCH, *workload.network.input)))
    is_classes = workload.loss == "cross-entropy"
    target = draw.integers(0, outputs, BATCH) if is_classes else draw.normal(size=(BATCH, outputs))
    put("target", target)
    for name, array in more.items():
        put(name, array)
    writer.close({"input": None, "precision": "float64", **request})


def examine(folder: Path, framework: str, module: str, request: dict[str, Any]) -> Arrays:
    more = request.pop("more", {})
    given(folder / "given", importlib.import_module(module).WORKLOAD, request, more)
    events = work(
        framework,
        folder,
        purpose="examine",
        workload_module=module,
        factors={"batch": BATCH},
        paths={"given": str(folder / "given"), "made": str(folder / "made")},
    )
    assert told(events, "finished")
    made = tensors.read(str(folder / "made")).tensors
    return {name: np.fromfile(one.path, "<f8").reshape(one.shape) for name, one in made.items()}


def differing(made: Arrays, reference: Arrays) -> dict[str, float]:
    """Give the error of every tensor above the tolerance; a gradient of pure rounding is none."""
    norm = sum(float((a**2).sum()) for n, a in reference.items() if n.startswith("gradient/"))
    found = {}
    for name, array in reference.items():
        floor = 1e-9 * norm**0.5 if name.startswith("gradient/") else 0.0
        off, largest = (float(np.max(np.abs(a))) for a in (made[name] - array, array))
        if max(off, largest) > floor and off > TOLERANCE * largest:
            found[name] = off / largest
    return found


@pytest.mark.parametrize(
    ("name", "updates"),
    [pytest.param("every_layer", 3, marks=pytest.mark.slow), ("line", 2), ("volume", 0)],
)
def test_every_layer_and_update_is_the_reference_s_in_float64(
    name: str, updates: int, tmp_path: Path
) -> None:
    module = f"tests.adapters.tinygrad.{name}"
    request = {"gradients": True, "updates": updates}
    reference = examine(tmp_path / "torch", "torch", module, dict(request))
    made = examine(tmp_path / "tinygrad", "tinygrad", module, dict(request))
    assert set(made) == set(reference)
    assert differing(made, reference) == {}


def test_dropout_examined_alone_drops_at_its_rate_and_scales_the_rest(tmp_path: Path) -> None:
    one = np.ones((500, 40))
    more = {"layer/drop/input": one, "layer/drop/gradient": one}
    request = {"layers": True, "more": more}
    made = examine(tmp_path, "tinygrad", "tests.adapters.tinygrad.every_layer", request)
    output = made["layer/drop/output"]
    assert set(np.unique(output)) == {0.0, 1 / 0.75}
    assert abs(float((output == 0).mean()) - 0.25) < 0.02
    assert np.array_equal(output, made["layer/drop/input-gradient"])
