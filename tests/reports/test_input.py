"""This file holds what a ladder concludes: which rung loses most, and what that is called."""

from __future__ import annotations

import pytest

from reports.input import BYTES, LOADER, MODEL, PARSED, bottleneck


@pytest.mark.parametrize(
    ("rates", "compute", "is_cold", "said"),
    [
        ({BYTES: 100.0, PARSED: 98.0}, None, True, "storage-bound"),
        ({BYTES: 100.0, PARSED: 60.0}, None, True, "CPU-bound"),
        ({BYTES: 100.0, PARSED: 98.0}, None, False, "CPU-bound"),
        ({BYTES: 100.0, LOADER: 80.0, MODEL: 9.8}, 10.0, True, "compute-bound"),
        ({BYTES: 100.0, LOADER: 98.0, MODEL: 97.0}, 500.0, True, "storage-bound"),
        ({BYTES: 100.0, LOADER: 50.0, MODEL: 48.0}, 500.0, True, "CPU-bound"),
        ({LOADER: 50.0, MODEL: 20.0}, 60.0, True, "CPU-bound"),
        ({MODEL: 20.0}, 60.0, True, ""),
        ({BYTES: 100.0}, None, True, ""),
    ],
)
def test_the_bottleneck_is_the_rung_that_loses_most(
    rates: dict[int, float], compute: float | None, is_cold: bool, said: str
) -> None:
    assert bottleneck(rates, compute, is_cold=is_cold) == said
