"""This file reads NVIDIA GPUs through NVML, by UUID, in as few calls as the driver allows.

Source: NVML API reference. NVML knows nothing of CUDA_VISIBLE_DEVICES and counts in PCI order, so
each rank's list is mapped here. Byte counters are field values, many in one call; the call that
samples PCIe throughput blocks for 20 ms a GPU and is never made. What a chip does not support is a
gap and is not asked for again; a GPU that falls off the bus is lost from then on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.collect.devices import is_within, used_by
from harness.collect.sampler import Observed
from harness.errors import Unavailable
from harness.store.samples import DENIED, LOST, NOT_READ, UNSUPPORTED, Channel

HZ = 5.0
BLOCKS = True

STAND_IN = "STUB (not a GPU)"
_SLOW_EVERY = 5
"""Readings between two looks at what moves slowly: processes, heat, error counters."""
_ALL_LINKS = 0xFFFFFFFF
_BUSY = "share of the driver's last 1/6 to 1 s in which any kernel ran, however small"


@dataclass(frozen=True)
class _Field:
    """A field value: its number, and what it is called here."""

    number: int
    name: str
    unit: str
    kind: str
    scale: float
    meaning: str = ""
    scope: int = 0


_FIELDS = (
    _Field(83, "gpu.energy", "J", "counter", 1e-3, "since the driver was loaded"),
    _Field(185, "gpu.power.average", "W", "gauge", 1e-3, "averaged over a second"),
    _Field(186, "gpu.power.instant", "W", "gauge", 1e-3, "at the moment of the driver's reading"),
    _Field(197, "gpu.pcie.sent", "bytes", "counter", 1.0),
    _Field(198, "gpu.pcie.received", "bytes", "counter", 1.0),
    _Field(138, "gpu.nvlink.sent", "bytes", "counter", 1024.0, "all links, data only", _ALL_LINKS),
    _Field(
        139, "gpu.nvlink.received", "bytes", "counter", 1024.0, "all links, data only", _ALL_LINKS
    ),
)
_BITS = {1: 32, 2: 64, 3: 64, 5: 31, 6: 16}
"""nvmlValueType -> after how many bits an unsigned counter of it begins again."""


def open(observed: Observed) -> Nvml:  # noqa: A001 - the contract's name
    """Open the source."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Unavailable("NVIDIA's libnvidia-ml.so.1 is not here: no NVIDIA driver") from None
    return Nvml(observed)


class _Device:
    """One GPU: what it supports, and whether it is still there."""

    def __init__(self, nvml: Any, index: int, observed: Observed) -> None:
        self._nvml = nvml
        self._observed = observed
        self._codes = {
            nvml.NVML_ERROR_NOT_SUPPORTED: UNSUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND: UNSUPPORTED,
            nvml.NVML_ERROR_INVALID_ARGUMENT: UNSUPPORTED,
            nvml.NVML_ERROR_NO_PERMISSION: DENIED,
            nvml.NVML_ERROR_GPU_IS_LOST: LOST,
        }
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.uuid = _text(nvml.nvmlDeviceGetUUID(self.handle))
        self.name = _text(nvml.nvmlDeviceGetName(self.handle))
        self.is_lost = False
        self._gone: set[str] = set()
        scope = f"gpu:{self.uuid}"
        self._fields = [(one.number, one.scope) for one in _FIELDS]
        self._calls: tuple[tuple[Callable[[], Sequence[int]], tuple[Channel, ...]], ...] = (
            (
                self._utilisation,
                (
                    Channel("gpu.utilisation", "share", "gauge", scope, 0.01, meaning=_BUSY),
                    Channel("gpu.memory-busy", "share", "gauge", scope, 0.01, meaning=_BUSY),
                ),
            ),
            (
                self._memory,
                (
                    Channel("gpu.memory-used", "bytes", "gauge", scope),
                    Channel("gpu.memory-total", "bytes", "gauge", scope),
                ),
            ),
            (self._sm_clock, (Channel("gpu.clock.sm", "Hz", "gauge", scope, 1e6),)),
            (
                self._slowed,
                (
                    Channel(
                        "gpu.slowed",
                        "1",
                        "flags",
                        scope,
                        meaning="nvmlClocksEventReasons: why clocks are not higher",
                    ),
                ),
            ),
            (self._read_fields, self._field_channels(scope)),
        )
        self._slow_calls: tuple[tuple[Callable[[], Sequence[int]], tuple[Channel, ...]], ...] = (
            (
                self._processes,
                (
                    Channel("gpu.processes", "1", "gauge", scope, meaning="with a context"),
                    Channel("gpu.processes.foreign", "1", "gauge", scope, meaning="of no rank"),
                ),
            ),
            (self._memory_clock, (Channel("gpu.clock.memory", "Hz", "gauge", scope, 1e6),)),
            (self._temperature, (Channel("gpu.temperature", "°C", "gauge", scope),)),
            (self._errors, (Channel("gpu.ecc.uncorrected", "1", "counter", scope),)),
        )
        self.channels = tuple(
            channel for _, channels in (*self._calls, *self._slow_calls) for channel in channels
        )

    def _field_channels(self, scope: str) -> tuple[Channel, ...]:
        """Declare the fields; the driver says in which type it counts, and so where it wraps."""
        try:
            told = self._nvml.nvmlDeviceGetFieldValues(self.handle, self._fields)
            kinds = [one.valueType if one.nvmlReturn == 0 else None for one in told]
        except self._nvml.NVMLError:
            kinds = [None] * len(_FIELDS)
        channels = []
        for field, kind in zip(_FIELDS, kinds, strict=True):
            bits = _BITS.get(kind) if kind is not None and field.kind == "counter" else None
            wraps = None if bits is None else 1 << bits
            channels.append(
                Channel(
                    field.name, field.unit, field.kind, scope, field.scale, wraps, field.meaning
                )
            )
        at = "wall clock of the driver's reading of the energy counter"
        return (*channels, Channel("gpu.fields-at", "s", "gauge", scope, 1e-6, meaning=at))

    def read(self, *, slow: bool) -> list[int]:
        """Read everything that this GPU supports."""
        values: list[int] = []
        for call, channels in self._calls:
            values += self._made(call, len(channels))
        for call, channels in self._slow_calls:
            values += self._made(call, len(channels)) if slow else [NOT_READ] * len(channels)
        return values

    def _made(self, call: Callable[[], Sequence[int]], width: int) -> Sequence[int]:
        if self.is_lost:
            return [LOST] * width
        if call.__name__ in self._gone:
            return [UNSUPPORTED] * width
        try:
            return call()
        except self._nvml.NVMLError as problem:
            code = self._codes.get(problem.value, NOT_READ)
            self.is_lost = code == LOST
            if code == UNSUPPORTED:
                self._gone.add(call.__name__)
            return [code] * width

    def _utilisation(self) -> Sequence[int]:
        told = self._nvml.nvmlDeviceGetUtilizationRates(self.handle)
        return told.gpu, told.memory

    def _memory(self) -> Sequence[int]:
        told = self._nvml.nvmlDeviceGetMemoryInfo(self.handle)
        return told.used, told.total

    def _sm_clock(self) -> Sequence[int]:
        return (self._nvml.nvmlDeviceGetClockInfo(self.handle, self._nvml.NVML_CLOCK_SM),)

    def _memory_clock(self) -> Sequence[int]:
        return (self._nvml.nvmlDeviceGetClockInfo(self.handle, self._nvml.NVML_CLOCK_MEM),)

    def _temperature(self) -> Sequence[int]:
        kind = self._nvml.NVML_TEMPERATURE_GPU
        return (self._nvml.nvmlDeviceGetTemperature(self.handle, kind),)

    def _slowed(self) -> Sequence[int]:
        try:
            return (self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self.handle),)
        except self._nvml.NVMLError_FunctionNotFound:  # the name before driver 535
            return (self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle),)

    def _read_fields(self) -> Sequence[int]:
        told = self._nvml.nvmlDeviceGetFieldValues(self.handle, self._fields)
        values = [
            _value(one) if one.nvmlReturn == 0 else self._codes.get(one.nvmlReturn, NOT_READ)
            for one in told
        ]
        return (*values, told[0].timestamp if told[0].nvmlReturn == 0 else NOT_READ)

    def _processes(self) -> Sequence[int]:
        pids = [one.pid for one in self._nvml.nvmlDeviceGetComputeRunningProcesses(self.handle)]
        own = set(self._observed.ranks.values())
        foreign = sum(not is_within(pid, own, self._observed.root / "proc") for pid in pids)
        return len(pids), foreign

    def _errors(self) -> Sequence[int]:
        nvml = self._nvml
        return (
            nvml.nvmlDeviceGetTotalEccErrors(
                self.handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
            ),
        )


def _value(field: Any) -> int:
    """Read a field value by the type that the driver says it has; doubles as whole numbers."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return int(getattr(field.value, members[field.valueType]))


def _text(told: Any) -> str:
    return told.decode() if isinstance(told, bytes) else str(told)


class Nvml:
    """Every GPU of the node, and which of them the ranks may use."""

    def __init__(self, observed: Observed) -> None:
        import pynvml

        try:
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as problem:
            raise Unavailable(f"NVML: {problem}") from None
        self._readings = 0
        self._devices: list[_Device] = []
        problems: list[str] = []
        for index in range(count):
            try:
                self._devices.append(_Device(pynvml, index, observed))
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
        slow = self._readings % _SLOW_EVERY == 0
        self._readings += 1
        return [value for device in self._devices for value in device.read(slow=slow)]

    def close(self) -> None:
        """Leave NVML initialised: the next trial's GPUs are the same, and starting it is slow."""
