"""Give programs what the terminal gives people."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.analysis import tables
from harness.sections import all_tables
from harness.verdicts.results import Results
from reports.text.answer import answer


def records(table: tables.Table) -> list[dict[str, Any]]:
    """Turn a table into one object per row."""
    heads, rows = tables.flat(table)
    return [dict(zip(heads, row, strict=True)) for row in rows]


def summary(results: Results) -> dict[str, Any]:
    """Say the answer, the warnings and the rankings as plain values."""
    told = answer(results)
    return {
        "version": 1,
        "title": results.title,
        "question": told.question,
        "answers": [
            {"workload": workload or None, "answer": text} for workload, text in told.sentences
        ],
        "cards": [asdict(card) for card in told.cards],
        "warnings": list(told.warnings),
        "ranking": records(all_tables.ranking(results)),
    }
