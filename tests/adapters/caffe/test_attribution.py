"""A step of Caffe is divided by what ``caffe time`` prints, and by what a training takes more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.worker.adapters.caffe import attribution
from harness.worker.adapters.caffe.log import Log
from harness.worker.external_loop import Mark
from tests.adapters.caffe.test_worker import told, work

LOGS = Path(__file__).parent / "logs"
STEP_NS = 400_000_000


def recorded(name: str, step_ns: int) -> Any:
    """Make an activity of a recorded timing, whose training takes so long for a step."""
    log = Log(0)
    for line in (LOGS / name).read_text(encoding="utf-8").splitlines():
        log.add(line)
    marks = (Mark(number, number * step_ns, {}) for number in range(100))
    return SimpleNamespace(net=[], time=lambda: log, marks=lambda until: marks), log


def shares(activity: Any, paths: list[str]) -> dict[tuple[str, str], float]:
    found = attribution.attribute(activity, paths)
    assert found.traced_by == "caffe time"
    return {(one.place.site, one.place.phase): one.shares[0] for one in found.parts}


def test_layers_of_a_recorded_alexnet_keep_their_printed_times() -> None:
    activity, log = recorded("bvlc_time_alexnet.log", 2 * STEP_NS)
    paths = [name for name in log.layers if name not in ("input", "data", "loss")]
    found = shares(activity, paths)
    step_s = 2 * STEP_NS / 1e9
    assert sum(log.passes.values()) < step_s
    for path in paths:
        for phase in ("forward", "backward"):
            if log.layers[path][phase] > 1e-5:
                assert found[path, phase] * step_s == pytest.approx(log.layers[path][phase])
    update_s = step_s - sum(log.passes.values())
    assert found["", "update"] * step_s == pytest.approx(update_s, rel=1e-3)


def test_a_training_that_is_quicker_than_its_passes_updates_nothing() -> None:
    activity, log = recorded("bvlc_time_alexnet.log", 1000)
    found = attribution.attribute(activity, list(log.layers))
    assert found.step_s == pytest.approx([sum(log.passes.values())] * len(found.step_s))
    assert all(one.place.phase != "update" or not any(one.shares) for one in found.parts)


@pytest.mark.parametrize(
    ("layer", "place"),
    [
        ("block/bn1/scale", ("block/bn1", "forward")),
        ("pool1/crop", ("pool1", "forward")),
        ("block/relu1_block/relu1_0_split", ("block/relu1", "forward")),
        ("conv1_bn1/scale_0_split", ("", "other")),  # of no layer that the network names
        ("input", ("", "input")),
        ("loss", ("", "loss")),
    ],
)
def test_parts_of_a_layer_belong_to_it(layer: str, place: tuple[str, str]) -> None:
    log = Log(0)
    log.passes = {"forward": 0.1, "backward": 0.0}
    log.layers = {layer: {"forward": 0.1}}
    marks = (Mark(number, number * 100_000_000, {}) for number in range(100))
    activity: Any = SimpleNamespace(net=[], time=lambda: log, marks=lambda until: marks)
    assert shares(activity, ["bn1", "block/bn1", "pool1", "relu1", "block/relu1"])[place] == 1


def test_a_worker_divides_the_step_of_a_program_that_stands_in_for_caffe(tmp_path: Path) -> None:
    events = work(tmp_path, purpose="attribute")
    head = told(events, "attribution")[0]
    assert len(head["step_s"]) >= 5
    assert len(head["untraced_s"]) >= 5
    parts = {(one["site"], one["phase"]): one for one in told(events, "part")}
    assert {("conv1", "forward"), ("conv1", "backward"), ("fc", "backward")} <= parts.keys()
    assert parts["conv1", "forward"]["operations"][0]["name"] == "Convolution"
    assert ("", "other") not in parts
