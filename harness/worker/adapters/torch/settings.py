"""Set torch's process-wide switches from a job's factors, each as an expert would.

- Without ``deterministic``, cuDNN measures its algorithms once per shape: shapes never change here.
- fp32 means fp32: torch's default lets cuDNN convolve in TF32, so both switches are set.
- bf16 and fp16 are autocast: weights and optimiser stay in fp32. fp16 scales its loss.
- bf16-pure is no autocast: the network itself is bfloat16, and so are gradients and optimiser.
- Threads default to the CPUs this rank may use; torch would take the machine's physical cores.
- Channels-last is the layout oneDNN and cuDNN compute in: channels-first reorders at every
  convolution. One-dimensional tensors have no such form in torch.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import Any, ContextManager, Mapping, Optional

import torch

from harness.worker.contracts import Unsupported
from harness.worker.facts.resources import threads
from harness.worker.job import micro_batches, recomputes
from harness.worker.network.precisions import precision_of
from harness.worker.place import Place

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
LAYOUTS = {2: torch.channels_last, 3: torch.channels_last_3d}


@dataclass(frozen=True)
class Settings:
    """What the factors came to in this process."""

    device: torch.device
    precision: str
    layout: str
    is_compiled: bool
    mode: str
    saver: str = "save"
    """What takes checkpoints: save, distributed, distributed-async."""
    accumulate: int = 1
    """Micro-batches of a step."""
    recomputes: bool = False
    """Whether a step keeps what enters its network's blocks, and computes the rest anew."""

    @property
    def is_gpu(self) -> bool:
        """Say whether the step runs on a CUDA device."""
        return bool(self.device.type == "cuda")

    @property
    def compute(self) -> torch.dtype:
        """Give the type that convolutions and products work in."""
        return self._type(precision_of(self.precision).compute)

    @property
    def held(self) -> torch.dtype:
        """Give the type that weights, gradients and the optimiser's state have."""
        return self._type(precision_of(self.precision).held)

    def _type(self, name: str) -> torch.dtype:
        found: torch.dtype = torch.float64 if self.precision == "float64" else getattr(torch, name)
        return found

    def autocast(self) -> ContextManager[Any]:
        """Give the context that a forward pass runs in."""
        if self.precision not in AUTOCAST:
            return contextlib.nullcontext()
        context: ContextManager[Any] = torch.autocast(
            self.device.type, dtype=AUTOCAST[self.precision]
        )
        return context

    def memory_format(self, spatial: int) -> Optional[torch.memory_format]:
        """Give the layout of activations with that many spatial dimensions; None: torch's own."""
        if self.layout == "channels-last" and spatial not in LAYOUTS:
            raise Unsupported(
                "torch has no channels-last form for {} spatial dimensions; "
                "use layout channels-first or default".format(spatial)
            )
        return None if self.layout == "channels-first" else LAYOUTS.get(spatial)


def apply(factors: Mapping[str, Any], options: Mapping[str, Any], place: Place) -> Settings:
    """Set the switches and give what they came to; refuse what this machine cannot do."""
    precision = factors.get("precision") or "fp32"
    device = _device(factors.get("device") or "cpu", place)
    _refuse(precision, device)
    _set_threads(factors)
    _set_determinism(bool(factors.get("deterministic")))
    _set_float32("tf32" if precision == "tf32" else "ieee")
    if factors.get("onednn") is not None:
        torch.backends.mkldnn.enabled = bool(factors["onednn"])
    return Settings(
        device=device,
        precision=precision,
        layout=factors.get("layout") or "default",
        is_compiled=bool(factors.get("compile")),
        mode=options.get("compile_mode") or "default",
        saver=options.get("saver") or "save",
        accumulate=micro_batches(factors),
        recomputes=recomputes(factors),
    )


def _device(name: str, place: Place) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise Unsupported(
            "torch {} sees no CUDA device (built for CUDA: {})".format(
                torch.__version__, torch.version.cuda or "no"
            )
        )
    seen = torch.cuda.device_count()
    if place.local_rank >= seen:
        raise Unsupported(
            "local rank {} has no device of its own: torch sees {}".format(place.local_rank, seen)
        )
    device = torch.device("cuda", place.local_rank)
    torch.cuda.set_device(device)
    return device


def _refuse(precision: str, device: torch.device) -> None:
    if precision == "tf32" and device.type != "cuda":
        raise Unsupported("TF32 exists on NVIDIA GPUs only")
    if precision == "fp16" and device.type != "cuda":
        raise Unsupported("torch trains in fp16 on GPUs; on a CPU use bf16")
    if precision.startswith("bf16") and device.type == "cuda" and not _has_bfloat16():
        raise Unsupported("this GPU has no bfloat16")


def _has_bfloat16() -> bool:
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def _set_threads(factors: Mapping[str, Any]) -> None:
    torch.set_num_threads(threads(factors))
    interop = factors.get("interop_threads")
    if interop and interop != torch.get_num_interop_threads():
        torch.set_num_interop_threads(interop)


def _set_determinism(is_deterministic: bool) -> None:
    torch.backends.cudnn.benchmark = not is_deterministic
    torch.use_deterministic_algorithms(is_deterministic)


def _set_float32(precision: str) -> None:
    """Choose what a GPU makes of fp32; torch 2.9 renamed both switches."""
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        torch.backends.cuda.matmul.fp32_precision = precision
        torch.backends.cudnn.conv.fp32_precision = precision
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
