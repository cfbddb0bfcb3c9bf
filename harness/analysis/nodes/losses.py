"""Read the losses of a screen's trials, which its fingerprint compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.store.dataset import Dataset

_LOSSES = """select cell_key, trial, rank, step, value from "values" where name = 'loss'"""


def losses(dataset: Dataset) -> Sequence[tuple[Any, ...]]:
    """Give cell, trial, rank, step and value of each loss."""
    rows: Sequence[tuple[Any, ...]] = dataset.sql(_LOSSES).rows
    return rows
