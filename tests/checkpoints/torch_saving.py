"""A process of torch's environment: its children save with torch.save and are killed.

``python -m tests.checkpoints.torch_saving FOLDER TIMES``: so many, each forked, killed just before
a seeded call into C, and restarted from here. Prints at which moments of each stage they were.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from harness.worker.adapters.torch.saver import TorchSaver
from tests.checkpoints.saving import restarted, saved

STAGES = ("save", "drain", "rename")


class State(TorchSaver):
    """A layer and its optimiser with momentum; a step changes every number of both."""

    def __init__(self) -> None:
        network = torch.nn.Linear(512, 256)
        for one in network.parameters():
            one.data.fill_(0.5)
        optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        settings = SimpleNamespace(device="cpu")
        trainer: Any = SimpleNamespace(
            network=network, optimiser=optimiser, scaler=scaler, settings=settings
        )
        super().__init__(trainer)

    def step(self) -> None:
        """Train on a gradient of ones."""
        for one in self._trainer.network.parameters():
            one.grad = torch.ones_like(one)
        self._trainer.optimiser.step()


def forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own; give the signal that ended it, 0 for none."""
    child = os.fork()
    if not child:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def said(path: str, words: object) -> None:
    """Leave word that outlives a kill, and is never half there."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123 - on the node side
        json.dump(words, file)
    os.replace(f"{path}.new", path)  # noqa: PTH105 - on the node side


def heard(path: str, otherwise: Any) -> Any:
    """Read what was left."""
    if not os.path.exists(path):  # noqa: PTH110 - on the node side
        return otherwise
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - on the node side
        return json.load(file)


def killed(folder: str, stage: str, number: int) -> None:
    """Kill a saving process at a moment, and restart."""
    told = f"{folder}.told"
    ended = forked(
        lambda: saved(folder, State(), lambda step: said(told, step), stage, number) and None
    )
    assert ended == signal.SIGKILL, (stage, number, ended)
    restarted(folder, heard(told, 1), State)


def main(folder: str, times: int) -> None:
    """Kill so often, the stages by turns."""
    torch.set_num_threads(1)
    whole, draw = f"{folder}/whole", random.Random(8)
    forked(lambda: said(f"{whole}.calls", saved(whole, State(), lambda step: None, None, 0)))
    counted = heard(f"{whole}.calls", {})
    moments: dict[str, list[int]] = {stage: [] for stage in STAGES}
    for turn in range(times):
        stage = STAGES[turn % len(STAGES)]
        number = draw.randrange(counted[stage])
        killed(f"{folder}/{turn}", stage, number)
        moments[stage].append(number)
    print(json.dumps(moments))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
