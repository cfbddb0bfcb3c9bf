"""Hold each framework's savers to bringing back the state of their moment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.adapters.interpreter import python

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = 10_154
MOMENTS = 1

pytestmark = pytest.mark.framework


@pytest.mark.parametrize(
    ("environment", "name", "savers"),
    [
        ("torch", "torch", ("save", "distributed", "distributed-async")),
        ("tensorflow", "tensorflow", ()),
        ("tensorflow@1.15", "tensorflow", ()),
        ("jax[orbax]", "jax", ("orbax", "orbax-async")),
    ],
)
def test_what_is_restored_is_the_state_that_was_saved(
    environment: str, name: str, savers: tuple[str, ...], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [
            python(environment),
            "-m",
            "tests.adapters.savers_inside",
            str(tmp_path),
            name,
            *savers,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert len(told) == max(1, len(savers))
    for one in told:
        assert one["changed"]
        assert one["restored"]
        assert one["true"]
        assert one["tier"] == "/slow/step-1"
        assert one["bytes"] >= 4 * WEIGHTS * (1 + MOMENTS)
