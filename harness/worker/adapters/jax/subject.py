"""Open JAX's own lowering to the examination, in float64 or as it is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, Mapping, Tuple

import jax
import numpy
from jax import numpy as jnp

from harness.worker.adapters.jax import training
from harness.worker.adapters.jax.lowering.network import Arrays, Lowered, Pass, lowered
from harness.worker.adapters.jax.settings import Settings
from harness.worker.adapters.jax.state import State, array_of, blank, made, put
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.network.layers import Dropout
from harness.worker.network.shapes import Site, operands, output_shapes
from harness.worker.network.workload import Training


class JaxLayerPass:
    """One layer alone, compiled both ways."""

    def __init__(
        self,
        net: Lowered,
        site: Site,
        compiled: Tuple[Any, Any],
        given: Tuple[Any, ...],
        slope: Any,
    ) -> None:
        self._net = net
        self._site = site
        self._forward, self._both = compiled
        self._given = given
        self._slope = slope
        self._result: Any = None

    def forward(self) -> None:
        """Enqueue the forward pass."""
        self._result = self._forward(*self._given)

    def both(self) -> None:
        """Enqueue both passes."""
        self._result = self._both(*self._given, self._slope)

    def sync(self) -> None:
        """Wait for the last pass."""
        jax.block_until_ready(self._result)

    def made(self) -> Iterator[Made]:
        """Give what both passes computed."""
        y, (*before, slopes), moved = self._result
        site, names = self._site, operands(self._site)
        yield made("output", self._net.activation_out(numpy.asarray(y), site.output))
        for value in before:  # tokens have no gradient
            back = self._net.activation_out(numpy.asarray(value), site.input)
            yield made("input-gradient", back)
        for kind, value in slopes.items():
            yield made("gradient/" + kind, self._net.weight_out(names[kind], numpy.asarray(value)))
        for name, value in moved.items():
            yield made("statistic/" + _kind(name), value)


class JaxSubject:
    """One network under examination."""

    def __init__(self, workload: Training, settings: Settings, precision: str) -> None:
        self._workload = workload
        self._precision = "float64" if precision == "float64" else settings.precision
        self._dtype = jnp.float64 if precision == "float64" else jnp.float32
        self._net = lowered(workload.network, settings)
        self._state = blank(self._net, workload, self._precision)
        self._still = self._state.moments
        self._accumulate = settings.accumulate
        self._steps: Dict[int, Any] = {}
        self._compiled: Dict[Any, Any] = {}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set every parameter and running statistic."""
        now = {**self._state.parameters, **self._state.statistics}
        loaded = {
            name: put(self._net.weight_in(name, array_of(tensor)), now[name].dtype)
            for name, tensor in state.items()
        }
        self._state = self._state._replace(
            parameters={name: loaded[name] for name in self._state.parameters},
            statistics={name: loaded[name] for name in self._state.statistics},
        )

    def reset(self) -> None:
        """Forget the moments and the step count."""
        self._state = self._state._replace(
            moments=self._still,
            step=jnp.zeros((), jnp.int32),
        )

    def gradients(self, given: Tensor, target: Tensor) -> Iterator[Made]:
        """Run forward and backward once, compiled as the step is."""
        batch = self._batch(given, target)
        if self._precision == "float64":  # the step that is examined too
            found, _ = self._step(given)(self._state, batch)
        else:
            found = jax.jit(self._slopes)(self._state, batch)
        slopes, (loss, updated, output, kept) = found
        self._state = self._state._replace(statistics=updated)
        last = list(self._net.sites.values())[-1]
        if isinstance(output, tuple):  # two heads, side by side as the vocabulary counts them
            output = numpy.concatenate([one.reshape(len(one), -1) for one in output], axis=1)
        yield made("output", self._net.activation_out(numpy.asarray(output), last.output))
        yield made("loss", loss)
        for name, slope in slopes.items():
            yield made("gradient/" + name, self._net.weight_out(name, numpy.asarray(slope)))
        for path, value in kept.items():
            if not isinstance(self._net.sites[path].layer, Dropout):
                shape = self._net.sites[path].output
                value = self._net.activation_out(numpy.asarray(value), shape)
                yield made("activation/" + path, value)

    def update(self, given: Tensor, target: Tensor) -> None:
        """Run one training step with dropout off."""
        _, (self._state, _) = self._step(given)(self._state, self._batch(given, target))

    def _step(self, given: Tensor) -> Any:
        """Compile a step, with the gradients beside it: XLA computes once what both have in common.

        Two programs would be twice as much to compile, which is most of the work.
        """
        size = given.shape[0]
        if size not in self._steps:
            step = training.make_step(
                self._net, self._workload, self._precision, size, False, self._accumulate
            )

            def both(state: State, batch: training.Given) -> Tuple[Any, Any]:
                return self._slopes(state, batch), step(state, batch)

            self._steps[size] = jax.jit(both)
        return self._steps[size]

    def _slopes(self, state: State, batch: training.Given) -> Any:
        how = self._net, self._workload, self._precision
        return training.accumulated(*how, state, batch, keeps=True, count=self._accumulate)

    def state(self) -> Iterator[Made]:
        """Give every parameter and running statistic."""
        for arrays in (self._state.parameters, self._state.statistics):
            for name, value in arrays.items():
                yield made(name, self._net.weight_out(name, numpy.asarray(value)))

    def layer(
        self, path: str, given: Tensor, gradient: Tensor, to_input: bool = True
    ) -> JaxLayerPass:
        """Open one layer alone."""
        site = self._net.sites[path]
        compute = training.COMPUTE.get(self._precision, jnp.float32)
        names = operands(site)
        own = {kind: self._state.parameters[name] for kind, name in names.items()}
        statistics = {
            _kind(name): value
            for name, value in self._state.statistics.items()
            if name.rpartition("/")[0] == path
        }
        kind_of_input = jnp.int32 if given.dtype == "int64" else compute
        x = put(self._net.activation_in(array_of(given), site.input), kind_of_input)
        slope = put(self._net.activation_in(array_of(gradient), site.output), compute)
        compiled = self._compiled_layer(path, given.shape, to_input)
        return JaxLayerPass(self._net, site, compiled, (x, own, statistics), slope)

    def _compiled_layer(self, path: str, shape: Tuple[int, ...], to_input: bool) -> Tuple[Any, Any]:
        """Compile a layer, forward alone and both ways; equal ones once: 50 of ResNet-50's 158."""
        site = self._net.sites[path]
        alike = (replace(site.layer, name=""), shape, to_input)
        if alike not in self._compiled:
            key = jax.random.key(0) if isinstance(site.layer, Dropout) else None
            compute = training.COMPUTE.get(self._precision, jnp.float32)
            names = operands(site)

            def named(own: Arrays) -> Arrays:
                own_name = "{}/{{}}".format(path).format
                return {names.get(kind, own_name(kind)): value for kind, value in own.items()}

            def forward(x: Any, own: Arrays, statistics: Arrays) -> Tuple[Any, Any]:
                one = Pass(named(own), named(statistics), key, {}, None, compute)
                return self._net.layer(path, x, one), one.updated

            def both(x: Any, own: Arrays, statistics: Arrays, slope: Any) -> Tuple[Any, Any, Any]:
                def run(*sources: Any) -> Any:
                    return forward(sources[0] if to_input else x, sources[-1], statistics)

                sources = (x, own) if to_input else (own,)
                y, back, moved = jax.vjp(run, *sources, has_aux=True)
                return y, back(slope.astype(y.dtype)), moved

            self._compiled[alike] = jax.jit(forward), jax.jit(both)
        found: Tuple[Any, Any] = self._compiled[alike]
        return found

    def facts(self) -> Mapping[str, Any]:
        """Say how the examination ran."""
        shapes = output_shapes(self._workload.network)
        return {"compiled": "jax.jit", "precision": self._precision, "layers": len(shapes)}

    def _batch(self, given: Tensor, target: Tensor) -> training.Given:
        x = self._net.activation_in(array_of(given))
        return training.Given(
            *(
                put(one, jnp.int32 if one.dtype == numpy.int64 else self._dtype)
                for one in (x, array_of(target))
            )
        )


def _kind(name: str) -> str:
    return name.rpartition("/")[2]
