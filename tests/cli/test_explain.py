"""The verb `explain`, on a recorded run of torch and JAX."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.analysis.read import read_results
from reports.page.files import write_page
from tests.cli.command import bakeoff

SVG = "{http://www.w3.org/2000/svg}"
RECORDED = Path(__file__).parents[1] / "store" / "recorded" / "attributed"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give the recorded run as if its machine had been as busy while steps were traced."""
    copy = tmp_path / "attributed"
    shutil.copytree(RECORDED, copy)
    for cell in read_results([copy]).cells:
        assert cell.rate is not None
        step_s = cell.scale.batch_per_step / cell.rate.value
        events = copy / "cells" / cell.key / "attribution" / "events.0.jsonl"
        lines = [json.loads(line) for line in events.read_text().splitlines()]
        for one in lines:
            if one["event"] == "attribution":
                middle = sorted(one["step_s"])[len(one["step_s"]) // 2]
                one["step_s"] = [traced * step_s / middle for traced in one["step_s"]]
        events.write_text("\n".join(map(json.dumps, lines)))
    return copy


def explained(run: Path, *cells: str) -> dict[str, Any]:
    told = bakeoff("explain", str(run), *cells, "--json", cwd=run.parent)
    assert told.returncode == 0, told.stderr
    answer: dict[str, Any] = json.loads(told.stdout)
    return answer


def test_the_parts_of_a_difference_add_up_and_unnamed_work_is_little(run: Path) -> None:
    told = explained(run, "torch", "jax")
    assert (told["first"], told["second"]) == ("jax", "torch")
    difference_s = told["first_step_s"] - told["second_step_s"]
    assert sum(one["difference_s"] for one in told["parts"]) == pytest.approx(difference_s)
    last = told["parts"][-1]
    assert last["phase"] == "unexplained"
    assert abs(last["difference_s"]) < 0.1 * difference_s
    first = told["parts"][0]
    assert (first["site"], first["phase"]) == ("pool1", "backward")
    assert "fusion s32 16x32x32x16" in first["first_operations"]
    assert "max_pool2d_with_indices_backward" in first["second_operations"]


def test_a_person_reads_the_account_and_the_page_has_it(run: Path) -> None:
    told = bakeoff("explain", str(run), "jax", "torch", cwd=run.parent)
    assert told.returncode == 0
    assert "pool1, backward" in told.stdout
    assert "× as long" in told.stdout
    write_page([run], run / "report.html")
    page = (run / "report.html").read_text()
    assert "Why cells are slower" in page
    assert "pool1, backward" in page


def test_a_figure_leads_from_the_faster_step_to_the_slower_one_part_by_part(run: Path) -> None:
    told = bakeoff("export", str(run), "--to", "svg", "--figure", "why", cwd=run.parent)
    assert told.returncode == 0, told.stderr
    drawn = ElementTree.fromstring(told.stdout)
    words = ["".join(one.itertext()) for one in drawn.iter(f"{SVG}text")]
    parts = explained(run, "torch", "jax")["parts"]
    names = ["torch", *(f"{one['site']}, {one['phase']}" for one in parts if one["site"]), "jax"]
    assert [word for word in words if word in names] == names
    assert "unexplained" in words
    begin, end = (float(one.attrib["cx"]) for one in drawn.iter(f"{SVG}circle"))
    bars = [one for one in drawn.iter(f"{SVG}rect") if one.attrib.get("height") == "15"]
    assert len(bars) == len(parts)
    first, *_ = bars
    share = parts[0]["difference_s"] / sum(one["difference_s"] for one in parts)
    assert float(first.attrib["x"]) == pytest.approx(begin, abs=0.2)
    assert float(first.attrib["width"]) == pytest.approx(share * (end - begin), abs=0.2)


def test_a_traced_step_unlike_the_timed_one_is_refused(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "attributed")
    told = bakeoff("explain", "attributed", "jax", "torch", cwd=tmp_path)
    assert told.returncode == 1
    assert "disturbed" in told.stdout


def test_a_cell_that_is_not_there_is_answered_with_those_that_are(run: Path) -> None:
    told = bakeoff("explain", str(run), "torhc", "jax", cwd=run.parent)
    assert told.returncode == 2
    assert "Did you mean 'torch'?" in told.stderr


def test_one_cell_is_not_explained_by_itself(run: Path) -> None:
    told = bakeoff("explain", str(run), "torch", "torch", cwd=run.parent)
    assert told.returncode == 1
    assert "the same cell twice" in told.stdout
