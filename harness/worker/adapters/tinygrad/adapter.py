"""Open tinygrad for a worker: its versions, its activity, its doors for the gate.

Defaults and why: the CPU backend, whose kernels clang compiles; as many threads as the rank may
use; no search for faster kernels (BEAM), since its time depends on the machine's noise.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional

from harness.worker.facts.multiplications import Count, Uncounted, calls_per_step
from harness.worker.facts.resources import threads
from harness.worker.feed import Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.job import Job
from harness.worker.network.layers import Conv
from harness.worker.network.sequence_layers import Embedding
from harness.worker.network.workload import Training
from harness.worker.place import Place


class TinygradActivity:
    """Train on one batch that stays on the device."""

    def __init__(self, workload: Training, feed: Feed) -> None:
        from tinygrad import Device, TinyJit

        from harness.worker.adapters.tinygrad.training import Trainer, draw_batch, draw_texts

        self._trainer = Trainer(workload, feed.seed)
        shape = (feed.batch_per_rank, *feed.input)
        if feed.vocabulary is None:
            self._given = draw_batch(self._trainer, shape, feed.targets, feed.seed + 1)
        else:
            self._given = draw_texts(feed)
        self.captured = TinyJit(
            lambda: self._trainer.step(self._given["x"], self._given["target"], feed.batch_per_step)
        )
        self._asked = _kernels_asked(self.captured)
        self._device = Device[Device.DEFAULT]
        self._loss: Any = None
        self.units: Mapping[str, float] = {workload.unit: feed.work_per_rank}

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
        """Give the value back: one rank has nobody to agree with."""
        return value

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set, in place, what is given: a capture holds the buffers."""
        self._trainer.load(state)

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace the batch, in place."""
        from harness.worker.adapters.tinygrad.training import array_of, put

        put(self._given["x"], array_of(given))
        put(self._given["target"], array_of(target))

    def fed(self) -> Iterator[Made]:
        """Give the batch that the next step takes."""
        from harness.worker.adapters.tinygrad.training import made

        yield made("input", self._given["x"], "float32")
        yield made("target", self._given["target"], "float32")

    def state(self) -> Iterator[Made]:
        """Give what is trained."""
        return self._trainer.state()

    def multiplications(self) -> Count:
        """Count those of the kernels that a step replays, by what each was compiled from."""
        from tinygrad.codegen import to_program

        from harness.worker.adapters.tinygrad import products

        layers = [site.layer for site in self._trainer.net.sites.values()]
        if any(_skips(layer) for layer in layers):
            raise Uncounted(
                "in gradients of convolutions that skip places tinygrad multiplies zeros too"
            )
        if any(isinstance(layer, Embedding) for layer in layers):
            raise Uncounted("in tinygrad a token's row is a sum over its whole table")
        by = "the kernels that tinygrad captured"
        calls = calls_per_step(self, "captured")
        if not calls:
            return Count(0, by)
        made = {to_program(kernel, self.renderer()): kernel for kernel in self._asked}
        each = 0
        for program in programs(self.captured):
            if program not in made:
                raise Uncounted("tinygrad replays a kernel that it was not seen to compile")
            each += products.macs(made[program])
        return Count(round(each * calls), by)

    def mark(self, mark: Any) -> None:
        """Mark layers, loss and update in what is captured from now on."""
        self._trainer.net.mark = mark

    def renderer(self) -> Any:
        """Give what kernels are compiled by."""
        return self._device.renderer

    def device(self) -> str:
        """Name what holds the parameters."""
        return str(next(iter(self._trainer.parameters.values())).device)

    def parameters(self) -> int:
        """Count what is trained."""
        return sum(int(tensor.numel()) for tensor in self._trainer.parameters.values())


class TinygradAdapter:
    """tinygrad in this process."""

    def __init__(self) -> None:
        self._activity: Optional[TinygradActivity] = None

    def versions(self) -> Mapping[str, str]:
        """Name tinygrad and what stands below it."""
        from importlib.metadata import version

        import numpy

        return {"tinygrad": version("tinygrad"), "numpy": numpy.__version__}

    def activity(
        self, workload: Training, feed: Feed, options: Mapping[str, Any]
    ) -> TinygradActivity:
        """Lower a network to one captured training step."""
        self._activity = TinygradActivity(workload, feed)
        return self._activity

    def examine(self, workload: Training, precision: str) -> Any:
        """Open a network to the gate."""
        from harness.worker.adapters.tinygrad.subject import TinygradSubject

        return TinygradSubject(workload, precision)

    def probe(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Dict[str, Any]:
        """Say which kernels a captured step replays."""
        activity = self.activity(workload, feed, options)
        for _ in range(3):
            activity.step()
        activity.sync()
        ran = kernels(activity.captured)
        return dict(self.facts(), kernels_per_step=len(ran), distinct_kernels=len(set(ran)))

    def attribute(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Divide a few steps among the layers."""
        from harness.worker.adapters.tinygrad.attribution import attribute

        return attribute(self.activity(workload, feed, options), workload.network)

    def facts(self) -> Mapping[str, Any]:
        """Say what was used."""
        from tinygrad import Device
        from tinygrad.helpers import BEAM, NUM_CPU_THREADS

        facts = {
            "renderer": type(Device[Device.DEFAULT].renderer).__name__,
            "threads": NUM_CPU_THREADS.value,
            "beam": BEAM.value,
            "layout": "channels-first",
        }
        if self._activity is not None:
            device = self._activity.device()
            facts.update(device="cpu" if device == "CPU" else "gpu", device_name=device)
        return facts

    def close(self) -> None:
        """Release nothing."""


def kernels(captured: Any) -> List[str]:
    """Name the kernels of a capture, in order."""
    return [program.arg.name for program in programs(captured)]


def programs(captured: Any) -> List[Any]:
    """Give the kernels of a capture as they were compiled, in order."""
    from tinygrad.uop.ops import Ops

    calls = [call.src[0] for call in captured.captured._linear.toposort() if call.op is Ops.CALL]
    return [program for program in calls if program.op is Ops.PROGRAM]


def _skips(layer: Any) -> bool:
    """Tell whether a layer is a convolution whose windows leave places out between them."""
    return isinstance(layer, Conv) and layer.kernel < layer.stride


def _kernels_asked(jit: Any) -> List[Any]:
    """Keep what is to be computed, as a step is captured: compiled kernels do not tell it."""
    asked: List[Any] = []
    capture = jit.add_linear

    def kept(linear: Any, *more: Any) -> None:
        asked.extend(call.src[0] for call in linear.src if call.src[0].op.name == "SINK")
        capture(linear, *more)

    jit.add_linear = kept
    return asked


def open(job: Job, place: Place) -> TinygradAdapter:  # noqa: A001 - the contract's name
    """Set what tinygrad reads when it is imported."""
    os.environ["DEV"] = "CPU"
    os.environ["BEAM"] = "0"  # the user's own would search in one study, and not in the next
    os.environ["NUM_CPU_THREADS"] = str(threads(job.factors))
    return TinygradAdapter()
