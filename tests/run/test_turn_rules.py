"""Tell which cells can live at the same time as others, and why the others cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import FaultyFile
from harness.plan.plan import Plan, make_plan
from harness.plan.turn_rules import in_words, reasons, with_partners
from harness.platform.platform import load_platform
from harness.study.study import load_study
from harness.worker.job import Span
from harness.worker.scale import Scale

TWO_NODES = Scale(nodes=2)
TWO_RANKS = Scale(ranks_per_node=2)
STUDY = """title = "T"
[matrix]
workload = "tinycnn"
framework = "null"
batch = [1, 2]
[measure]
turns = {turns}
"""


def plan(tmp_path: Path, *, turns: str = "true") -> Plan:
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(turns=turns))
    return make_plan(load_study(study), load_platform())


def changed(made: Plan, **fields: Any) -> Plan:
    """Give a plan whose cells differ; ``factors`` are laid over their own."""
    factors = fields.pop("factors", {})
    cells = [replace(one, factors={**one.factors, **factors}, **fields) for one in made.cells]
    return replace(made, cells=tuple(cells))


def why(made: Plan) -> set[str]:
    return set(reasons(made, made.platform).values())


def test_cells_of_one_work_on_one_node_take_turns(tmp_path: Path) -> None:
    assert why(plan(tmp_path)) == set()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"factors": {"checkpoint_every": 5}}, "it saves checkpoints"),
        ({"factors": {"container": "image.sif"}}, "it runs in a container"),
        ({"factors": {"device": "gpu"}}, "frameworks reserve the memory of a GPU"),
        ({"content": "pictures"}, "it reads files"),
        ({"adapter": "caffe"}, "Caffe steps by itself"),
        ({"scale": TWO_NODES}, "it takes several nodes"),
        (
            {"scale": TWO_RANKS, "adapter": "jax", "strategy": "data-parallel"},
            "its ranks give each other up when they stand still",
        ),
    ],
)
def test_cells_that_cannot_stand_still_beside_others_run_alone(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    assert why(changed(plan(tmp_path), **fields)) == {reason}


def test_ranks_without_heartbeats_take_turns(tmp_path: Path) -> None:
    made = changed(plan(tmp_path), scale=TWO_RANKS, adapter="torch", strategy="ddp")
    assert why(made) == set()


def test_a_limit_of_memory_lets_all_run_alone(tmp_path: Path) -> None:
    made = plan(tmp_path)
    limited = replace(made, measure=replace(made.measure, memory_bytes=2**30))
    assert why(limited) == {"its memory is limited"}


def test_a_cell_without_company_runs_alone(tmp_path: Path) -> None:
    made = plan(tmp_path)
    lonely = replace(made, cells=made.cells[:1])
    assert why(lonely) == {"no other cell of its work takes turns"}


def test_a_plan_says_how_many_take_turns_and_who_does_not(tmp_path: Path) -> None:
    made = plan(tmp_path)
    (told,) = in_words(made, made.platform)
    assert told.startswith(
        "Turns: 2 of 2 cells take turns of 1 s, a few steps at least, each after 0.3 s at most "
        "(three windows at least) in which it settles"
    )
    saving = changed(made, factors={"checkpoint_every": 5})
    head, told = in_words(saving, saving.platform)
    assert head == "Turns: no cell takes turns."
    assert told.startswith("  alone in its block, because it saves checkpoints: tinycnn · null")
    assert in_words(plan(tmp_path, turns="false"), made.platform) == ()


def test_a_plan_says_how_short_turns_become_where_a_trial_measures_briefly(tmp_path: Path) -> None:
    made = plan(tmp_path)
    brief = replace(made, measure=replace(made.measure, until=Span(seconds=1.4)))
    (told,) = in_words(brief, made.platform)
    assert "take turns of 200 ms," in told


def test_partners_of_a_cell_are_all_of_its_work(tmp_path: Path) -> None:
    made = plan(tmp_path)
    key = made.cells[0].key
    assert with_partners(made, made.platform, {key}) == {one.key for one in made.cells}
    alone = changed(made, content="pictures")
    assert with_partners(alone, made.platform, {key}) == {key}
    off = plan(tmp_path, turns="false")
    assert with_partners(off, made.platform, {key}) == {key}


def test_turns_are_taken_unless_a_study_says_otherwise(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(turns="true").replace("turns = true", ""))
    assert make_plan(load_study(study), load_platform()).measure.turns


def test_a_length_of_turns_that_nobody_takes_is_refused(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(turns='false\nturn = "2 s"'))
    with pytest.raises(FaultyFile, match=r"study\.toml:8: measure\.turn: says nothing"):
        load_study(study)
