"""Train with parameter servers: one graph, whose variables lie in all ranks' memory.

    every rank      read what is learned → gradients → push each to where its variable lies
    first rank      once all have pushed: take the mean, update there, answer all
    every rank      wait for the answer

What is learned is dealt out over the ranks, each variable to the rank that holds least so far.
Batch norm normalises each rank's own batch; its running statistics lie with the rank.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import numpy
import tensorflow.compat.v2 as tf

from harness.worker.adapters.tensorflow import failures
from harness.worker.adapters.tensorflow.activity import changed_by_step, draw, own
from harness.worker.adapters.tensorflow.lowering.network import Lowering
from harness.worker.adapters.tensorflow.optimiser import Update
from harness.worker.adapters.tensorflow.strategies.servers import ParameterServers
from harness.worker.adapters.tensorflow.subject import TensorFlowSubject, array_of, made
from harness.worker.adapters.tensorflow.training import LoweredSubject, Trainer
from harness.worker.contracts import Unsupported
from harness.worker.feed import Feed
from harness.worker.gate.rank_equality import share
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.workload import Training, clip

NEVER_STALE = 2**62  # nobody begins a step before the answer to the last, so none is
FIRST = 0


class ServedTrainer(Trainer):
    """A trainer of the graph that is being built."""

    strategy: ParameterServers

    def build(self, x: Any, target: Any, is_dropping: bool) -> Tuple[Any, Any]:
        """Give what trains one step, and its loss."""
        with tf.device(self.strategy.here):
            now, _, mean, gradients = self.gradients(x, target, is_dropping)
            moved = [self.values[name].assign(value).op for name, value in now.moved.items()]
        exchange = self._together if self.strategy.communicates else self._alone
        return tf.group(*moved, *exchange(gradients)), mean

    def start(self) -> None:
        """Give variables their values, each by the rank it belongs to, and wait for all."""
        self.strategy.session.run([one.initializer for one in self.mine()])
        self.strategy.agree(0.0)

    def moments(self) -> Dict[str, Dict[str, Any]]:
        """Give what the optimisers keep of each parameter, wherever it lies."""
        found: Dict[str, Dict[str, Any]] = {}
        for update in self._updates.values():
            for moment, slots in update.moments().items():
                found.setdefault(moment, {}).update(slots)
        return found

    def powers(self, updates: float) -> Iterator[Tuple[Any, float]]:
        """Give the variables that depend on the number of updates, and what they are then."""
        for update in self._updates.values():
            yield from update.powers(updates)

    def set(self, values: Iterable[Tuple[Any, Any]]) -> None:
        """Set those of some variables that are this rank's to set, and wait for all ranks."""
        mine = {id(one) for one in self.mine()}
        chosen = [(one.initializer, value) for one, value in values if id(one) in mine]
        given = {operation.inputs[1]: value for operation, value in chosen}
        self.strategy.session.run([operation for operation, _ in chosen], given)
        self.strategy.agree(0.0)

    def mine(self) -> List[Any]:
        """Give the variables that this rank sets: its own, and the first one all that is served."""
        mine = [one for name, one in self.values.items() if name not in self.learned]
        if self.strategy.place.rank == FIRST or not self.strategy.communicates:
            mine += [*self.learned.values(), *self.kept()]
        return mine

    def kept(self) -> List[Any]:
        """Give what the optimiser keeps."""
        return [one for update in self._updates.values() for one in update.state().values()]

    def _variables(self, initial: Mapping[str, Any]) -> Dict[str, Any]:
        """Deal out what is learned."""
        here = self.strategy.here
        self._where: Dict[str, str] = {}
        learned = self.lowering.arrangement.parameters
        servers = self.strategy.servers if self.strategy.communicates else [here]
        held = dict.fromkeys(servers, 0)
        found = {}
        for number, (name, value) in enumerate(initial.items()):
            where = min(servers, key=lambda one: held[one]) if name in learned else here
            if name in learned:
                held[where] += int(numpy.prod(value.shape))
                self._where[name] = where
            with tf.device(where):
                called = "{}{}".format("served" if name in learned else "own", number)
                found[name] = tf.Variable(value, trainable=name in learned, name=called)
        return found

    def _optimiser(self, batch_per_step: int) -> None:
        """Keep each variable's momentum where the variable lies."""
        if clip(self.workload.optimiser) is not None:
            raise Unsupported("parameter servers hold a part each, and none knows all's norm")
        self._updates: Dict[str, Update] = {}
        rule, decayed = self.workload.optimiser, self.lowering.decayed()
        for where in dict.fromkeys(self._where.values()):
            there = {name: self.learned[name] for name in self._at(where)}
            with tf.device(where):
                self._updates[where] = Update(rule, there, decayed, batch_per_step)

    def _at(self, where: str) -> List[str]:
        return [name for name, one in self._where.items() if one == where]

    def _alone(self, gradients: Mapping[str, Any]) -> List[Any]:
        (update,) = self._updates.values()
        with tf.device(self.strategy.here):
            return list(update.apply(gradients))

    def _together(self, gradients: Mapping[str, Any]) -> List[Any]:
        place, sums = self.strategy.place, {}
        for number, (name, value) in enumerate(gradients.items()):
            with tf.device(self._where[name]):
                sums[name] = tf.compat.v1.ConditionalAccumulator(
                    value.dtype, value.shape, shared_name="sum{}".format(number)
                )
        pushed = [sums[name].apply_grad(value, NEVER_STALE) for name, value in gradients.items()]
        answers = self.strategy.queues("updated")
        done = []
        if place.rank == FIRST:
            updated = []
            for where, update in self._updates.items():
                with tf.device(where):
                    means = {name: sums[name].take_grad(place.size) for name in self._at(where)}
                    updated += update.apply(means)
            with tf.control_dependencies(updated):
                done = [one.enqueue(tf.constant(0.0, tf.float64)) for one in answers]
        with tf.control_dependencies(pushed):
            return [*done, answers[place.rank].dequeue()]


class ServedActivity:
    """Steps of training on a batch that stays with the rank."""

    is_compiled = False

    def __init__(
        self,
        strategy: ParameterServers,
        workload: Training,
        lowering: Lowering,
        feed: Feed,
        seed: int,
    ) -> None:
        self.units: Mapping[str, float] = {workload.unit: feed.work_per_rank}
        self.agree = strategy.agree
        lowering.style.has_groups()  # is tried out now: within a graph nothing runs
        with strategy.graph.as_default():
            tf.compat.v1.set_random_seed(feed.seed)
            initial = lowering.initial(seed)
            self.trainer = ServedTrainer(workload, lowering, initial, feed.batch_per_step, strategy)
            with tf.device(strategy.here):
                batch = self._batch = [
                    tf.Variable(one, trainable=False, name="batch")
                    for one in draw(feed, lowering.arrangement, lowering.style.dtype)
                ]
            x, target = (one.read_value() for one in batch)
            step, loss = self.trainer.build(x, target, is_dropping=True)
        try:
            strategy.session.run([one.initializer for one in batch])
            self.trainer.start()
        except tf.errors.OpError as error:
            raise failures.read(error) from error
        self.traced = step
        """What a probe finds the step's operations by."""
        self._run: Callable[[], Tuple[None, Any]] = strategy.session.make_callable([step, loss])
        self._loss: Optional[float] = None

    def step(self) -> None:
        """Run one step to its end."""
        try:
            _, self._loss = self._run()
        except tf.errors.OpError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        """Return at once: a session returns when all is done."""

    def values(self) -> Mapping[str, float]:
        """Give the loss of this rank's batch."""
        return {} if self._loss is None else {"loss": float(self._loss)}

    def result(self) -> None:
        """Give None: a session returns numbers, which do not tell their device."""

    def optimised(self) -> None:
        """Give None: XLA compiles nothing here."""

    def parameters(self) -> int:
        """Count what the lowered network learns."""
        return sum(int(numpy.prod(one.shape)) for one in self.trainer.learned.values())

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set what is given of parameters, running statistics and moments, where each lies."""
        arrangement = self.trainer.lowering.arrangement
        values = [
            (variable, arrangement.parameter_in(parameter, array_of(state[name])))
            for name, parameter, variable, _ in changed_by_step(self.trainer)
            if name in state
        ]
        if "step" in state:
            values += self.trainer.powers(float(array_of(state["step"])))
        self.trainer.set(values)

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace this rank's batch."""
        arrangement = self.trainer.lowering.arrangement
        arrays = arrangement.activation_in(array_of(given), None), array_of(target)
        values = {
            one.initializer.inputs[1]: own(array, one.dtype).numpy()
            for one, array in zip(self._batch, arrays)
        }
        session = self.trainer.strategy.session
        session.run([one.initializer for one in self._batch], values)

    def state(self) -> Iterator[Made]:
        """Give what is trained, and let no rank go on before all have read it."""
        strategy, arrangement = self.trainer.strategy, self.trainer.lowering.arrangement
        every = list(changed_by_step(self.trainer))
        held = strategy.session.run([variable for _, _, variable, _ in every])
        strategy.agree(0.0)
        for (name, parameter, _, _), value in zip(every, held):
            yield made(name, arrangement.parameter_out(parameter, value))


class ServedSubject(TensorFlowSubject):
    """One rank of several under examination."""

    def __init__(self, lowered: LoweredSubject, workload: Training, strategy: Any) -> None:
        super().__init__(lowered, False)
        self._workload = workload
        self._strategy = strategy

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one whole training step."""
        if self._trainer is None:
            self._build(given, target)
        self._strategy.session.run(self._update)

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic, and go on when all ranks have."""
        held = self._strategy.session.run(dict(self._trainer.values))
        for name, value in held.items():
            yield made(name, self._arrangement.parameter_out(name, numpy.float64(value)))
        self._strategy.agree(0.0)

    def _build(self, given: Tensor, target: Tensor) -> None:
        place, size = self._strategy.place, given.shape[0]
        mine = share(size, place.rank, place.size)
        batch = [one.numpy()[mine] for one in self._batch(given, target)]
        state = {name: one.numpy() for name, one in self._cast_state().items()}
        lowering = self._lowered.lowering
        with self._strategy.graph.as_default():
            self._trainer = ServedTrainer(self._workload, lowering, state, size, self._strategy)
            x, wanted = map(tf.constant, batch)
            self._update, _ = self._trainer.build(x, wanted, is_dropping=False)
        self._trainer.start()
