"""Fill a small file system with checkpoints: a clear error, and nothing corrupt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.worker.checkpoints import checkpoint_files
from harness.worker.checkpoints.plain import PlainState
from harness.worker.checkpoints.request import Asked
from harness.worker.checkpoints.series import Full, Series
from harness.worker.place import Place
from tests.needs import missing

pytestmark = pytest.mark.io

SIZE = 1 << 20
ROOM = "2600k"
"""Two checkpoints fit, and half of a third."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        missing("the right to mount a small file system", "run the tests as root")
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)]
    subprocess.run(mounting, check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def series(state: PlainState, to: Path, through: Path | None = None) -> Series:
    asked = Asked(1, str(to), None if through is None else str(through), is_the_work=False)
    return Series(asked, state, Place(0, 1, 0, 1, "here", "none"))


def taken(one: Series, state: PlainState, step: int) -> None:
    state.step()
    one.save(step)
    one.finish()


def newest(*places: Path) -> int:
    found = checkpoint_files.newest(map(str, places))
    assert found is not None
    fresh = PlainState(SIZE, 1, {})
    fresh.restore(found.folder)
    assert fresh.steps == found.step
    return found.step


@pytest.mark.parametrize("is_through", [False, True], ids=["straight", "while draining"])
def test_a_full_tier_is_named_and_the_checkpoints_before_stay_true(
    small: Path, tmp_path: Path, is_through: bool
) -> None:
    state, fast = PlainState(SIZE, 1, {}), tmp_path / "fast"
    one = series(state, small / "to", fast if is_through else None)
    for step in (1, 2):
        taken(one, state, step)
    with pytest.raises(Full) as told:
        taken(one, state, 3)
    assert "No space left on device; the checkpoint of step 3 did not fit" in str(told.value)
    assert str(small) in str(told.value)
    assert [each.step for each in checkpoint_files.complete(str(small / "to"))] == [2, 1]
    assert newest(small / "to") == 2
    assert not [*(small / "to").glob(".*")]
    if is_through:
        assert newest(fast, small / "to") == 3
    one.close()
