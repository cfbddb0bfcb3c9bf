"""This file is a process that takes checkpoints until it kills itself with SIGKILL at a moment.

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
from types import FrameType
from typing import Any

from harness.node.checkpoints import kept
from harness.node.checkpoints.asked import Asked
from harness.node.checkpoints.plain import PlainState
from harness.node.checkpoints.series import Series
from harness.node.place import Place

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


def main(folder: str, stage: str | None = None, number: int = 0) -> None:
    kept.CHUNK = _PIECE
    asked = Asked(1, f"{folder}/slow", f"{folder}/fast", is_the_work=False)
    state = InPieces(STATE_BYTES, 1, {})
    series = Series(asked, state, Place(0, 1, 0, 1, "here", "none"))
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
        print(step, flush=True)
    series.finish()
    sys.setprofile(None)
    print(json.dumps(moments.calls))


if __name__ == "__main__":
    if sys.argv[2:]:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1])
