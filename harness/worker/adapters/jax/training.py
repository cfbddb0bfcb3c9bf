"""The training step as one pure function: forward, loss, gradients, update.

The state goes in and comes out as one tree and is donated, so that XLA updates it in place. Narrow
precisions compute on narrow copies of the weights, made inside the step where XLA fuses them.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple

import jax
import numpy
from jax import numpy as jnp

from harness.worker.adapters.jax.lowering import Arrays, Lowered, Pass
from harness.worker.attribution.marks import LOSS, UPDATE
from harness.worker.feed import Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.rule import Parameter
from harness.worker.network.shapes import parameters as parameters_of
from harness.worker.network.shapes import statistics as statistics_of
from harness.worker.network.tokens import texts
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import MASKED, MOMENTS, SGD, Adam, AdamW, Training, clip

COMPUTE = {"bf16": jnp.bfloat16, "fp16": jnp.float16, "float64": jnp.float64}
FIRST_SCALE = 2.0**15
CLEAN_STEPS = 2000  # as torch's GradScaler: double after so many steps without an overflow


class State(NamedTuple):
    """Everything a step changes."""

    parameters: Arrays
    statistics: Arrays
    moments: Tuple[Arrays, ...]
    step: Any
    key: Any
    scale: Any
    """The factor on the loss, and the steps since it last changed; fp16 only, else None."""


class Given(NamedTuple):
    """One batch, in this layout."""

    input: Any
    target: Any


def initial(net: Lowered, workload: Training, seed: int, precision: str) -> State:
    """Draw the starting weights that every framework shares, seeded."""
    dtype = _held_as(precision)
    key = jax.random.key(seed)
    parameters: Arrays = {}
    statistics: Arrays = {}
    for site in net.sites.values():
        for name, held in parameters_of(site):
            key, draw = jax.random.split(key)
            parameters[name] = net.weight_in(name, _draw(held, draw, dtype))
        for name, held in statistics_of(site):
            statistics[name] = jnp.full(held.shape, held.mean, dtype)
    still = moments(workload, parameters)
    return _fresh(precision, parameters, statistics, still, key)


def blank(net: Lowered, workload: Training, precision: str) -> State:
    """Give a state that is still to be loaded, and not to be donated: its zeros are numpy's, and
    some stand in it twice. Drawing one compiles a program for each shape.
    """
    dtype = numpy.dtype(_held_as(precision))

    def zeros(name: str, shape: Tuple[int, ...]) -> Any:
        return jnp.asarray(net.weight_in(name, numpy.zeros(shape, dtype)))

    every = list(net.sites.values())
    parameters = {
        name: zeros(name, held.shape) for one in every for name, held in parameters_of(one)
    }
    statistics = {
        name: zeros(name, held.shape) for one in every for name, held in statistics_of(one)
    }
    count = lowering_of(OPTIMISERS, type(workload.optimiser), "jax").moments
    still = tuple(dict(parameters) for _ in range(count))
    return _fresh(precision, parameters, statistics, still, jax.random.key(0))


def _held_as(precision: str) -> Any:
    return jnp.float64 if precision == "float64" else jnp.float32


def _fresh(
    precision: str, parameters: Arrays, statistics: Arrays, still: Tuple[Arrays, ...], key: Any
) -> State:
    return State(
        parameters,
        statistics,
        still,
        jnp.zeros((), jnp.int32),
        key,
        (jnp.float32(FIRST_SCALE), jnp.int32(0)) if precision == "fp16" else None,
    )


def moments(workload: Training, parameters: Mapping[str, Any]) -> Tuple[Arrays, ...]:
    """Give the optimiser's fresh state."""
    count = lowering_of(OPTIMISERS, type(workload.optimiser), "jax").moments
    return tuple(
        {name: jnp.zeros_like(value) for name, value in parameters.items()} for _ in range(count)
    )


def loaded(net: Lowered, workload: Training, state: State, given: Mapping[str, Tensor]) -> State:
    """Replace what is given of parameters, running statistics, moments and step count."""
    names = MOMENTS[type(workload.optimiser)]

    def taken(own: Arrays, suffix: str = "") -> Arrays:
        for name, old in own.items():
            if name + suffix in given:
                # a copy: what XLA is handed to update in place must be its own
                value = jnp.array(array_of(given[name + suffix]), old.dtype)
                own[name] = net.weight_in(name, value)
        return own

    parameters, statistics = taken(state.parameters), taken(state.statistics)
    moved = tuple(taken(one, "/" + name) for name, one in zip(names, state.moments))
    step = jnp.array(array_of(given["step"]), state.step.dtype) if "step" in given else state.step
    return state._replace(parameters=parameters, statistics=statistics, moments=moved, step=step)


def named(net: Lowered, workload: Training, state: State) -> Iterator[Made]:
    """Give parameters, running statistics and moments."""
    names = MOMENTS[type(workload.optimiser)]
    parts = [("", state.parameters), ("", state.statistics)]
    parts += [("/" + name, one) for name, one in zip(names, state.moments)]
    for suffix, arrays in parts:
        for name, value in arrays.items():
            yield made(name + suffix, net.weight_out(name, value), numpy.float32)


def array_of(tensor: Tensor) -> Any:
    """Read a tensor of a folder."""
    return numpy.frombuffer(tensor.items(), tensor.dtype).reshape(tensor.shape)


def made(name: str, value: Any, dtype: Any = numpy.float64) -> Made:
    """Give an array as a folder takes it."""
    array = numpy.asarray(value, dtype, order="C")
    return name, array.shape, array


def _draw(held: Parameter, key: Any, dtype: Any) -> Any:
    if not held.deviation:
        return jnp.full(held.shape, held.mean, dtype)
    return held.mean + jax.random.normal(key, held.shape, dtype) * held.deviation


def forward(
    net: Lowered,
    workload: Training,
    precision: str,
    parameters: Mapping[str, Any],
    statistics: Mapping[str, Any],
    given: Given,
    key: Optional[Any] = None,
    kept: Optional[Arrays] = None,
) -> Tuple[Any, Tuple[Arrays, Any]]:
    """Give the loss; beside it the new running statistics and the output."""
    one = Pass(parameters, statistics, key, {}, kept, COMPUTE.get(precision, jnp.float32))
    if jnp.issubdtype(given.input.dtype, jnp.integer):
        output = net.run(given.input, one)
    else:
        output = net.run(given.input.astype(COMPUTE.get(precision, jnp.float32)), one)
    wide = jax.tree.map(lambda y: y.astype(jnp.promote_types(y.dtype, jnp.float32)), output)
    with net.mark(LOSS):
        loss = lowering_of(LOSSES, workload.loss, "jax")(wide, given.target)
    return loss, (one.updated, output)


def _mean_squared_error(output: Any, target: Any) -> Any:
    return jnp.mean(jnp.square(output - target))


def _cross_entropy(output: Any, target: Any) -> Any:
    logarithms = jax.nn.log_softmax(output)
    return -jnp.mean(jnp.take_along_axis(logarithms, target[:, None], axis=1))


def _token_cross_entropy(output: Any, target: Any) -> Any:
    is_asked = target != MASKED
    logarithms = jax.nn.log_softmax(output)
    chosen = jnp.take_along_axis(logarithms, jnp.where(is_asked, target, 0)[..., None], axis=-1)
    return -jnp.sum(jnp.where(is_asked, chosen[..., 0], 0)) / jnp.sum(is_asked)


def _token_and_pair_cross_entropy(output: Any, target: Any) -> Any:
    tokens, pair = output
    of_pair = _cross_entropy(pair, target[:, -1])
    return _token_cross_entropy(tokens, target[:, :-1]) + of_pair


def slopes(
    net: Lowered,
    workload: Training,
    precision: str,
    state: State,
    given: Given,
    key: Optional[Any] = None,
    keeps: bool = False,
) -> Tuple[Arrays, Tuple[Any, Arrays, Any, Optional[Arrays]]]:
    """Give the gradients, a loss scale undone; beside them loss, running statistics and output.

    If it ``keeps`` them, also what each layer gave.
    """

    def loss_of(parameters: Any) -> Any:
        statistics = state.statistics
        kept: Optional[Arrays] = {} if keeps else None
        loss, beside = forward(net, workload, precision, parameters, statistics, given, key, kept)
        return loss if state.scale is None else loss * state.scale[0], (loss, *beside, kept)

    gradients, beside = jax.grad(loss_of, has_aux=True)(state.parameters)
    if state.scale is not None:
        gradients = jax.tree.map(lambda g: g / state.scale[0], gradients)
    return gradients, beside


def make_step(
    net: Lowered, workload: Training, precision: str, batch_per_step: int, has_dropout: bool
) -> Callable[[State, Given], Tuple[State, Any]]:
    """Build the step: (state, batch) -> (state, loss)."""

    def step(state: State, given: Given) -> Tuple[State, Any]:
        key, draw = jax.random.split(state.key) if has_dropout else (state.key, None)
        gradients, (loss, statistics, _, _) = slopes(net, workload, precision, state, given, draw)
        count = state.step + 1
        with net.mark(UPDATE):
            parameters, moved = update(workload, state, gradients, count, batch_per_step)
        fresh = State(parameters, statistics, moved, count, key, state.scale)
        return (fresh if state.scale is None else _unless_overflown(state, fresh, gradients)), loss

    return step


def _unless_overflown(before: State, after: State, gradients: Arrays) -> State:
    """Keep the old weights and halve the loss scale where a gradient is not finite."""
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(gradients)]))
    scale, clean = before.scale
    grown = clean + 1 >= CLEAN_STEPS
    scale = jnp.where(finite, jnp.where(grown, scale * 2, scale), scale / 2)
    clean = jnp.where(finite & ~grown, clean + 1, 0)

    def keep(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(finite, a, b), new, old)

    return after._replace(
        parameters=keep(after.parameters, before.parameters),
        moments=keep(after.moments, before.moments),
        step=jnp.where(finite, after.step, before.step),
        scale=(scale, clean),
    )


def update(
    workload: Training, state: State, gradients: Arrays, count: Any, batch_per_step: int
) -> Tuple[Arrays, Tuple[Arrays, ...]]:
    """Give the new parameters and moments."""
    rule = lowering_of(OPTIMISERS, type(workload.optimiser), "jax").update
    gradients = _clipped(workload.optimiser, gradients)
    new: Arrays = {}
    moved: Tuple[Arrays, ...] = tuple({} for _ in state.moments)
    for name, weight in state.parameters.items():
        old = tuple(moment[name] for moment in state.moments)
        new[name], made = rule(
            workload.optimiser, name, weight, gradients[name], old, count, batch_per_step
        )
        for moment, value in zip(moved, made):
            moment[name] = value
    return new, moved


def _clipped(optimiser: Any, gradients: Arrays) -> Arrays:
    """Scale all gradients down together, where the norm of all is above what the optimiser says."""
    most = clip(optimiser)
    if most is None:
        return gradients
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(one)) for one in gradients.values()))
    factor = jnp.minimum(1, most / norm)
    return {name: one * factor for name, one in gradients.items()}


def _sgd(
    rule: Any, name: str, weight: Any, slope: Any, old: Any, count: Any, batch_per_step: int
) -> Tuple[Any, Tuple[Any, ...]]:
    rate = rule.rate * batch_per_step / rule.rate_batch if rule.rate_batch else rule.rate
    if rule.weight_decay and name.endswith("/weight"):
        slope = slope + rule.weight_decay * weight
    velocity = rule.momentum * old[0] + slope
    return weight - rate * velocity, (velocity,)


def _adam(
    rule: Any, name: str, weight: Any, slope: Any, old: Any, count: Any, batch_per_step: int
) -> Tuple[Any, Tuple[Any, ...]]:
    first = rule.beta1 * old[0] + (1 - rule.beta1) * slope
    second = rule.beta2 * old[1] + (1 - rule.beta2) * jnp.square(slope)
    power = count.astype(weight.dtype)
    root = jnp.sqrt(second / (1 - rule.beta2**power)) + rule.epsilon
    return weight - rule.rate * (first / (1 - rule.beta1**power)) / root, (first, second)


def _adamw(
    rule: Any, name: str, weight: Any, slope: Any, old: Any, count: Any, batch_per_step: int
) -> Tuple[Any, Tuple[Any, ...]]:
    moved, moments = _adam(rule, name, weight, slope, old, count, batch_per_step)
    if name.endswith("/weight"):
        moved = moved - rule.rate * rule.weight_decay * weight
    return moved, moments


def draw_texts(feed: Feed) -> Given:
    """Make a batch of tokens and of what is asked of them."""
    rows = feed.batch_per_rank
    return Given(*(jnp.array(one, jnp.int32).reshape(rows, -1) for one in texts(feed)))


def draw_batch(net: Lowered, shape: Tuple[int, ...], targets: Any, key: Any, dtype: Any) -> Given:
    """Make the synthetic batch on the device, in this layout."""
    first, second = jax.random.split(key)
    given = net.activation_in(jax.random.normal(first, shape, dtype))
    if hasattr(targets, "count"):
        target = jax.random.randint(second, shape[:1], 0, targets.count, jnp.int32)
    else:
        target = jax.random.normal(second, (shape[0], targets.length), dtype)
    return Given(given, target)


class Optimiser(NamedTuple):
    """How one optimiser updates a weight, and how many moments of each it keeps."""

    update: Callable[..., Tuple[Any, Tuple[Any, ...]]]
    moments: int


OPTIMISERS: Dict[type, Optimiser] = {
    SGD: Optimiser(_sgd, 1),
    Adam: Optimiser(_adam, 2),
    AdamW: Optimiser(_adamw, 2),
}
LOSSES: Dict[str, Callable[[Any, Any], Any]] = {
    "cross-entropy": _cross_entropy,
    "mean-squared-error": _mean_squared_error,
    "token-cross-entropy": _token_cross_entropy,
    "token-and-pair-cross-entropy": _token_and_pair_cross_entropy,
}
