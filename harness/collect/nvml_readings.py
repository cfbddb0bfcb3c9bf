"""Read one NVIDIA GPU: often through few calls into one buffer, what is rare by pynvml.

pynvml loads the library, finds the GPU and asks for what moves slowly. Each of its calls makes new
objects, which at ten readings a second of eight GPUs costs more than the driver does: so what moves
fast is asked of the same library, into memory that is laid out once.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.collect.devices import strangers
from harness.collect.nvlink_counters import NvLinkCounters
from harness.collect.nvml_fields import BITS, FORMAT, UNSIGNED_32, UNSIGNED_64, number
from harness.collect.sampler import Observed
from harness.store.samples.samples_format import DENIED, LOST, NOT_READ, UNSUPPORTED, Channel

_BUSY = "share of the driver's last 1/6 to 1 s in which any kernel ran, however small"
_WHY_SLOWED = "nvmlClocksEventReasons: why clocks are not higher"
# NVML API reference, nvmlDeviceGetPowerUsage.
_POWER = "of a moment on GA100 and older, averaged over a second on newer chips"
_SINCE = "since the driver was loaded"
_LINK = "as it is now: an idle GPU may have its link slowed down"
_FIELDS_AT = "wall clock of the driver's reading of the energy counter"


@dataclass(frozen=True)
class _Field:
    """A field value: its number, and what it is called here."""

    number: int
    name: str
    unit: str
    kind: str
    scale: float
    meaning: str = ""


_FIELDS = (
    _Field(83, "gpu.energy", "J", "counter", 1e-3, _SINCE),
    _Field(185, "gpu.power.average", "W", "gauge", 1e-3, "averaged over a second"),
    _Field(186, "gpu.power.instant", "W", "gauge", 1e-3, "at the moment of the driver's reading"),
    _Field(197, "gpu.pcie.sent", "bytes", "counter", 1.0),
    _Field(198, "gpu.pcie.received", "bytes", "counter", 1.0),
)

# nvmlUtilization_t, nvmlMemory_t, a clock, the reasons, then nvmlFieldValue_t for each field.
_LAYOUT = struct.Struct("<2I3QI4xQ" + FORMAT * len(_FIELDS))
_MEMORY, _CLOCK, _REASONS, _VALUES = 8, 32, 40, 48
_POWER_FIELDS = (1, 2)
"""Which of the fields are power."""
_PLACES = tuple(7 + 7 * at for at in range(len(_FIELDS)))
"""Where each field begins among what ``_LAYOUT`` reads."""
_SPANS = ((0, 2), (2, 4), (4, 5), (5, 6), (6, 7 + len(_FIELDS)))
"""Which channels each of the fast calls gives."""


class Gpu:
    """What one GPU supports, and whether it is still there."""

    def __init__(self, nvml: Any, library: Any, index: int, observed: Observed) -> None:
        self._nvml = nvml
        self._observed = observed
        self._gaps = {
            nvml.NVML_ERROR_NOT_SUPPORTED: UNSUPPORTED,
            nvml.NVML_ERROR_FUNCTION_NOT_FOUND: UNSUPPORTED,
            nvml.NVML_ERROR_INVALID_ARGUMENT: UNSUPPORTED,
            nvml.NVML_ERROR_NO_PERMISSION: DENIED,
            nvml.NVML_ERROR_GPU_IS_LOST: LOST,
        }
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)
        self.uuid = _text(nvml.nvmlDeviceGetUUID(self._handle))
        self.name = _text(nvml.nvmlDeviceGetName(self._handle))
        self._is_lost = False
        self._buffer = ctypes.create_string_buffer(_LAYOUT.size)
        values = (nvml.c_nvmlFieldValue_t * len(_FIELDS)).from_buffer(self._buffer, _VALUES)
        for value, field in zip(values, _FIELDS, strict=True):
            value.fieldId = field.number
        self._failed = [0] * len(_SPANS)
        """The gap of each fast call that is not made any more."""
        self._fast = self._calls(library)
        scope = f"gpu:{self.uuid}"
        self._slow: list[tuple[Callable[[], Sequence[int]], tuple[Channel, ...]]] = [
            (
                self._processes,
                (
                    Channel("gpu.processes", "1", "gauge", scope, meaning="with a context"),
                    Channel("gpu.processes.foreign", "1", "gauge", scope, meaning="of no rank"),
                ),
            ),
            (self._memory_clock, (Channel("gpu.clock.memory", "Hz", "gauge", scope, 1e6),)),
            (self._temperature, (Channel("gpu.temperature", "°C", "gauge", scope),)),
            (
                self._errors,
                tuple(
                    Channel(f"gpu.ecc.{name}", "1", "gauge", scope, meaning=_SINCE)
                    for name in ("corrected", "uncorrected")
                ),
            ),
            (
                self._pcie,
                (
                    Channel("gpu.pcie.lanes", "1", "gauge", scope, meaning=_LINK),
                    Channel("gpu.pcie.generation", "1", "gauge", scope, meaning=_LINK),
                ),
            ),
        ]
        fields = self._field_channels(scope)
        ask = getattr(library, "nvmlDeviceGetFieldValues", None)
        self._links = NvLinkCounters(ask and partial(ask, self._handle), scope, self._gaps)
        if not self._tells_power():
            power = Channel("gpu.power", "W", "gauge", scope, 1e-3, meaning=_POWER)
            self._slow.append((self._power, (power,)))
        self._slow_gaps = [NOT_READ] * sum(len(channels) for _, channels in self._slow)
        self.channels = (
            Channel("gpu.utilisation", "share", "gauge", scope, 0.01, meaning=_BUSY),
            Channel("gpu.memory-busy", "share", "gauge", scope, 0.01, meaning=_BUSY),
            Channel("gpu.memory-used", "bytes", "gauge", scope),
            Channel("gpu.memory-total", "bytes", "gauge", scope),
            Channel("gpu.clock.sm", "Hz", "gauge", scope, 1e6),
            Channel("gpu.slowed", "1", "flags", scope, meaning=_WHY_SLOWED),
            *fields,
            Channel("gpu.fields-at", "s", "gauge", scope, 1e-6, meaning=_FIELDS_AT),
            *self._links.channels,
            *(channel for _, channels in self._slow for channel in channels),
        )

    def _calls(self, library: Any) -> list[tuple[int, Any, tuple[Any, ...]]]:
        """Bind each fast call to its place in the buffer; leave out what this driver lacks."""

        def at(offset: int) -> Any:
            return ctypes.byref(self._buffer, offset)

        # The reasons' name before driver 535 is the second.
        reasons = "nvmlDeviceGetCurrentClocksEventReasons"
        if not hasattr(library, reasons):
            reasons = "nvmlDeviceGetCurrentClocksThrottleReasons"
        wanted: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("nvmlDeviceGetUtilizationRates", (at(0),)),
            ("nvmlDeviceGetMemoryInfo", (at(_MEMORY),)),
            ("nvmlDeviceGetClockInfo", (self._nvml.NVML_CLOCK_SM, at(_CLOCK))),
            (reasons, (at(_REASONS),)),
            ("nvmlDeviceGetFieldValues", (len(_FIELDS), at(_VALUES))),
        )
        calls = []
        for part, (name, arguments) in enumerate(wanted):
            function = getattr(library, name, None)
            if function is None:
                self._failed[part] = UNSUPPORTED
            else:
                calls.append((part, function, (self._handle, *arguments)))
        return calls

    def _field_channels(self, scope: str) -> list[Channel]:
        """Declare the fields; the driver says in which type it counts, and so where it wraps."""
        failed = self._ask()
        told = _LAYOUT.unpack(self._buffer)
        channels = []
        for field, at in zip(_FIELDS, _PLACES, strict=True):
            kind, result = told[at + 4], told[at + 5]
            known = field.kind == "counter" and not failed[-1] and result == 0
            bits = BITS.get(kind) if known else None
            wraps = None if bits is None else 1 << bits
            channels.append(
                Channel(
                    field.name, field.unit, field.kind, scope, field.scale, wraps, field.meaning
                )
            )
        return channels

    def _tells_power(self) -> bool:
        """Tell whether any field gives power; with older drivers none does."""
        told = _LAYOUT.unpack(self._buffer)
        return not self._failed[-1] and any(told[_PLACES[at] + 5] == 0 for at in _POWER_FIELDS)

    def read(self, *, slow: bool) -> list[int]:
        """Read everything that this GPU supports."""
        if self._is_lost:
            return [LOST] * len(self.channels)
        failed = self._ask()
        told = _LAYOUT.unpack(self._buffer)
        busy, memory_busy, total, _, used, clock, reasons = told[:7]
        values = [busy, memory_busy, used, total, clock, reasons]
        for at in _PLACES:
            _, _, _, _, kind, result, value = told[at : at + 7]
            if result:
                values.append(self._gaps.get(result, NOT_READ))
            elif kind == UNSIGNED_64:
                values.append(value)
            elif kind == UNSIGNED_32:
                values.append(value & 0xFFFFFFFF)
            else:
                values.append(number(kind, value))
        values.append(NOT_READ if told[_PLACES[0] + 5] else told[_PLACES[0] + 2])
        if any(failed):
            for (begin, end), gap in zip(_SPANS, failed, strict=True):
                if gap:
                    values[begin:end] = [gap] * (end - begin)
        values += self._links.read()
        values += self._read_slow() if slow else self._slow_gaps
        return values

    def _ask(self) -> list[int]:
        """Make every fast call; give the gap of each that failed, 0 of the others."""
        failed = self._failed.copy()
        for part, function, arguments in self._fast:
            result = function(*arguments)
            if result:
                failed[part] = self._gaps.get(result, NOT_READ)
        if failed != self._failed:
            self._is_lost = LOST in failed
            self._failed = [gap if gap == UNSUPPORTED else 0 for gap in failed]
            self._fast = [one for one in self._fast if not self._failed[one[0]]]
        return failed

    def _read_slow(self) -> list[int]:
        values: list[int] = []
        for at, (call, channels) in enumerate(self._slow):
            try:
                values += call()
            except self._nvml.NVMLError as problem:
                gap = self._gaps.get(problem.value, NOT_READ)
                values += [gap] * len(channels)
                self._is_lost = self._is_lost or gap == LOST
                if gap == UNSUPPORTED:
                    gaps = [gap] * len(channels)
                    self._slow[at] = (gaps.copy, channels)
        return values

    def _memory_clock(self) -> Sequence[int]:
        return (self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_MEM),)

    def _power(self) -> Sequence[int]:
        return (self._nvml.nvmlDeviceGetPowerUsage(self._handle),)

    def _temperature(self) -> Sequence[int]:
        kind = self._nvml.NVML_TEMPERATURE_GPU
        return (self._nvml.nvmlDeviceGetTemperature(self._handle, kind),)

    def _processes(self) -> Sequence[int]:
        pids = [one.pid for one in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)]
        own = self._observed.ranks.values()
        foreign = strangers(pids, own, self._observed.root / "proc")
        return len(pids), UNSUPPORTED if foreign is None else foreign

    def _errors(self) -> Sequence[int]:
        nvml = self._nvml
        kinds = (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
        ask, counter = nvml.nvmlDeviceGetTotalEccErrors, nvml.NVML_VOLATILE_ECC
        return tuple(ask(self._handle, kind, counter) for kind in kinds)

    def _pcie(self) -> Sequence[int]:
        nvml = self._nvml
        return (
            nvml.nvmlDeviceGetCurrPcieLinkWidth(self._handle),
            nvml.nvmlDeviceGetCurrPcieLinkGeneration(self._handle),
        )


def _text(told: Any) -> str:
    return told.decode() if isinstance(told, bytes) else str(told)
