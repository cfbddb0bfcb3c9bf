"""An NVML that tells links, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace


class NvmlError(Exception):
    """What NVML says to a question it does not answer."""


def nvml(partners: list[list[str]]) -> SimpleNamespace:
    """Give an NVML in which GPU i has the NVLinks to the PCI addresses of its list."""

    def remote(gpu: int, link: int) -> SimpleNamespace:
        return SimpleNamespace(busId=partners[gpu][link].encode())

    def state(gpu: int, link: int) -> int:
        if link >= len(partners[gpu]):
            raise NvmlError
        return 1

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlDeviceGetCount=lambda: len(partners),
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetPciInfo=lambda gpu: SimpleNamespace(busId=f"gpu{gpu}"),
        nvmlDeviceGetNvLinkState=state,
        nvmlDeviceGetNvLinkRemotePciInfo=remote,
        nvmlDeviceGetTopologyCommonAncestor=lambda _first, _second: 50,
    )
