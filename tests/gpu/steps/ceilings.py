"""What kernels, memory and copies reach at most on the GPU, held to what its vendor states."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness import units
from harness.verdicts.credibility.gpu_peaks import GpuPeak, gpu_peak
from tests.gpu import published
from tests.gpu.answer import Answer, NotPossible
from tests.gpu.day import Day
from tests.gpu.nvidia_smi import NvidiaSmi
from tests.gpu.published import Stated

LIMIT_S = 480.0
SESSIONS = ("kernels", "device")
_OVER = 1.05
"""Rates above the peak by more than a clock's tolerance are a fault of the measurement."""
_FAR = 0.5
"""Rates below this part of the peak are worth a look, and no fault."""


def measure(day: Day, session: str) -> Answer:
    """Calibrate one session with the first framework that can be used."""
    usable, reasons = day.frameworks()
    if not usable:
        raise NotPossible("; ".join(reasons))
    if day.is_dry and session == "device":
        raise NotPossible("copies to a device need one")
    trials, until = ("1", "0.2 s") if day.is_dry else ("3", "2 s")
    told = day.bakeoff(
        *("platforms", "calibrate", str(day.platform()), "--framework", usable[0]),
        *("--device", day.device, "--trials", trials, "--until", until),
        *("--only", session, "--json"),
        limit_s=LIMIT_S,
    ).json()
    peak = None if day.is_dry else _peak(day)
    stated = {} if peak is None else {one: peak.of(one) for one in ("fp32", "tf32", "bf16", "fp16")}
    moved = {} if day.is_dry else _moved()
    lines, faults = judged(told, stated, moved)
    sources = [peak.source] if peak else []
    sources = list(dict.fromkeys([*sources, *(source for _, source in moved.values())]))
    source = f"stated by {', '.join(sources)}" if sources else "nothing is known here of this GPU"
    return Answer(lines=(f"by {usable[0]}; {source}", *lines), measured=told, faults=faults)


def _moved() -> Mapping[str, Stated]:
    """Give what is published of memory and copies, if the GPUs here are all of one model."""
    gpus = tuple(
        NvidiaSmi(("name", "pcie.link.gen.max", "pcie.link.width.max")).read().gpus.values()
    )
    if len({gpu["name"] for gpu in gpus}) != 1:
        return {}
    name = gpus[0]["name"]
    link = published.link(name, gpus[0])
    stated = {"gpu-memory": published.memory(name), "host-to-device": link, "device-to-host": link}
    return {ceiling: one for ceiling, one in stated.items() if one is not None}


def _peak(day: Day) -> GpuPeak | None:
    """Give the peak of the GPUs here, if they are all of one model that is known."""
    names = {gpu["name"] for gpu in day.gpus.gpus.values()}
    return gpu_peak(names.pop(), None) if len(names) == 1 else None


def judged(
    told: Mapping[str, Mapping[str, str]],
    stated: Mapping[str, float],
    moved: Mapping[str, Stated] = MappingProxyType({}),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Hold products to the stated TFLOP/s of their precision, memory and copies to GB/s."""
    lines, faults = [], []
    for name, ceiling in told.items():
        if "compute" in ceiling:
            text, unit, size = ceiling["compute"], "TFLOP/s", 1e12
            value = units.flops(text)
            peak = next((peak for word, peak in stated.items() if word in name.split("-")), None)
        else:
            text, unit, size = ceiling["bandwidth"], "GB/s", 1e9
            value = units.bytes_per_second(text)
            peak = moved[name][0] if name in moved else None
        if peak is None:
            lines.append(f"{name}: {text}")
            continue
        share = value / (peak * size)
        lines.append(f"{name}: {text}, {share:.0%} of the stated {peak:.4g} {unit}")
        if share > _OVER:
            faults.append(f"{name}: {text} is more than the stated {peak:.4g} {unit}")
        elif share < _FAR:
            why = "; does it run on tensor cores?" if unit == "TFLOP/s" else ""
            lines.append(f"{name}: far below what is stated{why}")
    return tuple(lines), tuple(faults)
