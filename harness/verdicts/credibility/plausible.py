"""Hold the operations that a rate implies to the most that the processors can do.

The bound errs on the side of the machine: every core of the node, the widest instructions that it
has on two ports, a clock that none exceeds. On top of it comes room for algorithms that multiply
less than they are counted: Winograd's saves up to 4 times (Lavin, Gray, arXiv:1509.09308).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness import units
from harness.store.records import RunInfo
from harness.verdicts.credibility.gpu_peaks import gpu_peak
from harness.verdicts.thresholds import THRESHOLDS, Finding
from harness.worker.network.precisions import precision_of
from harness.worker.network.workload import TOKENS, work_per_sample
from harness.worker.scale import Scale

OPERATIONS_PER_MAC = 2
PASSES = 3
"""One forward pass, and a backward pass that costs two."""
SAMPLES = ("images", "samples", "volumes", "traces", "sequences", TOKENS)
"""Units of work that a network is counted by."""
_CLOCK_HZ = 6.2e9
"""The highest that a processor is sold with, turbo included."""
# operations of a core in a cycle: two ports, a multiply-add in each lane; the first that it has
_WIDE: Sequence[tuple[str, float]] = (
    ("avx512f", 64),
    ("avx2", 32),
    ("avx", 16),
    ("sve", 64),
    ("asimd", 32),
    ("vsx", 32),
    ("sse4_2", 8),
)
_TILES: Sequence[tuple[str, float]] = (
    ("amx_bf16", 1024),
    ("avx512_bf16", 128),
    ("avx512_fp16", 128),
    ("bf16", 256),
)
"""The same in bf16 and fp16, where a core has it."""


class Rated(Protocol):
    """A cell, as far as its rate implies operations."""

    @property
    def macs(self) -> int | None:
        """Multiplications of the forward pass of one sample."""

    @property
    def unit(self) -> str:
        """What its rate counts."""

    @property
    def factors(self) -> Mapping[str, Any]:
        """Every factor with its value."""

    @property
    def scale(self) -> Scale:
        """How many devices share a step."""


@dataclass(frozen=True)
class Bound:
    """The most that some processors can do in a second, and how that was reckoned."""

    flops: float
    words: str


def judge_rate(
    run: RunInfo,
    cell: Rated,
    rate: float | None,
    fastest: float | None,
    *,
    hosts: Sequence[str],
    device_name: str | None,
) -> tuple[Finding, ...]:
    """Find a rate that implies more operations than can be done; ``hosts`` are the trial's.

    The ``fastest`` window is held to it too: a trial may work for a part of its time only.
    """
    each = _operations(cell)
    if rate is None or each is None:
        return ()
    bound = _bound(run, cell, hosts, device_name)
    room = THRESHOLDS["room"].value
    if bound is None:
        return ()
    when, most = "", room * bound.flops / each
    if rate <= most and fastest is not None:
        when, rate = " in its fastest window", fastest
    if rate <= most:
        return ()
    text = (
        f"{rate:,.0f} {cell.unit}/s{when} cannot be: each takes {units.scaled(each, 'FLOP')}, "
        f"together {units.scaled(each * rate, 'FLOP/s')}, and {bound.words} do at most "
        f"{units.scaled(bound.flops, 'FLOP/s')} ({room:g} times as much with the fastest known "
        "convolutions)"
    )
    return (Finding("impossible", text),)


def rate_in_words(
    run: RunInfo,
    cell: Rated,
    rate: float | None,
    *,
    hosts: Sequence[str],
    device_name: str | None,
) -> str:
    """Say what a rate implies, and the most that it is held to, or that nobody knows it."""
    each = _operations(cell)
    if rate is None or each is None:
        return ""
    implied = units.scaled(each * rate, "FLOP/s")
    bound = _bound(run, cell, hosts, device_name)
    if bound is not None:
        return f"{implied}; {bound.words} do at most {units.scaled(bound.flops, 'FLOP/s')}"
    whose = device_name if cell.factors.get("device") == "gpu" else "the processors"
    return f"{implied}; peak unknown ({whose or 'the GPU'}): the rate is held to nothing"


def _operations(cell: Rated) -> float | None:
    """Count the operations of training for one unit of work, a sample or a part of one."""
    if cell.macs is None or cell.unit not in SAMPLES:
        return None
    macs = cell.macs / work_per_sample(cell.unit, cell.factors)
    return float(OPERATIONS_PER_MAC * PASSES * macs)


def _bound(
    run: RunInfo, cell: Rated, hosts: Sequence[str], device_name: str | None
) -> Bound | None:
    precision = str(cell.factors.get("precision"))
    if cell.factors.get("device") != "gpu":
        return _of_processors(run.provenance.get("machine"), precision, hosts)
    devices = cell.scale.ranks * cell.scale.devices_per_rank
    stated = gpu_peak(device_name, _own(run.provenance.get("machine"), hosts))
    if stated is None:
        return None  # its peak is unknown: nothing is said of the rate
    peak = stated.of(precision)
    words = f"{devices} × {device_name} at {peak:.4g} TFLOP/s in {precision} ({stated.source})"
    return Bound(devices * peak * 1e12, words)


def _own(machine: Any, hosts: Sequence[str]) -> Any:
    """Give what is recorded of the host, where that alone ran the trial."""
    if isinstance(machine, Mapping) and set(hosts) == {machine.get("hostname")}:
        return machine
    return None


def _of_processors(machine: Any, precision: str, hosts: Sequence[str]) -> Bound | None:
    """Reckon what the cores of a trial's nodes can do; None where a node is not the one recorded.

    What is known of a machine is the host's, at the start of the run.
    """
    if (machine := _own(machine, hosts)) is None:
        return None
    cores = machine.get("cores") or machine.get("cpus_online")
    has = machine.get("capabilities")
    if not isinstance(cores, int) or not isinstance(has, list):
        return None
    is_narrow = precision_of(precision).activation_bytes == 2
    kinds = (*(_TILES if is_narrow else ()), *_WIDE)
    name, each = next((one for one in kinds if one[0] in has), ("", 0.0))
    if not each:
        return None
    words = (
        f"{units.counted(cores, 'core')} × {each:g} operations a cycle ({name}) × "
        f"{_CLOCK_HZ / 1e9:g} GHz"
    )
    return Bound(cores * each * _CLOCK_HZ, words)
