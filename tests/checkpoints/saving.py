"""A process that takes checkpoints until it kills itself with SIGKILL at a moment.

``python -m tests.checkpoints.saving FOLDER [STAGE NUMBER]``: just before the NUMBER-th call into C
of a stage (save: files written, synced, hashed; drain: copied to the slow tier; rename: manifest,
renames and removals on either tier). Each step whose checkpoint was taken is told on stdout.
Without a moment it runs to its end and tells how many calls each stage makes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness.worker.checkpoints import checkpoint_files
from harness.worker.checkpoints.plain import PlainState
from harness.worker.checkpoints.request import Asked
from harness.worker.checkpoints.series import Series
from harness.worker.place import Place

STEPS = 4
STATE_BYTES = 3 << 19
STAGES = {"appear": "rename", "drop": "rename", "drain": "drain", "save": "save", "seal": "save"}
_PIECE = 1 << 18


class InPieces(PlainState):
    """Writes its file piece by piece, so that a kill can tear it."""

    def save(self, folder: str) -> None:
        with open(f"{folder}/state.bin", "wb", buffering=0) as file:  # noqa: PTH123 - on the node side
            for place in range(0, self.bytes, _PIECE):
                file.write(self.state[place : place + _PIECE])


class Moments:
    """Counts calls into C by stage, in whichever thread; ends the process at one of them."""

    def __init__(self, stage: str | None, number: int) -> None:
        self.calls = dict.fromkeys(("save", "drain", "rename"), 0)
        self._at = (stage, number)

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "c_call":
            return
        stage = _stage(frame)
        if stage is None:
            return
        if self._at == (stage, self.calls[stage]):
            os.kill(os.getpid(), signal.SIGKILL)
        self.calls[stage] += 1


def _stage(frame: FrameType | None) -> str | None:
    while frame is not None:
        if "checkpoints" in frame.f_code.co_filename and frame.f_code.co_name in STAGES:
            return STAGES[frame.f_code.co_name]
        frame = frame.f_back
    return None


def series_of(folder: str, state: Any) -> Series:
    """Let a state, which is its own saver, be saved through a fast tier."""
    asked = Asked(1, f"{folder}/slow", f"{folder}/fast", is_the_work=False)
    return Series(asked, state, Place(0, 1, 0, 1, "here", "none"))


def saved(
    folder: str, state: Any, told: Callable[[int], None], stage: str | None, number: int
) -> dict[str, int]:
    """Take checkpoints until the moment comes; count those that there were."""
    checkpoint_files.CHUNK = _PIECE
    series = series_of(folder, state)
    state.step()
    series.save(1)
    series.finish()
    moments = Moments(stage, number)
    threading.setprofile(moments.see)
    series._behind.close()  # its next thread is watched
    sys.setprofile(moments.see)
    for step in range(2, STEPS + 1):
        state.step()
        series.save(step)
        told(step)
    series.finish()
    sys.setprofile(None)
    return moments.calls


def restarted(folder: str, reported: int, make: Callable[[], Any]) -> None:
    """Restart after a kill: a true checkpoint restores, none that was reported is lost."""
    places = [f"{folder}/fast", f"{folder}/slow"]
    found = checkpoint_files.newest(places)
    assert found is not None
    assert reported <= found.step <= reported + 1, (reported, found.step)
    assert _holds(found, make)
    goes_on = series_of(folder, make())
    goes_on.finish()
    left = [name for place in places for name in os.listdir(place) if name.startswith(".")]  # noqa: PTH208 - on the node side
    assert left == []
    again = checkpoint_files.newest(places[1:])  # drained by whoever went on
    assert again is not None
    assert again.step == found.step
    assert _holds(again, make)
    goes_on.close()


def _holds(found: checkpoint_files.Kept, make: Callable[[], Any]) -> bool:
    """Tell whether a checkpoint holds the state of its step and no other."""
    restored, expected = make(), make()
    restored.restore(found.folder)
    for _ in range(found.step):
        expected.step()
    return bool(restored.digest() == expected.digest())


def plain() -> InPieces:
    """Make the state of step 0."""
    return InPieces(STATE_BYTES, 1, {})


if __name__ == "__main__":
    at, moment = sys.argv[1], sys.argv[2:]
    stage, number = (moment[0], int(moment[1])) if moment else (None, 0)
    counted = saved(at, plain(), lambda step: print(step, flush=True), stage, number)
    print(json.dumps(counted))
