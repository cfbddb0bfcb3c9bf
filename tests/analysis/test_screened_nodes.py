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


def test_one_sick_gpu_of_eight_is_told_by_its_own_sensors(tmp_path: Path) -> None:
    def told(cell: CellResult) -> CellResult:
        """Let one GPU of the slow node be behind half of its lanes, hot, and full of errors."""
        is_sick = cell.factors["node"] == SLOW
        readings = [Reading("n", "core:0", "clock", "Hz", 3.0e9)]
        for gpu in range(8):
            sick = is_sick and gpu == 5
            of = (("clock", "Hz", 1.4e9 if gpu else 0.2e9), ("PCIe lanes", "1", 8 if sick else 16))
            more = (
                ("temperature", "°C", 90.0 if sick else 60.0),
                ("corrected memory errors", "1", 12.0 * sick),
            )
            readings += [Reading("n", f"gpu:{gpu}", *one) for one in (*of, *more)]
        readings += [Reading("n", "link:ib0", "link speed", "bytes/s", 6e9 if is_sick else 12e9)]
        trials = (replace(one, readings=tuple(readings)) for one in cell.trials)
        return replace(cell, trials=tuple(trials))

    cells = [
        RecordedCell(
            factors={"node": number},
            behaviour=Behaviour(step_s=0.02 if number == SLOW else 0.01, windows=20),
        )
        for number in range(1, 6)
    ]
    results = read_results([write_run(tmp_path, cells, Recording(trials=7))])
    found = fleet(replace(results, cells=tuple(map(told, results.cells))), [])
    (slow,) = [one for one in found.rows if one.is_named]
    assert set(slow.sensors) == {
        "highest GPU corrected memory errors 12.0 (others 0.0)",
        "highest GPU temperature 90.0 °C (others 60.0)",
        "lowest GPU PCIe lanes 8.00 (others 16.0)",
        "adapter link speed 6,000 MB/s (others 12,000)",
    }


def test_a_sick_gpu_among_eight_is_held_to_the_slowest_ones_of_other_nodes(tmp_path: Path) -> None:
    cells = [
        RecordedCell(
            workload="gemm",
            factors={"node": number, "ranks_per_node": 8, "strategy": "ddp"},
            behaviour=Behaviour(windows=20),
            parameters=None,
        )
        for number in range(1, 6)
    ]
    results = read_results([write_run(tmp_path, cells, Recording(trials=7))])

    def slowed(cell: CellResult) -> CellResult:
        """Let one rank of a node be three times too slow: their sum loses a twelfth."""
        if cell.factors["node"] != SLOW:
            return cell
        trials = (
            replace(one, rate=(one.rate or 0) * 11 / 12, p50_s=(one.p50_s or 0) * 3)
            for one in cell.trials
        )
        return replace(cell, trials=tuple(trials))

    found = fleet(replace(results, cells=tuple(map(slowed, results.cells))), [])
    (sick,) = [one for one in found.rows if one.is_named]
    assert sick.node == f"node {SLOW}"
    assert 0.3 < sick.ratio < 0.37


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
