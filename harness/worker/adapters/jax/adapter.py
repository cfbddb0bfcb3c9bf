"""Open JAX for a worker: its versions, its activity, its doors for the gate."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional

from harness.worker.adapters.jax import settings as switches
from harness.worker.adapters.jax import strategies
from harness.worker.adapters.jax.strategies import Strategy
from harness.worker.contracts import OutOfMemory
from harness.worker.facts.multiplications import Count, calls_per_step
from harness.worker.feed import Feed
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor
from harness.worker.job import Job
from harness.worker.network.asked_workload import has_attention
from harness.worker.network.rule import product
from harness.worker.network.shapes import has_dropout
from harness.worker.network.workload import Ceiling, Training
from harness.worker.place import Place

COMPILED = "/jax/core/compile/backend_compile_duration"
PROBED = {"ONEDNN_VERBOSE": "1"}


class JaxActivity:
    """Train on one batch that stays on the device."""

    def __init__(
        self,
        workload: Training,
        feed: Feed,
        settings: switches.Settings,
        seed: int,
        strategy: Strategy,
    ) -> None:
        import jax

        from harness.worker.adapters.jax import training
        from harness.worker.adapters.jax.lowering.network import lowered
        from harness.worker.adapters.jax.state import initial

        self._jax = jax
        self._workload = workload
        net = self._net = lowered(workload.network, settings)
        self._strategy = strategy
        self.trained = strategy.replicate(initial(net, workload, seed, settings.precision))
        is_text = feed.vocabulary is not None
        given = training.draw_texts(feed) if is_text else training.draw_batch(net, feed)
        self._given = strategy.share(given)
        step = training.make_step(
            net,
            workload,
            settings.precision,
            feed.batch_per_step,
            has_dropout(workload.network),
            settings.accumulate,
        )
        self._step = strategy.jit(step)
        self._loss: Any = None
        self.units: Mapping[str, float] = {workload.unit: feed.work_per_rank}
        self.saver_name = "orbax"
        jax.block_until_ready((self.trained, self._given))

    def step(self) -> None:
        """Enqueue one step."""
        try:
            self.trained, self._loss = self._step(self.trained, self._given)
        except self._jax.errors.JaxRuntimeError as error:
            raise told(error) from error

    def sync(self) -> None:
        """Wait for the last step."""
        try:
            self._jax.block_until_ready((self.trained, self._loss))
        except self._jax.errors.JaxRuntimeError as error:
            raise told(error) from error

    def mark(self, mark: Any) -> None:
        """Mark layers, loss and update in what is compiled from now on."""
        self._net.mark = mark

    def compiled(self) -> Any:
        """Compile the step ahead, and step with just that from now on."""
        self._step = self._step.lower(self.trained, self._given).compile()
        return self._step

    def placed(self) -> Any:
        """Give the arrays that are trained."""
        return self.trained.parameters.values()

    def values(self) -> Mapping[str, float]:
        """Give the last step's loss."""
        return {"loss": float(self._loss)}

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return self._strategy.agree(value)

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Set what is trained; types and places stay, so that nothing is compiled again."""
        from harness.worker.adapters.jax.state import loaded

        new = loaded(self._net, self._workload, self.trained, state)
        self.trained = self._strategy.replicate(new)

    def give(self, given: Tensor, target: Tensor) -> None:
        """Replace the batch."""
        from harness.worker.adapters.jax.state import array_of, put

        x = put(self._net.activation_in(array_of(given)), self._given.input.dtype)
        y = put(array_of(target), self._given.target.dtype)
        self._given = self._strategy.share(self._given._replace(input=x, target=y))

    def state(self) -> Iterator[Made]:
        """Give what is trained."""
        from harness.worker.adapters.jax.state import named

        return named(self._net, self._workload, self._strategy.own(self.trained))

    def fed(self) -> Iterator[Made]:
        """Give the batch that the next step takes."""
        from harness.worker.adapters.jax.state import made

        own = self._strategy.own(self._given)
        yield made("input", self._net.activation_out(own.input), "float32")
        yield made("target", own.target, "float32")

    def multiplications(self) -> Count:
        """Count those of the step, in the text of what XLA compiled and keeps."""
        from harness.worker.facts import hlo_multiplications

        compiled = self._step.lower(self.trained, self._given).compile()
        found = hlo_multiplications.tally(compiled.as_text())
        return found.of_step(calls_per_step(self, "_step"), "XLA's compiled step")

    def programs(self) -> Optional[int]:
        """Count the programs that the step was compiled to, one for each kind of arguments."""
        return self._strategy.programs(self._step)

    def saver(self) -> Any:
        """Give what saves the state."""
        from harness.worker.adapters.jax.saver import OrbaxSaver

        return OrbaxSaver(self, self.saver_name == "orbax-async")

    def held(self) -> Mapping[str, str]:
        """Name the types of weights and of what the optimiser keeps of them."""
        kept = [value for moment in self.trained.moments for value in moment.values()]
        arrays = {"weights_held": self.placed(), "optimiser_held": kept}
        return {name: ", ".join(sorted({str(a.dtype) for a in of})) for name, of in arrays.items()}

    def parameters(self) -> int:
        """Count what is trained."""
        return sum(product(array.shape) for array in self.trained.parameters.values())


class FedActivity(JaxActivity):
    """Train on batches from files; until the first came, on a synthetic one."""

    def __init__(self, workload: Training, feed: Feed, *how: Any) -> None:
        from harness.worker.adapters.jax.feeding import Feeder

        super().__init__(workload, feed, *how)
        self._feeder = Feeder(feed, self._net)
        self.epochs = self._feeder.epochs

    def fetch(self) -> None:
        """Wait for the next batch."""
        self._given = self._strategy.share(self._feeder.next())


def told(error: Exception) -> Exception:
    """Tell memory that ran out from other faults."""
    return OutOfMemory(str(error)) if "RESOURCE_EXHAUSTED" in str(error) else error


class JaxAdapter:
    """JAX in this process."""

    def __init__(self, settings: switches.Settings, seed: int, strategy: Strategy) -> None:
        import jax

        self._jax = jax
        self._seed = seed  # of the weights: the same in every rank, unlike the feed's
        self._settings = settings
        self._strategy = strategy
        self._compile_s = 0.0
        self._trains: Optional[JaxActivity] = None
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event: str, seconds: float, **_: Any) -> None:
        if event == COMPILED:
            self._compile_s += seconds

    def versions(self) -> Mapping[str, str]:
        """Name JAX, its compiler's library and what drives the device."""
        import jaxlib
        import numpy

        client = self._settings.device.client
        return {
            "jax": self._jax.__version__,
            "jaxlib": jaxlib.__version__,
            "numpy": numpy.__version__,
            "platform": " ".join(client.platform_version.split()),
        }

    def activity(self, workload: Any, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Lower a network to one compiled training step, or a kernel to another."""
        if isinstance(workload, Ceiling):
            from harness.worker.adapters.jax import ceiling

            return ceiling.activity(workload, self._settings, self._seed)
        make = JaxActivity if feed.files is None else FedActivity
        activity = make(workload, feed, self._settings, self._seed, self._strategy)
        activity.saver_name = options.get("saver") or activity.saver_name
        self._trains = activity
        return activity

    def exchange(self, operation: str, message: int) -> Any:
        """Exchange messages over the mesh of all ranks."""
        return self._strategy.exchange(operation, message)

    def examine(self, workload: Training, precision: str) -> Any:
        """Open a network to the gate."""
        from harness.worker.adapters.jax.subject import JaxSubject

        return JaxSubject(workload, self._settings, precision)

    def probe(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Dict[str, Any]:
        """Say which types, operations and threads the compiled step takes."""
        from harness.worker.adapters.jax.probing import attention, observe

        activity = self.activity(workload, feed, options)
        compiled = activity.compiled()
        seen = observe(activity, compiled, activity.placed)
        if has_attention(workload):
            seen["attention"] = attention(compiled)
        return {**self.facts(), **seen}

    def attribute(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> Any:
        """Say which layer and pass took which share of a step."""
        from harness.worker.adapters.jax.attribution import attribute

        activity = self.activity(workload, feed, options)
        own = self._settings
        return attribute(activity, workload.network, threads=own.threads, is_gpu=own.is_gpu)

    def facts(self) -> Mapping[str, Any]:
        """Say what was used."""
        memory = self._settings.device.memory_stats() or {}
        facts: Dict[str, Any] = {
            "device_name": self._settings.device.device_kind,
            "compiler": "xla" if self._compile_s else None,
            "compile_s": self._compile_s,
        }
        if self._settings.is_gpu:
            is_tf32 = self._jax.config.jax_default_matmul_precision != "float32"
            facts["tf32_products"] = facts["tf32_convolutions"] = is_tf32
        if "peak_bytes_in_use" in memory:
            facts["peak_device_bytes"] = int(memory["peak_bytes_in_use"])
        if self._trains is not None:
            facts.update(self._trains.held())
        return {**facts, **self._strategy.facts()}

    def close(self) -> None:
        """Give back the device's memory and leave the other ranks."""
        self._trains = None
        self._jax.clear_caches()
        self._strategy.close()


def open(job: Job, place: Place) -> JaxAdapter:  # noqa: A001 - the contract's name
    """Import JAX with the job's switches."""
    factors = dict(job.factors)
    if "given" in job.paths:
        factors["precision"] = _examined(job) or factors.get("precision")
    settings = switches.apply(factors, place, lambda: strategies.meet(job, place))
    return JaxAdapter(settings, job.seed, strategies.join(job, place))


def _examined(job: Job) -> Any:
    """Give float64 where the gate asks for it: JAX decides on 64 bits once, for the process."""
    from harness.worker.gate import tensors

    asked = tensors.read(job.paths["given"]).about["precision"]
    return asked if asked == "float64" else None
