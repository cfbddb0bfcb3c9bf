"""These tests hold what a session that measured two sides answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.analysis.read import read_one_session, read_results
from harness.stats.answers import ALPHA
from harness.stats.compare import declared_looks
from harness.store.layout import RunPaths
from reports.text.answer import answer
from tests.runs import Behaviour, RecordedCell, Recording, write_run

QUIET = Behaviour(trial_noise=0.005, window_noise=0.004)
FIRST = RecordedCell(framework="torch", behaviour=QUIET)
SECOND = replace(FIRST, workload="resnet50")
LOOKS = tuple(range(4, 31))


def faster(cell: RecordedCell) -> RecordedCell:
    return replace(cell, factors={"batch": 32}, behaviour=replace(QUIET, step_s=0.018))


def two_sided(folder: Path, *bases: RecordedCell, measure: Mapping[str, Any]) -> Path:
    """Record a run of cells of A, and for each a faster one of B."""
    pairs = {faster(cell).key: cell.key for cell in bases}
    cells = [one for cell in bases for one in (cell, faster(cell))]
    paths = RunPaths(write_run(folder, cells, Recording(trials=8, measure=measure)))
    plan = json.loads(paths.plan.read_text())
    for cell in plan["cells"]:
        cell["against"] = pairs.get(cell["key"])
    paths.plan.write_text(json.dumps({**plan, "looks": LOOKS}))
    return paths.root


def levels(run: Path) -> set[float]:
    return {pair.change.level for pair in read_one_session(run).pairs}


def test_several_pairs_share_the_error_of_their_looks(tmp_path: Path) -> None:
    run = two_sided(tmp_path, FIRST, SECOND, measure={"trials": 4, "stop": "answered"})
    share = ALPHA / len(declared_looks(6, 30))
    assert levels(run) == {1 - share}


def test_blocks_that_were_added_after_a_look_halve_the_error(tmp_path: Path) -> None:
    run = two_sided(tmp_path, FIRST, SECOND, measure={"trials": 6, "added": [6]})
    before = two_sided(tmp_path / "before", FIRST, SECOND, measure={"trials": 6})
    assert levels(before) == {1 - ALPHA}
    assert levels(run) == {1 - ALPHA / 2}


def test_a_single_pair_is_held_at_every_look(tmp_path: Path) -> None:
    run = two_sided(tmp_path, FIRST, measure={"trials": 4, "stop": "answered"})
    assert levels(run) == {1 - ALPHA}


def test_each_pair_is_ranked_and_answered_by_itself(tmp_path: Path) -> None:
    slow = replace(FIRST, framework="jax", behaviour=replace(QUIET, step_s=0.06))
    run = two_sided(tmp_path, FIRST, slow, measure={"trials": 8})
    results = read_results([run])
    told = [
        (cell.against, cell.comparison.reference_key)
        for cell in results.cells
        if cell.against and cell.comparison
    ]
    assert len(told) == 2
    assert all(against == reference for against, reference in told)
    assert [len(one.cells) for one in results.rankings] == [2, 2]
    by_title = dict(answer(results).sentences)
    assert set(by_title) == {"tinycnn · torch", "tinycnn · jax"}
    assert by_title["tinycnn · torch"].startswith("torch batch 32 · B is ")
    assert " as fast as torch batch 16 · A [" in by_title["tinycnn · torch"]
    assert answer(results).basis.endswith("the intervals hold together with 95 %.")
    pairs = {pair.key: pair.change for pair in read_one_session(run).pairs}
    for cell in results.cells:
        if cell.against and cell.comparison:
            assert pairs[cell.against].ratio == cell.comparison.ratio
            assert pairs[cell.against].answer == cell.comparison.answer
