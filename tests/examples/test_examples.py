"""The scripts of examples/ run as a reader would run them, on a recorded run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run_example(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", EXAMPLES / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_is_loaded_and_its_cells_are_printed(tmp_path: Path) -> None:
    failing = runs.RecordedCell(framework="jax", outcomes=dict.fromkeys(range(1, 7), "failed"))
    run = runs.write_run(tmp_path, [runs.RecordedCell(), failing])
    done = run_example("load_a_run.py", run)
    assert done.stderr == ""
    answer, _, torch, jax, *trials = done.stdout.splitlines()
    assert answer.startswith("torch reaches 7")
    assert torch.startswith("tinycnn · torch")
    assert "images/s  [" in torch
    assert jax.split()[-1] == "–"
    assert trials == [f"{failing.label}, block {block}: failed, None" for block in range(1, 7)]


def test_a_mistake_is_told_in_a_sentence(tmp_path: Path) -> None:
    done = run_example("load_a_run.py", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "there is no such run" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_example_is_run_by_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))
