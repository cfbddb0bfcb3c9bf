"""Set JAX's process-wide switches from a job's factors, before JAX is imported.

- fp32 means fp32: JAX's default lets a GPU multiply in TF32, so the precision is always stated.
- bf16 and fp16 are mixed: weights, optimiser and batch statistics stay in fp32. In bf16-pure only
  batch statistics do.
- XLA sizes its CPU thread pool once, by PJRT_NPROC, NPROC or the CPUs this process may use.
- Layout: channels-last on CPUs, where Eigen convolves in it; on GPUs XLA picks what cuDNN likes,
  and channels-last saves it the transposes in bf16 and fp16.
- JAX takes most of a GPU's memory at its first breath, which hides what a step needs: switched off.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from harness.worker.contracts import Unsupported
from harness.worker.facts.resources import threads
from harness.worker.job import micro_batches, recomputes
from harness.worker.place import Place

MATMUL = {"tf32": "tensorfloat32", "fp16": "default", "bf16": "default", "bf16-pure": "default"}


@dataclass(frozen=True)
class Settings:
    """What the factors came to in this process."""

    device: Any
    precision: str
    channels_last: bool
    accumulate: int = 1
    """Micro-batches of a step."""
    recomputes: bool = False
    """Whether a step keeps what enters its network's blocks, and computes the rest anew."""
    threads: int = 1
    """Of XLA's pool."""

    @property
    def is_gpu(self) -> bool:
        """Say whether the step runs on a GPU."""
        return bool(self.device.platform != "cpu")


def apply(
    factors: Mapping[str, Any], place: Place, meet: Callable[[], None] = lambda: None
) -> Settings:
    """Import JAX with the right switches; refuse what this machine cannot do.

    ``meet`` finds the other ranks, which has to happen before JAX starts its devices.
    """
    precision = factors.get("precision") or "fp32"
    kind = factors.get("device") or "cpu"
    if precision in ("tf32", "fp16") and kind == "cpu":
        raise Unsupported("{} is for GPUs; on a CPU use fp32 or bf16".format(precision))
    _environment(factors, kind)

    import jax

    jax.config.update("jax_platforms", {"cpu": "cpu", "gpu": "cuda"}[kind])
    jax.config.update("jax_enable_x64", precision == "float64")
    jax.config.update("jax_default_matmul_precision", MATMUL.get(precision, "float32"))
    meet()
    device = _device(jax, kind, place)
    jax.config.update("jax_default_device", device)
    return Settings(
        device=device,
        precision=precision,
        channels_last=factors.get("layout") != "channels-first",
        accumulate=micro_batches(factors),
        recomputes=recomputes(factors),
        threads=threads(factors),
    )


def _environment(factors: Mapping[str, Any], kind: str) -> None:
    for name in ("PJRT_NPROC", "NPROC"):  # the first counts, and a user may have set either
        os.environ[name] = str(threads(factors))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if factors.get("deterministic") and kind == "gpu":
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = flags + " --xla_gpu_deterministic_ops=true"


def _device(jax: Any, kind: str, place: Place) -> Any:
    try:
        devices = jax.local_devices()
    except RuntimeError as error:
        raise Unsupported("JAX {} sees no {}: {}".format(jax.__version__, kind, error)) from error
    if kind == "cpu":
        return devices[0]
    if jax.process_count() > 1:
        return devices[0]  # the only one that this process was given
    if place.local_rank >= len(devices):
        raise Unsupported(
            "local rank {} has no device of its own: JAX sees {}".format(
                place.local_rank, len(devices)
            )
        )
    return devices[place.local_rank]
