"""The tables of ``make mutations`` show what was missed, and which seeds were refused."""

from __future__ import annotations

from typing import Any

from tests.mutations import tables


def fault(framework: str, named: str | None, *, passed: bool = True) -> dict[str, Any]:
    told = {"fault": "half the batch", "by": "the proof", "named": named}
    return {"test": framework, "framework": framework, **told, "passed": passed}


def seed(number: int, error: float | None) -> dict[str, Any]:
    told = {"way": "jax", "network": "tinycnn", "seed": number, "bar": "1e-03", "error": error}
    return {"test": str(number), **told, "passed": error is not None}


def test_a_fault_that_was_missed_or_named_otherwise_shows_in_its_row() -> None:
    found = [fault("torch", "a | b"), fault("jax", None, passed=False)]
    table = tables.planted([*found, fault("keras", "c", passed=False)])
    where = "jax (**missed**), keras (**named otherwise**), torch"
    assert f"| half the batch | {where} | the proof | c |" in table
    assert "1 faults, planted 3 times (jax 1, keras 1, torch 1): 2 caught, 1 named." in table


def test_a_seed_that_was_refused_counts_against_its_network() -> None:
    table = tables.seeded([seed(1, 2e-4), seed(2, None), seed(3, 3e-4), fault("jax", "c")])
    assert "| jax | tinycnn | 2 of 3 | 3e-04 | 1e-03 |" in table
    assert "2 of 3 trials of clean networks proved." in table


def test_a_test_that_broke_off_is_named_where_no_table_has_it() -> None:
    assert tables.untold([]) == ""
    told = tables.untold(["tests/a.py::test[torch: half the batch]"])
    assert "1 failed before they told what they found:" in told
    assert "tests/a.py::test[torch: half the batch]" in told
