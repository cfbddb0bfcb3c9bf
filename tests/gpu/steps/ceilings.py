"""What kernels, memory and copies reach at most on the GPU, held to what its vendor states."""

from __future__ import annotations

from collections.abc import Mapping

from harness import units
from harness.verdicts.credibility.gpu_peaks import GpuPeak, gpu_peak
from tests.gpu.answer import Answer, NotPossible
from tests.gpu.day import Day

LIMIT_S = 480.0
SESSIONS = ("kernels", "device")
_OVER = 1.05
"""Rates above the peak by more than a clock's tolerance are a fault of the measurement."""
_FAR = 0.5
"""Products below this part of the peak are worth a look, and no fault."""


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
    lines, faults = judged(told, stated)
    source = f"stated by {peak.source}" if peak else "no peak of this device is known here"
    return Answer(lines=(f"by {usable[0]}; {source}", *lines), measured=told, faults=faults)


def _peak(day: Day) -> GpuPeak | None:
    """Give the peak of the GPUs here, if they are all of one model that is known."""
    names = {gpu["name"] for gpu in day.gpus.gpus.values()}
    return gpu_peak(names.pop(), None) if len(names) == 1 else None


def judged(
    told: Mapping[str, Mapping[str, str]], stated: Mapping[str, float]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Hold each product's rate to the stated TFLOP/s of its precision; the rest is only told."""
    lines, faults = [], []
    for name, ceiling in told.items():
        text = ceiling.get("compute") or ceiling["bandwidth"]
        peak = next((peak for word, peak in stated.items() if word in name.split("-")), None)
        if peak is None or "compute" not in ceiling:
            lines.append(f"{name}: {text}")
            continue
        share = units.flops(text) / (peak * 1e12)
        lines.append(f"{name}: {text}, {share:.0%} of the stated {peak:g} TFLOP/s")
        if share > _OVER:
            faults.append(f"{name}: {text} is more than the stated {peak:g} TFLOP/s")
        elif share < _FAR:
            lines.append(f"{name}: far below what is stated; does it run on tensor cores?")
    return tuple(lines), tuple(faults)
