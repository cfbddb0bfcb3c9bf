"""Results say whether their intervals speak of some nodes or of the whole machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from harness.analysis.analyse import analyse
from harness.store.dataset import Dataset
from harness.store.layout import TrialName
from tests.outcomes import seal_all
from tests.runs import RecordedCell, Recording, write_run

CELLS = [RecordedCell(factors={"batch": batch}) for batch in (16, 32)]


def warnings(
    folder: Path, node: Callable[[int, int], str], platform: dict[str, object] | None = None
) -> str:
    """Record two cells whose trials ran where ``node`` says, by cell and block."""
    told = Recording(platform=platform or {"name": "ours", "nodes": 64})
    run = write_run(folder, CELLS, told)
    for number, cell in enumerate(CELLS):
        for file in run.glob(f"cells/{cell.key}/trial-*/outcome.json"):
            outcome = json.loads(file.read_text())
            name = TrialName.parse(outcome["trial"])
            assert name is not None
            for rank in outcome["ranks"]:
                rank["host"] = node(number, name.block)
            file.write_text(json.dumps(outcome))
    seal_all(run)
    return " ".join(analyse(Dataset([run])).warnings)


def test_trials_on_one_node_speak_of_that_node(tmp_path):
    said = warnings(tmp_path, lambda cell, block: "cn7")
    assert "2 cells ran all trials on the same nodes (cn7)" in said
    assert "speak of these nodes, not of all 64" in said


def test_trials_over_several_allocations_speak_of_the_machine(tmp_path):
    said = warnings(tmp_path, lambda cell, block: f"cn{block // 3}")
    assert "same nodes" not in said
    assert "different ones" not in said


def test_cells_compared_across_nodes_are_pointed_out(tmp_path):
    said = warnings(tmp_path, lambda cell, block: f"cn{block // 3 + (cell if block == 2 else 0)}")
    assert "In 1 block cells of as many nodes ran on different ones" in said


def test_a_machine_of_one_node_is_that_node(tmp_path):
    said = warnings(tmp_path, lambda cell, block: "here", {"name": "laptop"})
    assert "same nodes" not in said
