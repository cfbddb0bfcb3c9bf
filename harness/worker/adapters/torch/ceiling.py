"""Run ceilings in torch: the kernels that its layers end in, as large as is fair.

A multiplication and an addition are two operations. The triad counts three arrays, as STREAM does:
what a cache line costs that is read before it is overwritten is not counted.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Tuple

import torch

from harness.worker.adapters.torch import failures
from harness.worker.adapters.torch.settings import Settings
from harness.worker.contracts import Unsupported
from harness.worker.network.workload import Ceiling
from harness.worker.storage import StorageActivity

_CHANNELS, _WIDTH, _KERNEL = 128, 56, 3
_STORAGE = ("read", "write")
_COPIES = ("to-device", "from-device")

Kernel = Tuple[Callable[[], Any], float]


class CeilingActivity:
    """One kernel, again and again on the same operands."""

    def __init__(self, kernel: Callable[[], Any], work: float, workload: Ceiling, on: Any) -> None:
        self.units: Mapping[str, float] = {workload.unit: work}
        self._kernel = kernel
        self._device = on

    def step(self) -> None:
        """Enqueue the kernel."""
        try:
            self._kernel()
        except RuntimeError as error:
            raise failures.read(error) from error

    def sync(self) -> None:
        """Wait for the device."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def values(self) -> Mapping[str, float]:
        """Give no values: a ceiling has only its time."""
        return {}

    def agree(self, value: float) -> float:
        """Give the value back: a ceiling is measured by one rank."""
        return value


def activity(workload: Ceiling, settings: Settings, seed: int, tier: Optional[str] = None) -> Any:
    """Make the operands and the kernel; ``tier`` is the folder that storage is measured in."""
    size = workload.device_size if settings.is_gpu else workload.size
    if workload.kernel in _STORAGE:
        return StorageActivity(workload.kernel, size, tier)
    if workload.kernel in _COPIES and not settings.is_gpu:
        raise Unsupported("copies to and from a device need one: device = gpu")
    makers = {"gemm": _gemm, "convolution": _convolution, "triad": _triad}
    maker = makers.get(workload.kernel, _copy)
    torch.manual_seed(seed)
    try:
        with torch.no_grad():
            kernel, work = maker(workload, settings, size)
    except RuntimeError as error:
        raise failures.read(error) from error
    return CeilingActivity(torch.no_grad()(kernel), work, workload, settings.device)


def _gemm(_: Ceiling, settings: Settings, size: int) -> Kernel:
    made = {"device": settings.device, "dtype": settings.compute}
    left, right = torch.randn(size, size, **made), torch.randn(size, size, **made)
    out = torch.empty(size, size, **made)
    return (lambda: torch.mm(left, right, out=out)), 2.0 * size**3


def _convolution(_: Ceiling, settings: Settings, size: int) -> Kernel:
    made = {"device": settings.device, "dtype": settings.compute}
    layer = torch.nn.Conv2d(_CHANNELS, _CHANNELS, _KERNEL, padding=1, bias=False, **made)
    images = torch.randn(size, _CHANNELS, _WIDTH, _WIDTH, **made)
    form = settings.memory_format(2)
    if form is not None:
        layer, images = layer.to(memory_format=form), images.to(memory_format=form)
    work = 2.0 * size * _WIDTH**2 * _CHANNELS**2 * _KERNEL**2
    return (lambda: layer(images)), work


def _triad(_: Ceiling, settings: Settings, size: int) -> Kernel:
    made = {"device": settings.device, "dtype": torch.float32}
    count = size // 4
    first, second = torch.rand(count, **made), torch.rand(count, **made)
    out = torch.empty(count, **made)
    return (lambda: torch.add(first, second, alpha=3.0, out=out)), 3.0 * size


def _copy(workload: Ceiling, settings: Settings, size: int) -> Kernel:
    here = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
    there = torch.zeros(size, dtype=torch.uint8, device=settings.device)
    source, target = (here, there) if workload.kernel == "to-device" else (there, here)
    return (lambda: target.copy_(source, non_blocking=True)), float(size)
