"""Read NVIDIA GPUs through NVML, by UUID, in as few calls as the driver allows.

Source: NVML API reference. NVML knows nothing of CUDA_VISIBLE_DEVICES and counts in PCI order, so
each rank's list is mapped here. Byte counters are field values, many in one call; the call that
samples PCIe throughput blocks for 20 ms a GPU and is never made. What a chip does not support is a
gap and is not asked for again; a GPU that falls off the bus is lost from then on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from harness.collect.devices import used_by
from harness.collect.nvml_readings import Gpu
from harness.collect.sampler import Observed
from harness.errors import Unavailable

HZ = 5.0
BLOCKS = True

STAND_IN = "STUB (not a GPU)"
_SLOW_EVERY = 5
"""Readings between two looks at what moves slowly: processes, heat, error counters."""


def open(observed: Observed) -> Nvml:  # noqa: A001 - the contract's name
    """Open the source."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Unavailable("NVIDIA's libnvidia-ml.so.1 is not here: no NVIDIA driver") from None
    return Nvml(library, observed)


class Nvml:
    """Every GPU of the node, and which of them the ranks may use."""

    def __init__(self, library: ctypes.CDLL, observed: Observed) -> None:
        import pynvml

        try:
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as problem:
            raise Unavailable(f"NVML: {problem}") from None
        self._readings = 0
        self._devices: list[Gpu] = []
        problems: list[str] = []
        for index in range(count):
            try:
                self._devices.append(Gpu(pynvml, library, index, observed))
            except pynvml.NVMLError as problem:
                problems.append(f"GPU {index}: {problem}")
        if not self._devices:
            raise Unavailable("NVML: " + ("; ".join(problems) or "it knows no GPU"))
        self.channels = tuple(channel for one in self._devices for channel in one.channels)
        uuids = [device.uuid for device in self._devices]
        self.notes: Mapping[str, Any] = {
            "names": {f"gpu:{device.uuid}": device.name for device in self._devices},
            "used": [f"gpu:{uuid}" for uuid in used_by(observed.devices, uuids)],
            "problems": problems,
        }
        stand_in = any(STAND_IN in device.name for device in self._devices)
        self.stand_in = STAND_IN if stand_in else None

    def read(self) -> list[int]:
        """Read every GPU."""
        # Each GPU's turn for what is slow comes at another reading: none takes much longer.
        values: list[int] = []
        for index, device in enumerate(self._devices, self._readings):
            values += device.read(slow=index % _SLOW_EVERY == 0)
        self._readings += 1
        return values

    def close(self) -> None:
        """Leave NVML initialised: the next trial's GPUs are the same, and starting it is slow."""
