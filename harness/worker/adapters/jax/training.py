"""The training step as one pure function: forward, loss, gradients, update.

The state goes in and comes out as one tree and is donated, so that XLA updates it in place. Narrow
precisions compute on narrow copies of the weights, made inside the step where XLA fuses them. An
update is reckoned in at least float32, also of weights that are narrow themselves: in bfloat16
0.999 is 1, and Adam would divide by 1 less its powers.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple

import jax
import numpy
from jax import numpy as jnp

from harness.worker.adapters.jax.losses import LOSSES
from harness.worker.adapters.jax.lowering.network import Arrays, Lowered, Pass
from harness.worker.adapters.jax.state import State, put
from harness.worker.attribution.marks import LOSS, UPDATE
from harness.worker.feed import Feed
from harness.worker.network.tokens import texts
from harness.worker.network.words import lowering_of
from harness.worker.network.workload import SGD, Adam, AdamW, Training, clip

COMPUTE = {
    "bf16": jnp.bfloat16,
    "bf16-pure": jnp.bfloat16,
    "fp16": jnp.float16,
    "float64": jnp.float64,
}
CLEAN_STEPS = 2000  # as torch's GradScaler: double after so many steps without an overflow


class Given(NamedTuple):
    """One batch, in this layout."""

    input: Any
    target: Any


def forward(
    net: Lowered,
    workload: Training,
    precision: str,
    parameters: Mapping[str, Any],
    statistics: Mapping[str, Any],
    given: Given,
    key: Optional[Any] = None,
    kept: Optional[Arrays] = None,
    whole: Optional[Any] = None,
) -> Tuple[Any, Tuple[Arrays, Any]]:
    """Give the loss; beside it the new running statistics and the output.

    Of a micro-batch, with the target of the ``whole`` batch, it is the part that it adds.
    """
    one = Pass(parameters, statistics, key, {}, kept, COMPUTE.get(precision, jnp.float32))
    if jnp.issubdtype(given.input.dtype, jnp.integer):
        output = net.run(given.input, one)
    else:
        output = net.run(given.input.astype(COMPUTE.get(precision, jnp.float32)), one)
    wide = jax.tree.map(lambda y: y.astype(jnp.promote_types(y.dtype, jnp.float32)), output)
    with net.mark(LOSS):
        every = given.target if whole is None else whole
        loss = lowering_of(LOSSES, workload.loss, "jax")(wide, given.target, every)
    return loss, (one.updated, output)


def slopes(
    net: Lowered,
    workload: Training,
    precision: str,
    state: State,
    given: Given,
    key: Optional[Any] = None,
    keeps: bool = False,
    whole: Optional[Any] = None,
) -> Tuple[Arrays, Tuple[Any, Arrays, Any, Optional[Arrays]]]:
    """Give the gradients, a loss scale undone; beside them loss, running statistics and output.

    If it ``keeps`` them, also what each layer gave. With the target of the ``whole`` batch, loss
    and gradients are the part of them that this micro-batch adds.
    """

    def loss_of(parameters: Any) -> Any:
        statistics = state.statistics
        kept: Optional[Arrays] = {} if keeps else None
        loss, beside = forward(
            net, workload, precision, parameters, statistics, given, key, kept, whole
        )
        return loss if state.scale is None else loss * state.scale[0], (loss, *beside, kept)

    gradients, beside = jax.grad(loss_of, has_aux=True)(state.parameters)
    if state.scale is not None:
        gradients = jax.tree.map(lambda g: g / state.scale[0], gradients)
    return gradients, beside


def accumulated(
    net: Lowered,
    workload: Training,
    precision: str,
    state: State,
    given: Given,
    key: Optional[Any] = None,
    keeps: bool = False,
    count: int = 1,
) -> Tuple[Arrays, Tuple[Any, Arrays, Any, Optional[Arrays]]]:
    """Give what ``slopes`` does, of a batch in so many micro-batches; the output where it keeps.

    They are scanned, so that what one keeps for its backward pass is gone when the next begins: of
    what stands side by side XLA chooses the order itself.
    """
    if count == 1:
        return slopes(net, workload, precision, state, given, key, keeps)

    def add(sums: Tuple[Arrays, Any], part: Tuple[Given, Any]) -> Tuple[Any, Any]:
        own, draw = part
        gradients, (loss, _, output, kept) = slopes(
            net, workload, precision, state, own, draw, keeps, given.target
        )
        return jax.tree.map(jnp.add, sums, (gradients, loss)), (output, kept) if keeps else None

    parts = jax.tree.map(lambda one: one.reshape(count, -1, *one.shape[1:]), given)
    draws = None if key is None else jax.random.split(key, count)
    wide = jnp.promote_types(COMPUTE.get(precision, jnp.float32), jnp.float32)
    nothing = jax.tree.map(jnp.zeros_like, state.parameters), jnp.zeros((), wide)
    (gradients, loss), seen = jax.lax.scan(add, nothing, (parts, draws))
    joined = jax.tree.map(lambda one: one.reshape(-1, *one.shape[2:]), seen)
    output, kept = joined if keeps else (None, None)
    return gradients, (loss, state.statistics, output, kept)


def make_step(
    net: Lowered,
    workload: Training,
    precision: str,
    batch_per_step: int,
    has_dropout: bool,
    accumulate: int,
) -> Callable[[State, Given], Tuple[State, Any]]:
    """Build the step: (state, batch) -> (state, loss)."""

    def step(state: State, given: Given) -> Tuple[State, Any]:
        key, draw = jax.random.split(state.key) if has_dropout else (state.key, None)
        gradients, (loss, statistics, _, _) = accumulated(
            net, workload, precision, state, given, draw, count=accumulate
        )
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
    rule = lowering_of(OPTIMISERS, type(workload.optimiser), "jax")
    gradients = _clipped(workload.optimiser, {name: _wide(g) for name, g in gradients.items()})
    new: Arrays = {}
    moved: Tuple[Arrays, ...] = tuple({} for _ in state.moments)
    for name, weight in state.parameters.items():
        old = tuple(_wide(moment[name]) for moment in state.moments)
        moves, made = rule(
            workload.optimiser, name, _wide(weight), gradients[name], old, count, batch_per_step
        )
        new[name] = moves.astype(weight.dtype)
        for moment, value in zip(moved, made):
            moment[name] = value.astype(weight.dtype)
    return new, moved


def _wide(x: Any) -> Any:
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


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
    return Given(*(put(numpy.reshape(one, (rows, -1)), jnp.int32) for one in texts(feed)))


def draw_batch(net: Lowered, feed: Feed) -> Given:
    """Make the synthetic batch, in this layout."""
    draw, rows = numpy.random.default_rng(feed.seed + 1), feed.batch_per_rank
    given = net.activation_in(draw.standard_normal((rows, *feed.input), numpy.float32))
    targets: Any = feed.targets
    if hasattr(targets, "count"):
        target = put(draw.integers(0, targets.count, rows), jnp.int32)
    else:
        target = put(draw.standard_normal((rows, targets.length)), jnp.float32)
    return Given(put(given, jnp.float32), target)


OPTIMISERS: Dict[type, Callable[..., Tuple[Any, Tuple[Any, ...]]]] = {
    SGD: _sgd,
    Adam: _adam,
    AdamW: _adamw,
}
