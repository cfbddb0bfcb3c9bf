"""These tests follow docs/method.md as a reader would: its queries and its thresholds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.stats.verdict import THRESHOLDS
from harness.store.analyse import analyse
from harness.store.dataset import Dataset
from tests.runs import Behaviour, RecordedCell, write_run

DOCUMENT = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", DOCUMENT, re.DOTALL)
TORCH = RecordedCell()
JAX = replace(TORCH, framework="jax", behaviour=Behaviour(step_s=0.03))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset([write_run(tmp_path, [TORCH, JAX])])


def ask(dataset: Dataset, number: int) -> tuple[object, ...]:
    query = QUERIES[number].replace("KEY", JAX.key).replace("FROM\n", "0\n")
    return dataset.sql(query.replace("'REFERENCE'", f"'{TORCH.key}'")).rows[0]


def test_a_reader_recomputes_three_figures(dataset: Dataset) -> None:
    jax = next(cell for cell in analyse(dataset).cells if cell.framework == "jax")
    assert {trial.steady_from for trial in jax.trials} == {0}
    assert jax.rate is not None
    assert jax.rate.interval is not None
    assert jax.comparison is not None
    assert ask(dataset, 0)[0] == pytest.approx(jax.trials[0].rate)
    assert ask(dataset, 1) == pytest.approx(
        (jax.rate.value, jax.rate.interval.low, jax.rate.interval.high)
    )
    assert ask(dataset, 2)[0] == pytest.approx(jax.comparison.ratio)


def test_every_threshold_is_in_the_table() -> None:
    for limit in THRESHOLDS.values():
        value = f"{limit.value:g}" if limit.value >= 1 else f"{limit.value * 100:g} %"
        row = rf"\| {limit.verdict} \| {limit.name}: .* \| {value} \|"
        assert re.search(row, DOCUMENT), limit.name
