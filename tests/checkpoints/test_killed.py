"""Kill a process with SIGKILL at seeded moments of its checkpoints, then restores.

``python -m tests.checkpoints.test_killed 200`` does it 200 times and prints where the kills fell;
``… 200 60`` kills torch.save 60 times more, in torch's environment.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.worker.checkpoints import checkpoint_files
from tests import needs
from tests.checkpoints.saving import STEPS, plain, restarted

pytestmark = pytest.mark.io

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("save", "drain", "rename")
FEW = 7
"""Of each stage in the suite: 21 in all."""


def saved_by(folder: Path, *moment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.checkpoints.saving", str(folder), *moment],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


def calls(folder: Path) -> Mapping[str, int]:
    """Count the moments there are, stage by stage, in a process that is left alone.

    Its threads meet otherwise each time: the last tenth may not come in another one.
    """
    whole = saved_by(folder)
    assert whole.returncode == 0, whole.stderr
    counted: Mapping[str, int] = json.loads(whole.stdout.splitlines()[-1])
    assert min(counted.values()) > 0
    return {stage: max(1, 9 * count // 10) for stage, count in counted.items()}


def killed(folder: Path, stage: str, number: int) -> None:
    """Kill a process at a moment, and restart."""
    ended = saved_by(folder, stage, str(number))
    assert ended.returncode == -9, (stage, number, ended.stderr)
    restarted(str(folder), int((ended.stdout.split() or ["1"])[-1]), plain)


def killed_torch(python: Path, folder: Path, times: int) -> Mapping[str, list[int]]:
    """Kill torch.save so often; give the moments of each stage at which it was."""
    asked = [str(python), "-m", "tests.checkpoints.torch_saving", str(folder), str(times)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    moments: Mapping[str, list[int]] = json.loads(done.stdout.splitlines()[-1])
    return moments


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, int]:
    return calls(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_true_checkpoint_restores_after_a_kill_at_any_moment(
    stage: str, counted: Mapping[str, int], tmp_path: Path
) -> None:
    draw = random.Random(f"{stage} 8")
    for turn, number in enumerate(draw.choices(range(counted[stage]), k=FEW)):
        killed(tmp_path / str(turn), stage, number)


def test_what_torch_saves_restores_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    moments = killed_torch(needs.framework("torch"), tmp_path, 2 * len(STAGES))
    assert [len(moments[stage]) for stage in STAGES] == [2, 2, 2]


def test_the_process_that_is_killed_ends_well_when_left_alone(
    counted: Mapping[str, int], tmp_path: Path
) -> None:
    assert saved_by(tmp_path, "save", str(counted["save"] * 9)).returncode == 0
    found = checkpoint_files.newest([str(tmp_path / "slow")])
    assert found is not None
    assert found.step == STEPS


def main(times: int, of_torch: int = 0) -> None:
    """Kill many times; print how often in which stage, and how far into it."""
    draw, seen = random.Random(8), Counter[tuple[str, int]]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted = calls(folder / "whole")
        for turn in range(times):
            stage = STAGES[turn % len(STAGES)]
            number = draw.randrange(counted[stage])
            killed(folder / str(turn), stage, number)
            seen[stage, 10 * number // counted[stage]] += 1
    print(f"{times} kills; each time a complete, true checkpoint restored, and went on")
    for stage in STAGES:
        tenths = [seen[stage, tenth] for tenth in range(10)]
        shares = " ".join(f"{count:3}" for count in tenths)
        print(f"{stage:7} {sum(tenths):4} of {counted[stage]:4} moments; by tenth: {shares}")
    if not of_torch:
        return
    with tempfile.TemporaryDirectory() as name:
        moments = killed_torch(needs.framework("torch"), Path(name), of_torch)
    print(f"{of_torch} kills of torch.save; each time a true checkpoint restored, and went on")
    for stage in STAGES:
        print(f"{stage:7} {len(moments[stage]):4}, at moments {sorted(moments[stage])}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
