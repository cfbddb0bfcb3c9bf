"""These tests hold `bakeoff predict` to saying that it predicts, and what it cannot know."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.read import read_results
from harness.cli.main import _run
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.002, window_noise=0.001, windows=10)
CELL = RecordedCell(behaviour=QUIET)


def recorded(folder: Path, factor: str, counts: tuple[int, ...]) -> Path:
    cells = []
    for count in counts:
        slower = replace(QUIET, step_s=0.02 * (1 + 0.2 * (count - 1) / count))
        strategy = "none" if count == 1 else "ddp"
        cells.append(replace(CELL, factors={factor: count, "strategy": strategy}, behaviour=slower))
    return write_run(folder, cells, Recording(block_noise=0.0))


def told(run: Path, nodes: int, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert _run(["predict", str(run), "--nodes", str(nodes), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert isinstance(said, dict)
    return said


def test_four_counts_of_nodes_are_checked_and_predict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded(tmp_path, "nodes", (1, 2, 4, 8))
    said = told(run, 16, capsys)
    rows = said["rows"]
    assert isinstance(rows, list)
    assert [(row["devices"], row["what"]) for row in rows] == [
        *((count, "measured") for count in (1, 2, 4, 8)),
        (8, "checked"),
        (16, "predicted"),
    ]
    assert said["origin"] == "predicted"
    true = 1 / (1 + 0.2 * 15 / 16)
    assert rows[-1]["efficiency_interval_low"] < true < rows[-1]["efficiency_interval_high"]
    assert _run(["predict", str(run), "--nodes", "16"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Predicted, not measured.")
    assert "the smaller counts predict the largest one within its interval; its ends are a" in text
    assert "! No count up to 8 shows how much of the exchange is hidden" in text
    assert "Nothing is predicted" not in text


def test_what_was_measured_is_the_number_that_stands_everywhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = replace(CELL, behaviour=replace(QUIET, trial_noise=0.1))
    cells = [
        replace(noisy, factors={"nodes": count, "strategy": "ddp" if count > 1 else "none"})
        for count in (1, 2, 4, 8)
    ]
    run = write_run(tmp_path, cells)
    rows = told(run, 16, capsys)["rows"]
    assert isinstance(rows, list)
    measured = [row["rate"] for row in rows if row["what"] == "measured"]
    ranked = sorted(one.rate.value for one in read_results([run]).cells if one.rate)
    assert measured == pytest.approx(ranked)


def test_what_is_too_far_to_say_anything_of_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(recorded(tmp_path, "nodes", (1, 2, 4, 8)), 256, capsys)
    rows = said["rows"]
    assert isinstance(rows, list)
    assert "predicted" not in [row["what"] for row in rows]
    assert "Nothing is predicted of 256 devices" in str(said["warnings"])
    assert "Measure more devices, or all-reduces in the same run." in str(said["warnings"])


def test_ranks_of_one_node_say_that_the_network_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(recorded(tmp_path, "ranks_per_node", (1, 2)), 1024, capsys)
    assert "the network is not in this prediction" in str(said["warnings"])
    assert "2048 devices are 1024 times the most measured" in str(said["warnings"])


def test_a_run_of_one_count_is_refused(tmp_path: Path) -> None:
    assert _run(["predict", str(recorded(tmp_path, "nodes", (1,))), "--nodes", "4"]) == 1


def test_a_drawing_tells_what_was_measured_from_what_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, drawn = recorded(tmp_path / "r", "nodes", (1, 2, 4, 8)), tmp_path / "drawn.svg"
    assert _run(["predict", str(run), "--nodes", "16", "--nodes", "64", "--draw", str(drawn)]) == 0
    capsys.readouterr()
    root = ET.parse(drawn).getroot()
    words = [one.text or "" for one in root.iter() if one.tag.endswith(("text", "title"))]
    assert "Predicted, not measured" in words
    assert "Efficiency: measured (dots), predicted (dashed)" in words
    assert any(word.startswith("predicted 8") and word.endswith(" %") for word in words)
    kinds = [one.get("class") for one in root.iter()]
    assert (kinds.count("s1"), kinds.count("s2 band")) == (4, 1)


def test_two_counts_have_no_interval_and_predict_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(recorded(tmp_path, "nodes", (1, 2)), 8, capsys)
    rows = said["rows"]
    assert isinstance(rows, list)
    assert [row["what"] for row in rows] == ["measured", "measured"]
    assert "nothing is predicted from them: measure a third" in str(said["warnings"])


def test_scaling_up_a_node_and_out_over_nodes_are_two_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [("ranks_per_node", 2), ("nodes", 2), ("nodes", 3), ("nodes", 4)]
    cells = [CELL, *(replace(CELL, factors={k: n, "strategy": "ddp"}) for k, n in both)]
    said = told(write_run(tmp_path, cells, Recording(block_noise=0.0)), 8, capsys)
    rows = said["rows"]
    assert isinstance(rows, list)
    found: dict[str, list[tuple[int, str]]] = {}
    for row in rows:
        found.setdefault(row["cell"].rpartition(" · ")[2], []).append((row["devices"], row["what"]))
    assert found == {
        "within a node": [(1, "measured"), (2, "measured")],
        "over nodes, 1 a node": [
            *((count, "measured") for count in (1, 2, 3, 4)),
            (4, "checked"),
            (8, "predicted"),
        ],
    }


def test_one_device_and_nodes_of_two_are_two_kinds_of_count_on_one_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {"ranks_per_node": 2, "strategy": "ddp"}
    cells = [CELL, *(replace(CELL, factors={**many, "nodes": count}) for count in (2, 4, 8))]
    said = told(write_run(tmp_path, cells, Recording(block_noise=0.0)), 16, capsys)
    assert "Counts within a node and across nodes stand on one curve." in str(said["warnings"])
    even = told(recorded(tmp_path / "even", "nodes", (1, 2, 4, 8)), 16, capsys)
    assert "stand on one curve" not in str(even["warnings"])


def test_an_efficiency_above_one_is_drawn_where_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faster = {1: 0.03, 2: 0.02, 4: 0.021, 8: 0.022}  # a device's part fits its cache
    cells = [
        replace(
            CELL,
            factors={"nodes": count, "strategy": "none" if count == 1 else "ddp"},
            behaviour=replace(QUIET, step_s=seconds),
        )
        for count, seconds in faster.items()
    ]
    run, drawn = write_run(tmp_path / "r", cells, Recording(block_noise=0.0)), tmp_path / "a.svg"
    assert _run(["predict", str(run), "--nodes", "16", "--draw", str(drawn)]) == 0
    capsys.readouterr()
    dots = [one for one in ET.parse(drawn).getroot().iter() if one.get("class") == "s1"]
    heights = [float(one.get("cy", "nan")) for one in dots]
    assert len(set(heights)) == 4, "none is held back by the end of the axis"
    assert min(heights) == heights[1] >= 64.0
