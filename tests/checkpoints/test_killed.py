"""This file kills a process with SIGKILL at seeded moments of its checkpoints, then restores.

``python -m tests.checkpoints.test_killed 200`` does it 200 times and prints where the kills fell.
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

from harness.node.checkpoints import kept
from harness.node.checkpoints.asked import Asked
from harness.node.checkpoints.plain import PlainState
from harness.node.checkpoints.series import Series
from harness.node.place import Place
from tests.checkpoints.saving import STATE_BYTES, STEPS

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
    """Count the moments there are, stage by stage, in a process that is left alone."""
    whole = saved_by(folder)
    assert whole.returncode == 0, whole.stderr
    counted: Mapping[str, int] = json.loads(whole.stdout.splitlines()[-1])
    assert min(counted.values()) > 0
    return counted


def killed(folder: Path, stage: str, number: int) -> None:
    """Kill a process at a moment; a true checkpoint restores, none that was reported is lost."""
    ended = saved_by(folder, stage, str(number))
    assert ended.returncode == -9, (stage, number, ended.stderr)
    reported = int((ended.stdout.split() or ["1"])[-1])
    places = [str(folder / "fast"), str(folder / "slow")]
    found = kept.newest(places)
    assert found is not None, (stage, number)
    assert reported <= found.step <= reported + 1, (stage, number)
    assert _holds(found), (stage, number)
    goes_on = Series(
        Asked(1, places[1], places[0], is_the_work=False), _state(), Place(0, 1, 0, 1, "", "")
    )
    goes_on.finish()
    left = [path.name for place in places for path in Path(place).glob(".*")]
    assert left == []
    again = kept.newest([places[1]])  # drained by whoever went on
    assert again is not None
    assert again.step == found.step
    assert _holds(again)
    goes_on.close()


def _state() -> PlainState:
    return PlainState(STATE_BYTES, 1, {})


def _holds(found: kept.Kept) -> bool:
    """Tell whether a checkpoint holds the state of its step and no other."""
    restored, expected = _state(), _state()
    restored.restore(found.folder)
    for _ in range(found.step):
        expected.step()
    return restored.digest() == expected.digest()


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


def test_the_process_that_is_killed_ends_well_when_left_alone(
    counted: Mapping[str, int], tmp_path: Path
) -> None:
    assert saved_by(tmp_path, "save", str(counted["save"] * 9)).returncode == 0
    found = kept.newest([str(tmp_path / "slow")])
    assert found is not None
    assert found.step == STEPS


def main(times: int) -> None:
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


if __name__ == "__main__":
    main(int(sys.argv[1]))
