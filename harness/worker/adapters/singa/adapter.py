"""Open SINGA for a worker, in the interpreter that SINGA_PYTHON names.

Defaults and why: no graph (on a CPU, ResNet-50 crashed in 5.1's); as many threads as the rank may
use; fp32, which is all it trains in. Versions before 3.1 have no ``model.Model``.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping

from harness.worker.contracts import OutOfMemory, Unsupported
from harness.worker.facts.resources import threads
from harness.worker.feed import Feed
from harness.worker.job import Job
from harness.worker.network.rule import product
from harness.worker.network.workload import Training
from harness.worker.place import Place


class SingaActivity:
    """Train on one batch that stays on the device."""

    def __init__(self, workload: Training, feed: Feed, device: Any, is_cpu: bool, compiled: bool):
        from singa import tensor

        from harness.worker.adapters.singa import training
        from harness.worker.adapters.singa.lowering import Lowered

        self._tensor = tensor
        self._device = device
        net = Lowered(workload.network, is_cpu)
        self._batch = training.Batch(net, feed, device)
        self._model = training.prepare(net, workload, feed, self._batch, compiled)
        self._loss: Any = None
        self.units: Mapping[str, float] = {workload.unit: feed.work_per_rank}

    def step(self) -> None:
        """Train once; on a GPU this enqueues."""
        try:
            _, self._loss = self._model(self._batch.x, self._batch.target)
        except RuntimeError as fault:
            if "out of memory" in str(fault).lower():
                raise OutOfMemory(str(fault)) from fault
            raise

    def sync(self) -> None:
        """Wait for the last step."""
        self._device.Sync()

    def values(self) -> Mapping[str, float]:
        """Give the last step's loss."""
        return {"loss": float(self._tensor.to_numpy(self._loss).ravel()[0])}

    def agree(self, value: float) -> float:
        """Give the value back: one rank has nobody to agree with."""
        return value

    def parameters(self) -> int:
        """Count what the model registered: names that collide count once."""
        return sum(product(value.shape) for value in self._model.get_params().values())


class SingaAdapter:
    """SINGA in this process."""

    def __init__(self, factors: Mapping[str, Any], place: Place, threads: int) -> None:
        import singa
        from singa import device

        self._version = dotted(singa.__version__)
        self._threads = threads
        self._is_cpu = (factors.get("device") or "cpu") == "cpu"
        self._compiled = bool(factors.get("compile"))
        self._device = (
            device.create_cpu_device()
            if self._is_cpu
            else device.create_cuda_gpu_on(place.local_rank)
        )

    def versions(self) -> Mapping[str, str]:
        """Name SINGA and numpy, through which numbers enter."""
        import numpy

        return {"singa": self._version, "numpy": numpy.__version__}

    def activity(self, workload: Training, feed: Feed, options: Mapping[str, Any]) -> SingaActivity:
        """Lower a network to a SINGA model."""
        return SingaActivity(workload, feed, self._device, self._is_cpu, self._compiled)

    def examine(self, workload: Training, precision: str) -> Any:
        """Examine layer by layer in fp32, outside graph mode."""
        if precision == "float64":
            raise Unsupported("SINGA trains in fp32 only")
        from harness.worker.adapters.singa.subject import SingaSubject

        return SingaSubject(workload, self._device, self._is_cpu, self._compiled)

    def facts(self) -> Mapping[str, Any]:
        """Say what was used."""
        facts: Dict[str, Any] = {"threads": self._threads, "graph": self._compiled}
        return dict(facts, layout="channels-first", device="cpu" if self._is_cpu else "gpu")

    def close(self) -> None:
        """Close nothing: no file is held open."""


def dotted(version: Any) -> str:
    """Write a version as people do; SINGA counts 5.1.0 as 5100 (its CMakeLists.txt)."""
    text = str(version)
    if not text.isdigit():
        return text
    major, rest = divmod(int(text), 1000)
    return "{}.{}.{}".format(major, *divmod(rest, 100))


def open(job: Job, place: Place) -> SingaAdapter:  # noqa: A001 - the contract's name
    """Set what SINGA's libraries read when they are loaded, then import it."""
    if place.size > 1:
        raise Unsupported("SINGA's DistOpt needs NCCL; it is not offered yet")
    share = threads(job.factors)
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[library + "_NUM_THREADS"] = str(share)
    try:
        from singa import model
    except ImportError as fault:
        raise Unsupported("SINGA 3.1 or later is needed here: {}".format(fault)) from fault
    del model
    return SingaAdapter(job.factors, place, share)
