"""What the timed loop steps: a trainer and one batch that stays on the device."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, Tuple

import torch

from harness.worker.adapters.torch import failures
from harness.worker.adapters.torch.lowering.canonical import given_tensor, made
from harness.worker.adapters.torch.training import Trainer
from harness.worker.facts.multiplications import STEPS, Count, Uncounted
from harness.worker.feed import Classes, Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.tokens import texts

HELD_STEPS = 1024


class TrainingActivity:
    """Steps of training on the synthetic batch."""

    def __init__(self, trainer: Trainer, feed: Feed, unit: str) -> None:
        self.units: Mapping[str, float] = {unit: feed.work_per_rank}
        self.trainer = trainer
        self.batch = draw(feed, trainer)
        self._loss: Any = None

    def step(self) -> None:
        """Enqueue one step."""
        try:
            self._loss = self.trainer.step(*self.batch)
        except RuntimeError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        """Return at once: a step on a CPU is done when it returns."""

    def values(self) -> Mapping[str, float]:
        """Give the last step's loss."""
        return {} if self._loss is None else {"loss": float(self._loss)}

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return self.trainer.strategy.agree(value)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set what is trained, in place."""
        self.trainer.load(state)

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace the batch, in place: what was compiled or captured reads there."""
        for own, tensor in zip(self.batch, (given, target)):
            own.copy_(given_tensor(tensor))

    def state(self) -> Iterator[Made]:
        """Give what is trained."""
        return self.trainer.state()

    def fed(self) -> Iterator[Made]:
        """Give the batch that the next step takes."""
        for name, tensor in zip(("input", "target"), self.batch):
            yield made(name, tensor, torch.float32)

    def multiplications(self) -> Count:
        """Count those of a step, by the operators that it dispatches."""
        settings = self.trainer.settings
        if settings.is_compiled and settings.mode != "default":
            raise Uncounted(
                "torch.compile's mode '{}' may multiply in kernels of its own".format(settings.mode)
            )
        from harness.worker.adapters.torch.products import Products  # nothing else needs it

        with Products() as products:
            for _ in range(STEPS):
                self.step()
            self.sync()
        by = "operators that torch dispatched"
        made: Count = products.found.of_step(1 / STEPS, by, in_order=True)
        return made

    def saver(self) -> Any:
        """Give what saves the trainer's state."""
        from harness.worker.adapters.torch.saver import saver

        return saver(self.trainer)

    def parameters(self) -> int:
        """Count what the lowered network learns."""
        return sum(parameter.numel() for parameter in self.trainer.network.parameters())


class MarkedActivity(TrainingActivity):
    """The same on a GPU, with an event before and after each step on the device's own time line."""

    def __init__(self, trainer: Trainer, feed: Feed, unit: str) -> None:
        super().__init__(trainer, feed, unit)
        self._marks: List[Tuple[Any, Any]] = [(_mark(), _mark()) for _ in range(HELD_STEPS)]
        self._taken = 0

    def step(self) -> None:
        """Enqueue one step between two marks."""
        start, end = self._next_marks()
        start.record()
        super().step()
        end.record()

    def sync(self) -> None:
        """Wait for the device."""
        try:
            torch.cuda.synchronize(self.trainer.settings.device)
        except RuntimeError as error:
            raise failures.read(error) from error

    def device_steps(self) -> List[float]:
        """Give the device's seconds of the latest steps since the last call."""
        first = max(0, self._taken - HELD_STEPS)
        marks = [self._marks[number % HELD_STEPS] for number in range(first, self._taken)]
        self._taken = 0
        return [start.elapsed_time(end) / 1e3 for start, end in marks]

    def _next_marks(self) -> Tuple[Any, Any]:
        place = self._taken % HELD_STEPS
        self._taken += 1
        return self._marks[place]


def _mark() -> Any:
    """Make an event before the clock runs: CUDA allocates it when it is first recorded."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def draw(feed: Feed, trainer: Trainer) -> Tuple[torch.Tensor, torch.Tensor]:
    """Draw the rank's batch on its device, in the layout the network wants."""
    device = trainer.settings.device
    generator = torch.Generator(device=device).manual_seed(feed.seed)
    made: Dict[str, Any] = {"generator": generator, "device": device}
    if feed.vocabulary is not None:
        rows = feed.batch_per_rank
        tokens, target = (torch.tensor(one, device=device).reshape(rows, -1) for one in texts(feed))
        return tokens, target
    inputs = trainer.place(torch.randn(feed.batch_per_rank, *feed.input, **made))
    if isinstance(feed.targets, Classes):
        return inputs, torch.randint(feed.targets.count, (feed.batch_per_rank,), **made)
    assert feed.targets is not None
    return inputs, torch.randn(feed.batch_per_rank, feed.targets.length, **made)
