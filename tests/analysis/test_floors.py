"""Keep the least that a machine needed for each layer, and lay measured layers beside it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from harness import user_folders
from harness.analysis.analyse import analyse
from harness.analysis.explain.explanation import explain
from harness.analysis.explain.words import beside, causes
from harness.analysis.floors import kept_floors, layer_table
from harness.analysis.floors.layer_times import (
    BACKWARD,
    keys_of_network,
    layer_times,
    memory_floor_s,
)
from harness.analysis.results import Results
from harness.store.dataset import Dataset
from harness.store.record_readers.ceilings import LAYER, Ceiling, Conditions, Reached
from harness.worker.network.alone import BOTH, FORWARD, multiplying
from tests.analysis.test_explain import CLEAN_MS, attributed, planted, timed
from tests.runs import Behaviour, RecordedCell, Recording, write_run
from workloads.tinycnn import WORKLOAD

QUIET = Behaviour(trial_noise=0.0, window_noise=0.0, windows=30)


def recorded(
    layer: str, step_s: float, framework: str = "torch", **factors: object
) -> RecordedCell:
    return RecordedCell(
        workload=f"tinycnn/{layer}",
        framework=framework,
        behaviour=replace(QUIET, step_s=step_s),
        macs=None,
        factors={"threads": None, **factors},
    )


def results(folder: Path, *cells: RecordedCell, name: str = "a") -> Results:
    told = Recording(name=name, block_noise=0.0)
    return analyse(Dataset([write_run(folder, cells, told)]))


def seconds(floors: kept_floors.MachineFloors) -> dict[tuple[str, str], float]:
    """Give what is kept, by layer and pass."""
    return {
        (one.layer, key.split(" | ")[1]): round(one.seconds, 6)
        for key, one in floors.layers.items()
    }


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node0")


def test_the_quickest_is_kept_and_a_slower_one_replaces_nothing(tmp_path: Path, here: None) -> None:
    first = results(tmp_path / "1", recorded(f"conv1/{BOTH}", 0.02))
    kept_floors.keep(first)
    quicker = recorded(f"conv1/{BOTH}", 0.01, framework="jax")
    slower = recorded(f"conv1/{BOTH}", 0.03)
    kept_floors.keep(results(tmp_path / "2", quicker, slower, name="b"))
    kept_floors.keep(results(tmp_path / "3", slower, name="c"))
    told = kept_floors.floors_of(first, ())
    assert seconds(told) == {("tinycnn/conv1", BOTH): 0.01}
    (floor,) = told.layers.values()
    assert (floor.by.split()[0], floor.run, floor.trials) == ("jax", "b", 6)


def test_a_backward_pass_is_both_less_the_forward_of_the_same_framework(
    tmp_path: Path, here: None
) -> None:
    cells = (
        recorded(f"conv2/{FORWARD}", 0.01),
        recorded(f"conv2/{BOTH}", 0.05),
        recorded(f"conv2/{BOTH}", 0.02, framework="jax"),
    )
    told = kept_floors.keep(results(tmp_path, *cells))
    assert seconds(told) == {
        ("tinycnn/conv2", FORWARD): 0.01,
        ("tinycnn/conv2", BOTH): 0.02,
        ("tinycnn/conv2", BACKWARD): 0.04,
    }


def test_a_layer_of_equal_shape_has_the_same_floor_and_another_batch_has_none(
    tmp_path: Path, here: None
) -> None:
    told = kept_floors.keep(results(tmp_path, recorded(f"block/bn1/{FORWARD}", 0.01)))
    cell = timed("torch", 10.0)
    assert told.of_part(cell, "block/bn2", "forward") is not None
    assert told.of_part(cell, "bn1", "forward") is None
    assert told.of_part(cell, "", "update") is None
    other = replace(cell, scale=replace(cell.scale, batch_per_device=4))
    assert told.of_part(other, "block/bn2", "forward") is None
    assert ("block/bn2", BACKWARD) in keys_of_network(cell)


def test_a_cell_of_one_thread_is_held_to_what_one_thread_can_do(tmp_path: Path, here: None) -> None:
    two = recorded(f"conv1/{FORWARD}", 0.01)
    one = recorded(f"conv1/{FORWARD}", 0.02, threads=1)
    told = kept_floors.keep(results(tmp_path, two, one))
    cell = timed("torch", 10.0)
    floors = [
        told.of_part(
            replace(cell, factors={**cell.factors, "threads": threads}), "conv1", "forward"
        )
        for threads in (None, 1)
    ]
    assert [round(floor.seconds, 6) for floor in floors if floor] == [0.01, 0.02]


def test_floors_are_those_of_the_cpus_that_the_run_had_not_of_whoever_reads(
    tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = results(tmp_path, recorded(f"conv1/{BOTH}", 0.02))
    kept = kept_floors.keep(found)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    assert kept_floors.floors_of(found, ()) == kept
    (run,) = found.runs
    fewer = {**run.platform, "node": {"cpus": 1}}
    assert not kept_floors.floors_of(
        replace(found, runs=(replace(run, platform=fewer),)), ()
    ).layers


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 9}', '{"version": 2, "layers": 3}'])
def test_what_is_damaged_is_nothing(content: str, tmp_path: Path, here: None) -> None:
    found = results(tmp_path, recorded(f"conv1/{BOTH}", 0.02))
    kept_floors.keep(found)
    (file,) = (user_folders.state_home() / "floors").iterdir()
    file.write_text(content)
    assert kept_floors.floors_of(found, ()) == kept_floors.MachineFloors()


def test_one_damaged_floor_is_left_out(tmp_path: Path, here: None) -> None:
    found = results(tmp_path, recorded(f"conv1/{BOTH}", 0.02))
    kept_floors.keep(found)
    (file,) = (user_folders.state_home() / "floors").iterdir()
    content = json.loads(file.read_text())
    content["layers"] |= {"x": {"seconds": "quick"}, "y": 3, "z": None}
    file.write_text(json.dumps(content))
    assert len(kept_floors.floors_of(found, ()).layers) == 1


def test_a_run_of_another_machine_has_no_floor_here(tmp_path: Path) -> None:
    found = results(tmp_path, recorded(f"conv1/{BOTH}", 0.02))
    kept_floors.keep(found)
    assert kept_floors.floors_of(found, ()) == kept_floors.MachineFloors()


def test_memory_needs_time_for_what_no_cache_keeps() -> None:
    assert memory_floor_s(3_000, 1e3, 1_000) == 2
    assert memory_floor_s(500, 1e3, 1_000) == 0
    assert memory_floor_s(500, None, 1_000) is None


def test_rows_are_beside_the_least_and_sums_count_layers_that_are_alike(
    tmp_path: Path, here: None
) -> None:
    cells = (
        recorded(f"block/bn1/{BOTH}", 0.01),
        recorded(f"block/bn1/{BOTH}", 0.04, framework="jax"),
        recorded(f"conv1/{BOTH}", 0.05),
        recorded(f"conv1/{BOTH}", 0.025, framework="jax"),
    )
    found = results(tmp_path, *cells)
    told = layer_table.rows(found, WORKLOAD, kept_floors.keep(found), 0)
    assert [(one.layer, one.alike) for one in told] == [
        ("tinycnn/conv1", 1),
        ("tinycnn/block/bn1", 2),
    ]
    added = {one.by.split()[0]: one for one in layer_table.sums(told, found, WORKLOAD)}
    assert added["torch"].seconds == pytest.approx(0.05 + 2 * 0.01)
    assert added["jax"].share == pytest.approx((0.025 + 2 * 0.01) / (0.025 + 2 * 0.04))
    assert added["jax"].layers == 3
    beaten = [x for row in told for x in row.times.values() if x.seconds < row.floor.seconds]
    assert beaten == []


def test_an_explanation_says_at_what_share_of_the_floor_each_side_is(
    tmp_path: Path, here: None
) -> None:
    slow = planted(("conv1", "backward"), 5.0)
    one, other = timed("jax", sum(slow.values())), timed("torch", sum(CLEAN_MS.values()))
    read = {one.key: attributed(slow), other.key: attributed(CLEAN_MS, seed=1)}
    cells = (recorded(f"conv1/{FORWARD}", 0.001), recorded(f"conv1/{BOTH}", 0.0035))
    floors = kept_floors.keep(results(tmp_path, *cells))
    found = explain(one, other, read, seed=1, floors=floors)
    assert [round(x.first_floor_s or 0, 4) for x in found.terms[:1]] == [0.0025]
    (said, *_) = causes(found, "jax", "torch")
    assert "(at 25 % of the quickest seen here)" in said
    assert "(at 50 %)" in said
    without = explain(one, other, read, seed=1)
    assert all("quickest seen" not in line for line in causes(without, "jax", "torch"))


def test_a_floor_that_one_step_beat_is_beside_neither(tmp_path: Path, here: None) -> None:
    slow = planted(("conv1", "backward"), 5.0)
    one, other = timed("jax", sum(slow.values())), timed("torch", sum(CLEAN_MS.values()))
    read = {one.key: attributed(slow), other.key: attributed(CLEAN_MS, seed=1)}
    cells = (recorded(f"conv1/{FORWARD}", 0.001), recorded(f"conv1/{BOTH}", 0.008))
    floors = kept_floors.keep(results(tmp_path, *cells))
    found = explain(one, other, read, seed=1, floors=floors)
    assert found.terms[0].second_s < 0.007 < found.terms[0].first_s
    assert (found.terms[0].first_floor_s, found.terms[0].second_floor_s) == (None, None)
    (said,) = (one for one in beside(found, "slow", "fast") if "floor" in one)
    assert "took less in a step than the least that was measured for" in said
    assert all("quickest seen" not in line for line in causes(found, "jax", "torch"))


def test_what_is_no_layer_alone_has_no_time(tmp_path: Path) -> None:
    found = results(
        tmp_path, RecordedCell(behaviour=QUIET), RecordedCell(workload="gone/x/forward")
    )
    assert not _any(layer_times(found))


def _any(some: Iterable[object]) -> bool:
    return any(True for _ in some)


def reached(words: str, seconds: float, framework: str = "torch") -> Ceiling:
    under = Conditions(framework, "digest", "cpu", "fp32", None)
    return Ceiling(under, Reached(words, LAYER, 1 / seconds, None), "a run", 1)


def test_a_run_knows_what_its_own_jobs_timed_alone_and_the_quicker_of_it_and_what_is_kept(
    tmp_path: Path, here: None
) -> None:
    found = results(tmp_path, recorded(f"conv2/{FORWARD}", 0.02))
    kept_floors.keep(found)
    words = {
        one.passes: one.words
        for one in multiplying(WORKLOAD.network, 16, {**found.cells[0].factors, "device": "cpu"})
        if one.site.site.path == "conv2"
    }
    told = kept_floors.floors_of(
        found,
        (
            reached(words[FORWARD], 0.03),
            reached(words[BOTH], 0.05),
            reached(words[FORWARD], 0.01, "jax"),
            reached(words[BOTH], 0.04, "jax"),
        ),
    )
    cell = timed("torch", 10.0)
    least = [told.of_part(cell, "conv2", phase) for phase in ("forward", "backward")]
    assert [(round(one.seconds, 6), one.by) for one in least if one] == [
        (0.01, "jax"),
        (0.02, "torch"),  # both less forward of the same framework
    ]
    elsewhere = kept_floors.floors_of(found, (reached(words[FORWARD], 0.03),))
    assert [one.seconds for one in elsewhere.layers.values()] == [pytest.approx(0.02)]
