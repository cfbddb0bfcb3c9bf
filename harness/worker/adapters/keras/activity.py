"""What the timed loop steps on JAX and torch: a trainer's step, and one batch on the device."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Tuple

import numpy

from harness.worker.adapters.keras.training import Trainer
from harness.worker.facts.multiplications import Count
from harness.worker.feed import Classes, Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.tokens import texts


class KerasActivity:
    """Steps of training on the synthetic batch."""

    def __init__(self, stepper: Any, feed: Feed, unit: str) -> None:
        self.units: Mapping[str, float] = {unit: feed.work_per_rank}
        self.stepper = stepper
        self._trainer: Trainer = stepper.trainer
        self._arrangement = self._trainer.lowering.arrangement
        self.batch = tuple(stepper.tensor(one) for one in draw(feed, self._arrangement))
        self.stepped = stepper.step
        self._loss: Any = None

    def step(self) -> None:
        """Enqueue one step."""
        self._loss = self.stepped(*self.batch)

    def sync(self) -> None:
        """Wait for the device."""
        self.stepper.wait(self._loss)

    def values(self) -> Mapping[str, float]:
        """Give the last step's loss."""
        return {} if self._loss is None else {"loss": float(self._loss)}

    def agree(self, value: float) -> float:
        """Give it back: there is one rank."""
        return value

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set what is given of parameters, running statistics and the optimiser's."""
        self.stepper.settle()
        for name, parameter, variable, factor in changed_by_step(self._trainer):
            if name in state:
                value = self._arrangement.parameter_in(parameter, array_of(state[name]))
                variable.assign((factor * value).astype(numpy.float32))
        if "step" in state:
            self._trainer.set_step(float(array_of(state["step"])))

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace the batch."""
        x = self._arrangement.activation_in(array_of(given), None)
        self.batch = tuple(self.stepper.tensor(narrow(one)) for one in (x, array_of(target)))

    def state(self) -> Iterator[Made]:
        """Give what is trained."""
        self.stepper.settle()
        for name, parameter, variable, factor in changed_by_step(self._trainer):
            value = self.stepper.array(variable.value) / factor
            value = self._arrangement.parameter_out(parameter, value)
            yield made(name, value, numpy.float32)

    def fed(self) -> Iterator[Made]:
        """Give the batch that the next step takes."""
        x, target = (self.stepper.array(one) for one in self.batch)
        yield made("input", self._arrangement.sample_out(x), numpy.float32)
        yield made("target", target, numpy.float32)

    def multiplications(self) -> Count:
        """Count those of a step."""
        found: Count = self.stepper.multiplications(self)
        return found

    def parameters(self) -> int:
        """Count what the model learns."""
        return sum(int(numpy.prod(one.shape)) for one in self._trainer.variables)


def changed_by_step(trainer: Trainer) -> Iterator[Tuple[str, str, Any, float]]:
    """Give what a step changes: its name, whose it is, the variable, what it is times."""
    arrangement = trainer.lowering.arrangement
    for name in (*arrangement.parameters, *arrangement.statistics):
        yield name, name, trainer.lowering.variable(name), 1.0
    for moment, variables in trainer.kept().items():
        for name, variable in variables.items():
            yield "{}/{}".format(name, moment), name, variable, trainer.moment_factor


def draw(feed: Feed, arrangement: Any) -> Tuple[Any, Any]:
    """Draw a rank's batch; Keras casts numbers to what it computes in."""
    rows, chance = feed.batch_per_rank, numpy.random.default_rng(feed.seed)
    if feed.vocabulary is not None:
        tokens, target = (numpy.array(one, numpy.int32).reshape(rows, -1) for one in texts(feed))
        return tokens, target
    x = chance.standard_normal((rows, *arrangement.sample()), numpy.float32)
    if isinstance(feed.targets, Classes):
        return x, chance.integers(0, feed.targets.count, rows, numpy.int32)
    assert feed.targets is not None
    return x, chance.standard_normal((rows, feed.targets.length), numpy.float32)


def array_of(tensor: Tensor) -> Any:
    """Read a tensor of a folder."""
    return numpy.frombuffer(tensor.items(), tensor.dtype).reshape(tensor.shape)


def narrow(array: Any, numbers: Any = numpy.float32) -> Any:
    """Give an array as a step is fed it: tokens and class numbers as integers."""
    return array.astype(numpy.int32 if array.dtype == numpy.int64 else numbers)


def made(name: str, array: Any, dtype: Any = numpy.float64) -> Made:
    """Give an array as a folder takes it."""
    ordered = numpy.ascontiguousarray(array, dtype)
    return name, numpy.shape(array), ordered
