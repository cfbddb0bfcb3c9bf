"""This file opens tinygrad for a worker: its versions, its activity, its doors for the gate.

Defaults and why: the CPU backend, whose kernels clang compiles; as many threads as the rank may
use; no search for faster kernels (BEAM), since its time depends on the machine's noise.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping

from harness.node.feed import Feed
from harness.node.job import Job
from harness.node.place import Place
from harness.node.resources import threads
from harness.node.workload import Training


class TinygradActivity:
    """Train on one batch that stays on the device."""

    def __init__(self, workload: Training, feed: Feed) -> None:
        from tinygrad import Device, TinyJit

        from harness.node.adapters.tinygrad.training import Trainer, draw_batch

        self._trainer = Trainer(workload, feed.seed)
        shape = (feed.batch, *feed.input)
        self._given = draw_batch(self._trainer, shape, feed.targets, feed.seed + 1)
        self.captured = TinyJit(
            lambda: self._trainer.step(self._given["x"], self._given["target"], feed.global_batch)
        )
        self._device = Device[Device.DEFAULT]
        self._loss: Any = None
        self.units: Mapping[str, float] = {workload.unit: float(feed.batch)}

    def step(self) -> None:
        """Enqueue one step: the first runs, the second is captured, all others are replayed."""
        self._loss = self.captured()

    def sync(self) -> None:
        """Wait for the last step."""
        self._device.synchronize()

    def values(self) -> Mapping[str, float]:
        """Give the last step's loss."""
        return {"loss": float(self._loss.item())}

    def agree(self, value: float) -> float:
        """Be alone."""
        return value

    def parameters(self) -> int:
        """Count what is trained."""
        return sum(int(tensor.numel()) for tensor in self._trainer.parameters.values())


class TinygradAdapter:
    """tinygrad in this process."""

    def versions(self) -> Mapping[str, str]:
        """Name tinygrad and what stands below it."""
        from importlib.metadata import version

        import numpy

        return {"tinygrad": version("tinygrad"), "numpy": numpy.__version__}

    def activity(
        self, workload: Training, feed: Feed, options: Mapping[str, Any]
    ) -> TinygradActivity:
        """Lower a network to one captured training step."""
        return TinygradActivity(workload, feed)

    def examine(self, workload: Training, precision: str) -> Any:
        """Open a network to the gate."""
        from harness.node.adapters.tinygrad.subject import TinygradSubject

        return TinygradSubject(workload, precision)

    def probe(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Dict[str, Any]:
        """Say which kernels a captured step replays."""
        activity = TinygradActivity(workload, feed)
        for _ in range(3):
            activity.step()
        activity.sync()
        ran = kernels(activity.captured)
        return dict(self.facts(), kernels_per_step=len(ran), distinct_kernels=len(set(ran)))

    def facts(self) -> Mapping[str, Any]:
        """Say what was used."""
        from tinygrad import Device
        from tinygrad.helpers import NUM_CPU_THREADS

        return {
            "device": "cpu",
            "device_name": Device.DEFAULT,
            "renderer": type(Device[Device.DEFAULT].renderer).__name__,
            "threads": NUM_CPU_THREADS.value,
            "layout": "channels-first",
        }

    def close(self) -> None:
        """Have nothing to give back."""


def kernels(captured: Any) -> List[str]:
    """Name the kernels of a capture, in order."""
    from tinygrad.uop.ops import Ops

    calls = [call.src[0] for call in captured.captured._linear.toposort() if call.op is Ops.CALL]
    return [program.arg.name for program in calls if program.op is Ops.PROGRAM]


def open(job: Job, place: Place) -> TinygradAdapter:  # noqa: A001 - the contract's name
    """Set what tinygrad reads when it is imported."""
    os.environ["DEV"] = "CPU"
    os.environ["NUM_CPU_THREADS"] = str(threads(job.factors))
    return TinygradAdapter()
