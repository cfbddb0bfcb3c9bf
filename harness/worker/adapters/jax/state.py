"""What a step changes: drawn afresh, loaded and given back by canonical names."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Tuple

import jax
import numpy
from jax import numpy as jnp

from harness.worker.adapters.jax.lowering.network import Arrays, Lowered
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.precisions import precision_of
from harness.worker.network.rule import Parameter
from harness.worker.network.shapes import parameters as parameters_of
from harness.worker.network.shapes import statistics as statistics_of
from harness.worker.network.workload import MOMENTS, Training

FIRST_SCALE = 2.0**15


class State(NamedTuple):
    """Everything a step changes."""

    parameters: Arrays
    statistics: Arrays
    moments: Tuple[Arrays, ...]
    step: Any
    key: Any
    scale: Any
    """The factor on the loss, and the steps since it last changed; fp16 only, else None."""


def initial(net: Lowered, workload: Training, seed: int, precision: str) -> State:
    """Draw the starting weights that every framework shares, seeded; with numpy: XLA took longer to
    compile what draws them than what steps them.
    """
    dtype, wide = _held_as(precision), numpy.dtype(_kept_as(precision))
    draw = numpy.random.default_rng(seed)
    parameters: Arrays = {}
    statistics: Arrays = {}
    for site in net.sites.values():
        for name, held in parameters_of(site):
            parameters[name] = put(net.weight_in(name, _draw(held, draw, wide)), dtype)
        for name, held in statistics_of(site):
            statistics[name] = put(numpy.full(held.shape, held.mean), wide)
    still = tuple(
        {name: put(numpy.zeros(one.shape, dtype), dtype) for name, one in parameters.items()}
        for _ in MOMENTS[type(workload.optimiser)]
    )
    return _fresh(precision, parameters, statistics, still, jax.random.key(seed))


def blank(net: Lowered, workload: Training, precision: str) -> State:
    """Give a state that is still to be loaded, and not to be donated: its zeros are numpy's, and
    some stand in it twice. Drawing one compiles a program for each shape.
    """

    def zeros(name: str, shape: Tuple[int, ...], dtype: Any) -> Any:
        return put(net.weight_in(name, numpy.zeros(shape, dtype)), dtype)

    every = list(net.sites.values())
    parameters = {
        name: zeros(name, held.shape, _held_as(precision))
        for one in every
        for name, held in parameters_of(one)
    }
    statistics = {
        name: zeros(name, held.shape, _kept_as(precision))
        for one in every
        for name, held in statistics_of(one)
    }
    still = tuple(dict(parameters) for _ in MOMENTS[type(workload.optimiser)])
    return _fresh(precision, parameters, statistics, still, jax.random.key(0))


def _held_as(precision: str) -> Any:
    return jnp.float64 if precision == "float64" else jnp.dtype(precision_of(precision).held)


def _kept_as(precision: str) -> Any:
    """Give the type of running statistics: what a batch adds to one is lost in a narrow one."""
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


def loaded(net: Lowered, workload: Training, state: State, given: Mapping[str, Tensor]) -> State:
    """Replace what is given of parameters, running statistics, moments and step count."""
    names = MOMENTS[type(workload.optimiser)]

    def taken(own: Arrays, suffix: str = "") -> Arrays:
        for name, old in own.items():
            if name + suffix in given:
                value = array_of(given[name + suffix])
                own[name] = put(net.weight_in(name, value), old.dtype)
        return own

    parameters, statistics = taken(state.parameters), taken(state.statistics)
    moved = tuple(taken(one, "/" + name) for name, one in zip(names, state.moments))
    step = put(array_of(given["step"]), state.step.dtype) if "step" in given else state.step
    return state._replace(parameters=parameters, statistics=statistics, moments=moved, step=step)


def named(net: Lowered, workload: Training, state: State) -> Iterator[Made]:
    """Give parameters, running statistics and moments."""
    names = MOMENTS[type(workload.optimiser)]
    parts = [("", state.parameters), ("", state.statistics)]
    parts += [("/" + name, one) for name, one in zip(names, state.moments)]
    for suffix, arrays in parts:
        for name, value in arrays.items():
            yield made(name + suffix, net.weight_out(name, value), numpy.float32)


def put(value: Any, dtype: Any) -> Any:
    """Bring an array of numpy's to the device, where JAX's own ``array`` would compile a program
    for its shape. A copy: what XLA is handed to update in place must be its own.
    """
    return jax.device_put(numpy.asarray(value, dtype), may_alias=False)


def array_of(tensor: Tensor) -> Any:
    """Read a tensor of a folder."""
    return numpy.frombuffer(tensor.items(), tensor.dtype).reshape(tensor.shape)


def made(name: str, value: Any, dtype: Any = numpy.float64) -> Made:
    """Give an array as a folder takes it."""
    array = numpy.asarray(value, dtype, order="C")
    return name, array.shape, array


def _draw(held: Parameter, draw: Any, dtype: Any) -> Any:
    if not held.deviation:
        return numpy.full(held.shape, held.mean, dtype)
    return draw.standard_normal(held.shape, dtype) * dtype.type(held.deviation) + held.mean
