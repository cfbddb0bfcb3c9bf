"""Plan which layers are timed alone: equal shapes once, the heaviest first, in every framework."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.doctor.layer_study import Wanted, distinct, session, training_called
from harness.plan.plan import make_plan
from harness.platform.platform import load_platform
from harness.worker.network.alone import alone_sites

WANTED = Wanted(
    network="resnet50",
    frameworks=("torch", "jax"),
    batch=4,
    precision="fp32",
    device="cpu",
    threads=None,
    layouts=("default",),
    heaviest=20,
    trials=2,
    until="100 ms",
)


def test_layers_of_equal_shape_are_timed_once_and_the_heaviest_come_first() -> None:
    training = training_called("resnet50")
    every = distinct(training, 4, None)
    assert len({one.shape for one, _ in every}) == len(every)
    assert sum(count for _, count in every) == len(list(alone_sites(training.network)))
    assert distinct(training, 4, 20) == every[:20]
    (heaviest, count) = every[0]
    assert heaviest.site.layer.kernel == 3  # type: ignore[union-attr]  # a convolution
    assert count > 1


def test_each_layer_is_planned_both_ways_in_each_framework_and_the_memory_beside_them() -> None:
    plan = make_plan(session(WANTED, load_platform("local")).study, load_platform("local"))
    named = [cell.workload for cell in plan.cells]
    assert named.count("triad") == 1
    assert len(named) == 20 * 2 * 2 + 1
    assert not plan.measure.turns
    assert {cell.macs for cell in plan.cells} == {None}


def test_layers_take_as_many_threads_as_are_asked_for() -> None:
    plan = make_plan(
        session(replace(WANTED, threads=1), load_platform("local")).study, load_platform("local")
    )
    assert {cell.factors["threads"] for cell in plan.cells if cell.workload != "triad"} == {1}


def test_where_every_layer_is_timed_the_step_is_too() -> None:
    wanted = replace(WANTED, network="tinycnn", heaviest=None)
    plan = make_plan(session(wanted, load_platform("local")).study, load_platform("local"))
    assert [cell.framework for cell in plan.cells if cell.workload == "tinycnn"] == ["torch", "jax"]


def test_a_layer_alone_is_no_work_for_several_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(
        'title = "x"\n[matrix]\nworkload = ["tinycnn/conv1/forward", "tinycnn"]\n'
        'framework = "torch"\nranks_per_node = [1, 2]\nstrategy = "ddp"\n'
    )
    with pytest.raises(SystemExit) as end:
        main(["plan", "two.toml"])
    assert end.value.code == 0
    assert "a layer is timed alone, on one device" in capsys.readouterr().out


def test_a_network_that_there_is_not_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["layers", "resnet5"])
    assert end.value.code == 2
    assert "Did you mean 'resnet50'" in capsys.readouterr().err
