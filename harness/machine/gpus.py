"""NVIDIA GPUs of this machine: what they are, who uses them, and which links join them."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
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
    cores: int | None = None
    highest_clock_hz: float | None = None
    compute_capability: tuple[int, int] | None = None


def read_gpus() -> tuple[Gpu, ...] | None:
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
    clock = _ask(nvml, lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))
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
        cores=_ask(nvml, lambda: int(nvml.nvmlDeviceGetNumGpuCores(handle))),
        highest_clock_hz=None if clock is None else clock * 1e6,
        compute_capability=_ask(nvml, lambda: _pair(nvml, handle)),
    )


def _pair(nvml: Any, handle: Any) -> tuple[int, int]:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return int(major), int(minor)


def _ask(nvml: Any, question: Callable[[], _Answer]) -> _Answer | None:
    try:
        return question()
    except nvml.NVMLError:
        # Not every GPU answers every question; unknown stays unknown.
        return None


MOST_LINKS = 18
"""NVLinks of one GPU: NVLink 4 and 5 have so many."""
_BONDED = re.compile(r"NV([0-9]{1,3})")


_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t (nvml.h), in the words of `nvidia-smi topo -m`."""


Graph = tuple[tuple[str, str, str], ...]


def through_switches(pairs: Iterable[tuple[str, str, str]]) -> Graph:
    """Name the switch where `nvidia-smi topo -m` counts links: it shows the same ones to each GPU.

    A GPU that seems to have more links than any has reaches all others through one.
    """
    found = tuple(pairs)
    counts: Counter[str] = Counter()
    for first, second, link in found:
        if match := _BONDED.fullmatch(link):
            counts.update({first: int(match[1]), second: int(match[1])})
    most = {end for end, count in counts.items() if count > MOST_LINKS}
    return tuple(
        (first, second, "NVSwitch" if _BONDED.fullmatch(link) and first in most else link)
        for first, second, link in found
    )


def read_graph() -> Graph:
    """Give each pair of GPUs and its link; nothing where the driver does not answer."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception:  # noqa: BLE001 no library, no driver: in each case nobody can be asked
        return ()
    try:
        return graph(nvml)
    finally:
        nvml.nvmlShutdown()


def graph(nvml: Any) -> Graph:
    """Give each pair of GPUs and its link."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    addresses = [_address(nvml.nvmlDeviceGetPciInfo(handle)) for handle in handles]
    partners = [_partners(nvml, handle) for handle in handles]
    found = []
    for first in range(len(handles)):
        for second in range(first + 1, len(handles)):
            bonded = partners[first][addresses[second]]
            link: str | None
            behind = set(partners[first]) & set(partners[second]) - set(addresses)
            if bonded:
                link = f"NV{bonded}"
            elif behind:
                link = "NVSwitch"
            else:
                link = _level(nvml, handles[first], handles[second])
            if link:
                found.append((str(first), str(second), link))
    return tuple(found)


def _partners(nvml: Any, handle: Any) -> Counter[str]:
    """Count a GPU's active NVLinks by the PCI address at their other end."""
    found: Counter[str] = Counter()
    for link in range(MOST_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, link):
                found[_address(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))] += 1
        except nvml.NVMLError:
            break  # no link of that number, or a GPU without NVLink
    return found


def _level(nvml: Any, first: Any, second: Any) -> str | None:
    try:
        return _LEVELS.get(nvml.nvmlDeviceGetTopologyCommonAncestor(first, second))
    except nvml.NVMLError:
        return None


def _address(info: Any) -> str:
    bus = info.busId
    return bus.decode() if isinstance(bus, bytes) else str(bus)


def has_gpu() -> bool:
    """Tell whether an NVIDIA device is here, without loading its library."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
