"""The verb `show` says what holds cells back, and takes one of them apart; so do page and data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import bakeoff as public
from harness.worker.network.shapes import macs_of_step
from reports.page.files import write_page
from tests.cli.command import bakeoff
from tests.cli.test_explain import run as run
from workloads.tinycnn import WORKLOAD


@pytest.fixture
def with_ceilings(run: Path) -> Path:
    under = {"framework": "torch", "environment": "e", "device": "cpu", "precision": "fp32"}
    kernels = (("gemm", "FLOP", 1e11), ("triad", "bytes", 1.5e10))
    listed = [
        {
            "under": {**under, "threads": 1},
            "reached": {"kernel": name, "unit": unit, "per_s": per_s, "cache_bytes": 1 << 25},
            "measured_in": "another/cells/k/ceilings",
            "measured_wall_ns": 1,
        }
        for name, unit, per_s in kernels
    ]
    (run / "ceilings.json").write_text(json.dumps({"version": 1, "ceilings": listed}))
    return run


def taken_apart(run: Path, cell: str) -> dict[str, Any]:
    told = bakeoff("show", str(run), "--cell", cell, "--json", cwd=run.parent)
    assert told.returncode == 0, told.stderr
    answer: dict[str, Any] = json.loads(told.stdout)
    return answer


def test_a_cells_step_is_taken_apart_into_parts_that_add_up(with_ceilings: Path) -> None:
    told = taken_apart(with_ceilings, "jax")
    assert sum(told["phases"].values()) == pytest.approx(1, abs=0.01)
    assert sum(one["share"] for one in told["layers"]) + told["phases"]["host gaps"] == (
        pytest.approx(1, abs=0.01)
    )
    kinds = sum(one["share"] for one in told["operations"])
    assert kinds + told["phases"]["host gaps"] == pytest.approx(1, abs=0.01)
    assert sum(told["causes"].values()) == pytest.approx(1, abs=0.01)
    needed_s = 2 * macs_of_step(WORKLOAD.network) * 16 / 1e11
    assert told["causes"]["computing"] * told["step_s"] == pytest.approx(needed_s)
    assert told["held_back"] == "kernel-bound"
    assert (told["layers"][0]["site"], told["layers"][0]["phase"]) == ("pool1", "backward")


def test_a_person_reads_it_and_the_answer_has_it_in_a_sentence(with_ceilings: Path) -> None:
    told = bakeoff("show", str(with_ceilings), "--cell", "torch", cwd=with_ceilings.parent)
    assert told.returncode == 0
    for words in ("What holds it back: kernel-bound", "By phase:", "Kinds of operations:"):
        assert words in told.stdout
    assert "traced by torch.profiler" in told.stdout
    short = bakeoff("show", str(with_ceilings), cwd=with_ceilings.parent)
    assert "What holds each cell back:" in short.stdout
    assert "kernel-bound" in short.stdout


def test_the_page_its_data_and_the_public_face_say_the_same(with_ceilings: Path) -> None:
    write_page([with_ceilings], with_ceilings / "report.html")
    page = (with_ceilings / "report.html").read_text()
    assert '<td class="held"' in page
    assert "What holds each cell back" in page
    assert "What a step is made of" in page
    loaded = public.load(with_ceilings)
    assert public.load(with_ceilings / "results.json") == loaded
    held = {one.cell: one.held_back for one in loaded.ranking}
    assert held["torch"] is not None
    assert held["torch"].by == "kernel-bound"
    assert sum(held["torch"].shares.values()) == pytest.approx(1, abs=0.01)
    table = bakeoff(
        "export", str(with_ceilings), "--to", "json", "--table", "anatomy", cwd=with_ceilings.parent
    )
    assert {one["cell"] for one in json.loads(table.stdout)} == {"torch", "jax"}


def test_without_ceilings_it_says_what_is_not_known(run: Path) -> None:
    told = taken_apart(run, "torch")
    assert told["held_back"] == "not known"
    assert "nothing measured what kernels reach" in " ".join(told["why_unknown"])


def test_damaged_ceilings_are_named_and_left_out(run: Path) -> None:
    (run / "ceilings.json").write_text('{"version": 1, "ceilings": [{}]}')
    told = bakeoff("show", str(run), cwd=run.parent)
    assert told.returncode == 0
    assert "ceilings.json is damaged" in " ".join(told.stdout.split())


def test_a_cell_that_is_not_there_is_answered_with_those_that_are(run: Path) -> None:
    told = bakeoff("show", str(run), "--cell", "torhc", cwd=run.parent)
    assert told.returncode == 2
    assert "Did you mean 'torch'?" in told.stderr


def test_a_network_whose_step_nothing_divided_is_not_called_untrained(run: Path) -> None:
    for made in run.glob("cells/*/attribution"):
        shutil.rmtree(made)
    told = bakeoff("show", str(run), "--cell", "torch", cwd=run.parent)
    assert told.returncode == 2
    assert "nothing divided it in this run" in told.stderr


def test_what_trains_nothing_has_no_step_to_take_apart(run: Path) -> None:
    other = Path(__file__).parents[1] / "store" / "recorded" / "read"
    (key,) = [one.name for one in (other / "cells").iterdir()]
    told = bakeoff("show", str(other), "--cell", key, cwd=run.parent)
    assert told.returncode == 2
    assert "only networks that are trained do" in told.stderr
