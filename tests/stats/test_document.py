"""These tests follow docs/method.md as a reader would: its queries and its thresholds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.analysis.read import read_results
from harness.cli.verbs.sql import command as sql
from harness.verdicts.thresholds import THRESHOLDS
from reports.page.page import render
from tests.runs import Behaviour, RecordedCell, write_run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
TORCH = RecordedCell()
JAX = replace(TORCH, framework="jax", behaviour=Behaviour(step_s=0.03))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path, [TORCH, JAX])


def ask(run: Path, number: int) -> dict[str, float]:
    """Type a query of the document, with its capitals replaced as it says."""
    query = QUERIES[number].replace("'KEY'", f"'{JAX.key}'").replace("FROM\n", "0\n")
    query = query.replace("'REFERENCE'", f"'{TORCH.key}'")
    answer = CliRunner().invoke(sql, [str(run), query, "--json"])
    assert answer.exit_code == 0, answer.output
    (row,) = json.loads(answer.output)
    return dict(row)


def test_a_reader_recomputes_three_figures_of_the_page(run: Path) -> None:
    page = render(read_results([run]))
    shown = {float(text) for text in re.findall(r'data-v="([-0-9.e+]+)"', page)}
    trial, cell, ratio = ask(run, 0), ask(run, 1), ask(run, 2)
    for value in (trial["rate"], cell["rate"], ratio["ratio"]):
        assert any(value == pytest.approx(one, rel=1e-5) for one in shown), value
    interval = f"[{cell['low']:.0f}, {cell['high']:.0f}]"
    assert interval in page


def test_every_threshold_is_in_the_table() -> None:
    for limit in THRESHOLDS.values():
        is_share = limit.value < 1 and "seconds" not in limit.meaning
        value = f"{limit.value * 100:g} %" if is_share else f"{limit.value:g}"
        row = rf"\| {limit.verdict} \| {limit.name}: .* \| {value} \|"
        assert re.search(row, DOCUMENT), limit.name
