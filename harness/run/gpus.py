"""This file asks the NVIDIA driver what GPUs are here and who uses them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Gpu:
    """One GPU, known by its UUID: indexes differ between tools."""

    uuid: str
    name: str
    driver: str | None
    memory_bytes: int | None
    used_bytes: int | None
    processes: int | None
    """How many processes compute on it."""
    persistence: bool | None
    ecc: bool | None
    power_limit_w: float | None


def gpus() -> tuple[Gpu, ...] | None:
    """List the GPUs; None where the driver's library does not answer."""
    try:
        pynvml = importlib.import_module("pynvml")  # 40 ms, of use only where a device is
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        count = _ask(pynvml, pynvml.nvmlDeviceGetCount) or 0
        return tuple(_gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count))
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: Any, handle: Any) -> Gpu:
    memory = _ask(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    processes = _ask(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    persistence = _ask(nvml, lambda: nvml.nvmlDeviceGetPersistenceMode(handle))
    ecc = _ask(nvml, lambda: nvml.nvmlDeviceGetEccMode(handle)[0])
    limit = _ask(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    return Gpu(
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=str(nvml.nvmlDeviceGetName(handle)),
        driver=_ask(nvml, nvml.nvmlSystemGetDriverVersion),
        memory_bytes=None if memory is None else int(memory.total),
        used_bytes=None if memory is None else int(memory.used),
        processes=None if processes is None else len(processes),
        persistence=None if persistence is None else bool(persistence),
        ecc=None if ecc is None else bool(ecc),
        power_limit_w=None if limit is None else limit / 1000,
    )


def _ask(nvml: Any, question: Callable[[], _Answer]) -> _Answer | None:
    try:
        return question()
    except nvml.NVMLError:
        # Not every GPU answers every question; unknown stays unknown.
        return None
