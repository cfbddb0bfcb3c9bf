"""What factors do by themselves is found from cells that differ in nothing else."""

from __future__ import annotations

import dataclasses
import random
import re

import pytest

from harness.analysis.effects.squares import squares_of
from harness.analysis.effects.words import interaction, sentences
from harness.analysis.results import Results
from tests.reports import samples


def effects_of(results: Results):
    return results.effects["resnet50"]


def without(results: Results, *keys: str) -> Results:
    cells = tuple(cell for cell in results.cells if cell.key not in keys)
    return dataclasses.replace(results, cells=cells)


def test_each_factor_has_the_ratio_that_its_cells_were_made_with():
    told = {(one.level, one.base): one for one in effects_of(samples.factorial()).every}
    assert told["fw1", "fw0"].ratio == pytest.approx(0.96, rel=0.01)
    assert told["6 threads", "1 thread"].ratio == pytest.approx(1.25, rel=0.01)
    assert told["bf16", "fp32"].ratio == pytest.approx((7.9 * 7.9 * 3.0) ** (1 / 3), rel=0.01)
    assert {one.answer for one in told.values() if one.factor == "batch"} == {"same"}
    for one in told.values():
        assert one.interval is not None
        assert one.interval.low < one.ratio < one.interval.high


def test_factors_are_ordered_by_what_they_do():
    order = [some[0].factor for some in effects_of(samples.factorial()).by_factor]
    assert order == ["precision", "framework", "threads", "batch"]


def test_only_an_interaction_that_is_there_is_named():
    found = effects_of(samples.factorial())
    assert [(one.level, one.other) for one in found.interactions] == [("fw2", "bf16")]
    assert interaction(found.interactions[0]) == (
        "fw2 is 0.962 × as fast as fw0 with fp32, but 0.364 × with bf16."
    )


def test_missing_cells_do_not_lean_an_effect_to_the_others():
    whole = samples.factorial()
    fast = [c.key for c in whole.cells if c.framework == "fw1" and c.factors["precision"] == "bf16"]
    told = {one.level: one for one in effects_of(without(whole, *fast)).every}
    assert told["fw1"].ratio == pytest.approx(0.96, rel=0.01)
    assert told["fw1"].pairs == 30


def test_a_missing_trial_does_not_lean_its_block():
    whole = samples.factorial()
    first = whole.cells[0]
    gone = dataclasses.replace(first.trials[0], counted=False)
    cells = (dataclasses.replace(first, trials=(gone, *first.trials[1:])), *whole.cells[1:])
    told = {o.level: o.ratio for o in effects_of(dataclasses.replace(whole, cells=cells)).every}
    assert told["bf16"] == pytest.approx(effects_of(whole).by_factor[0][0].ratio, rel=0.001)


def test_levels_that_no_two_cells_differ_in_alone_are_said():
    results = samples.factorial(2, 5, 1)
    other = [
        dataclasses.replace(
            cell, framework="fw9", key=f"{cell.key}9", factors={**cell.factors, "batch": 999}
        )
        for cell in results.cells[:1]
    ]
    found = effects_of(dataclasses.replace(results, cells=(*results.cells, *other)))
    assert found.unpaired == ("fw9", "batch 999")


def test_small_studies_and_several_runs_have_no_effects():
    assert samples.demo().effects == {}
    assert samples.two_runs().effects == {}


def test_the_headline_says_what_matters_where_and_what_does_not():
    told = sentences(effects_of(samples.factorial()))
    assert told[0].startswith("bf16 is 5.7")
    assert re.search(r"everywhere, from [23][.]\d+ to [78][.]\d+ ×[.]$", told[0])  # fw2 gains less
    assert re.search(r"everywhere: fw2 from 0[.]3\d+ to (0[.]9\d+|1[.]0\d) ×[.]$", told[1])
    assert told[-1] == "Batch matters little."


def test_noise_alone_is_left_open_or_the_same():
    results = samples.factorial(2, 5, 1)
    draw = random.Random(3)
    cells = []
    for cell in results.cells:
        trials = tuple(
            dataclasses.replace(t, rate=100 * draw.lognormvariate(0, 0.3)) for t in cell.trials
        )
        cells.append(dataclasses.replace(cell, trials=trials))
    found = effects_of(dataclasses.replace(results, cells=tuple(cells)))
    assert {one.answer for one in found.every} <= {"cannot tell", "same"}
    assert not found.interactions


def test_a_map_has_the_fastest_cell_of_each_pair_and_gaps_where_there_is_none():
    whole = samples.factorial()
    gone = [c.key for c in whole.cells if c.framework == "fw1" and c.factors["precision"] == "bf16"]
    results = without(whole, *gone)
    (ranking,) = results.rankings
    first, *_ = squares_of(ranking, effects_of(results))
    assert {first.down, first.across} == {"framework", "precision"}
    row, column = first.rows.index("fw1"), first.columns.index("bf16")
    assert (row, column) not in first.fastest
    best = first.fastest[first.rows.index("fw0"), column]
    assert best.key == results.cells[0].key
