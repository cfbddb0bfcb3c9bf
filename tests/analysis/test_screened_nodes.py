"""What a node's sensors say otherwise than the others' stands beside its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.analysis.nodes.fleet import fleet
from harness.analysis.read import read_results
from harness.verdicts.results import CellResult, Reading
from tests.runs import Behaviour, RecordedCell, Recording, write_run

SLOW = 3


def read_there(cell: CellResult) -> CellResult:
    """Let a quota hold the slow node back; its clock is a little lower, which says nothing."""
    clock = 1.3e9 if cell.factors["node"] == SLOW else 1.4e9
    readings = (
        *(Reading("n", f"core:{core}", "clock", "Hz", clock) for core in (0, 1)),
        Reading("n", "sensor:cpu", "temperature", "°C", 60.0),
        Reading("n", "node", "stolen by the host", "share", 0.001),
    )
    if cell.factors["node"] == SLOW:
        readings = (*readings, Reading("n", "group:0", "held back by its quota", "share", 0.4))
    else:
        readings = (*readings, Reading("n", "group:0", "held back by its quota", "share", 0.0))
    return replace(cell, trials=tuple(replace(one, readings=readings) for one in cell.trials))


def test_only_what_is_otherwise_there_is_said(tmp_path: Path) -> None:
    cells = [
        RecordedCell(
            factors={"node": number},
            behaviour=Behaviour(step_s=0.02 if number == SLOW else 0.01, windows=20),
        )
        for number in range(1, 6)
    ]
    place = write_run(tmp_path, cells, Recording(trials=7))
    results = read_results([place])
    results = replace(results, cells=tuple(map(read_there, results.cells)))
    found = fleet(results, [])
    (slow,) = [one for one in found.rows if one.is_named]
    assert slow.node == f"node {SLOW}"
    assert slow.sensors == ("held back by its quota 40.0 % (others 0.0)",)


def test_all_nodes_together_are_told_apart_and_name_nobody(tmp_path: Path) -> None:
    alone = [RecordedCell(factors={"node": number}) for number in range(1, 5)]
    tiers = [
        RecordedCell(workload="storage-write", factors={"node": number, "tier": "scratch"})
        for number in range(1, 5)
    ]
    together = RecordedCell(workload="all-reduce", factors={"node": 1, "nodes": 4})
    place = write_run(tmp_path, [*alone, *tiers, together], Recording(trials=7))
    found = fleet(read_results([place]), [])
    assert found.measures == ("storage-write, scratch", "tinycnn")
    assert [(one.measure, one.nodes) for one in found.together] == [("all-reduce", 4)]
    assert found.together[0].low <= found.together[0].rate <= found.together[0].high
    assert found.sick == ()
