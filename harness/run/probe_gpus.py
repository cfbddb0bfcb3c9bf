"""This file asks NVML what joins the GPUs: bonded NVLinks, a switch, or levels of PCI Express."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import Any

_LINKS = 18
"""NVLinks of one GPU, at most: NVLink 4 and 5 have 18."""
_LEVELS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""nvmlGpuTopologyLevel_t (nvml.h), in the words of `nvidia-smi topo -m`."""

Graph = tuple[tuple[str, str, str], ...]


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
    for link in range(_LINKS):
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
