"""Compute from a trial's samples the figures of what may have disturbed it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.store.events.rank_streams import Stream
from harness.store.samples.recording import Series
from harness.verdicts.hardware_use import NodeUse, Span, devices
from harness.verdicts.thresholds import HardwareEvidence
from harness.verdicts.timing import turns

_CPU = ("rank.user", "rank.system")
_RUNNING = ("cpu.user", "cpu.nice", "cpu.system")
"""Interrupts are left out: most are answers to what the ranks asked for."""
_SLOWED = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal limit",
    0x40: "hardware thermal limit",
    0x80: "external power brake",
}
"""Bits of nvmlClocksEventReasons (NVML reference manual); idle and settings are no slowdown."""
_STORING = ("rank.disk-read", "rank.disk-written")
_STORED = 1e6
"""Bytes a second from which the kernel's threads are busy with the ranks' own storage."""
_THIRD = 3
_NAMED = 3


def hardware_evidence(
    nodes: Sequence[NodeUse], streams: Sequence[Stream], start: int
) -> list[HardwareEvidence]:
    """Give the figures of each node for ``judge_hardware``."""
    return [_hardware(use, streams, start) for use in nodes]


def _hardware(use: NodeUse, streams: Sequence[Stream], start: int) -> HardwareEvidence:
    cores = [f"core:{core}" for core in use.cores]
    steal = [use.rate(core, "cpu.steal") for core in cores]
    known = [rate for rate in steal if rate is not None]
    here = [one for one in streams if one.rank in use.ranks]
    preempted = [use.rate(f"rank:{rank}", "rank.preempted") for rank in use.ranks]
    seen = HardwareEvidence(
        node=use.node,
        seconds=use.seconds,
        cores=len(cores),
        foreign_cores=turns.foreign_cores(here) if use.turns else foreign_cores(use),
        neighbours=() if use.turns else _neighbours(use),
        steal=sum(known) / len(known) if known else None,
        pressure=use.rate("node", "pressure.cpu.some"),
        memory_pressure=use.rate("node", "pressure.memory.full"),
        preempted_per_s=sum(rate for rate in preempted if rate is not None),
        foreign_contexts=_foreign_contexts(use),
        quota=max(_quota(use), default=None),
        heat=tuple(_heat(use)),
        slowed=dict(_slowed(use)),
        falls=tuple(_falls(use)),
    )
    return _with_stall(seen, use, here, start)


def foreign_cores(use: NodeUse, span: Span | None = None) -> float | None:
    """Say how many of the ranks' cores others kept busy: all work there less what is known.

    Of ranks that use storage, threads of the kernel do a part of the work: 0.1 cores at 2.5 GB/s.
    """
    span = span or use.steady
    busy = [use.total(f"core:{core}", _RUNNING, span) for core in use.cores]
    own = [use.total(f"rank:{rank}", _CPU, span) for rank in use.ranks]
    if not busy or None in busy or None in own:
        return None
    rest = sum(one or 0.0 for one in busy) - sum(one or 0.0 for one in own)
    everywhere = {series.channel.scope for series in use.recording.named("cpu.user")}
    if len(use.cores) == len(everywhere):
        rest -= use.rate_in(span, "observer", "observer.cpu") or 0.0
        rest -= use.rate_in(span, "observer", "observer.session") or 0.0
    if sum(use.total(f"rank:{rank}", _STORING, span) or 0.0 for rank in use.ranks) > _STORED:
        rest -= use.rate_in(span, "node", "neighbours.kernel") or 0.0
    return max(0.0, rest)


def _neighbours(use: NodeUse) -> tuple[tuple[str, float], ...]:
    """Name the processes of others that used most of the node's cores in the steady windows."""
    used: dict[str, float] = {}
    for note in use.recording.noted("neighbours"):
        begin = max(note["t"] - int(note["seconds"] * 1e9), use.steady.start_ns)
        shared_s = (min(note["t"], use.steady.end_ns) - begin) / 1e9
        for pid, name, cores in note["top"]:
            if shared_s > 0:
                who = f"{name} (process {pid})"
                used[who] = used.get(who, 0.0) + cores * shared_s / use.steady.seconds
    busiest = sorted(used.items(), key=lambda one: -one[1])
    return tuple(busiest[:_NAMED])


def _foreign_contexts(use: NodeUse) -> int | None:
    peaks = [
        peak
        for series in _of_ranks(use, "gpu.processes.foreign")
        if (peak := use.peak(series)) is not None
    ]
    return int(max(peaks)) if peaks else None


def _of_ranks(use: NodeUse, name: str) -> Iterator[Series]:
    """Give a channel of the GPUs that the ranks may use."""
    used = set(devices(use))
    return (series for series in use.recording.named(name) if series.channel.scope in used)


def _quota(use: NodeUse) -> Iterator[tuple[float, float]]:
    """Give, for each group with a quota, the share of its periods held back, and its cores."""
    for series in use.recording.named("group.periods"):
        scope = series.channel.scope
        periods = use.rate(scope, "group.periods")
        limited = use.rate(scope, "group.throttled-periods")
        if periods and limited is not None:
            yield limited / periods, use.rate(scope, "group.quota") or 0.0


def _heat(use: NodeUse) -> Iterator[tuple[str, int]]:
    cores = {f"core:{core}" for core in use.cores}
    for name in ("throttled.core", "throttled.package"):
        for series in use.recording.named(name):
            rate = use.rate(series.channel.scope, name)
            if rate and series.channel.scope in cores:
                yield series.channel.scope, round(rate * use.seconds)


def _slowed(use: NodeUse) -> Iterator[tuple[str, float]]:
    """Give, for each reason, the share of readings in which a GPU's clocks were held down."""
    import numpy as np

    for series in _of_ranks(use, "gpu.slowed"):
        times = series.times_ns
        inside = [(times >= one.start_ns) & (times <= one.end_ns) for one in use.spans]
        flags = series.raw[np.any(inside, axis=0) & (series.raw >= 0)]
        for bit, reason in _SLOWED.items():
            share = float(((flags & bit) != 0).mean()) if len(flags) else 0.0
            if share:
                yield f"{series.channel.scope}: {reason}", share


def _falls(use: NodeUse) -> Iterator[tuple[str, float, float]]:
    """Give the clocks that were lower in the last third of the steady windows than in the first."""
    third = (use.steady.end_ns - use.steady.start_ns) // _THIRD
    for series in _of_ranks(use, "gpu.clock.sm"):
        first = series.mean(use.steady.start_ns, use.steady.start_ns + third)
        last = series.mean(use.steady.end_ns - third, use.steady.end_ns)
        if first and last is not None and last < first:
            yield series.channel.scope, first, last


def _with_stall(
    seen: HardwareEvidence, use: NodeUse, here: Sequence[Stream], start: int
) -> HardwareEvidence:
    """Add the longest window in which nothing seemed to move, and what the hardware did in it."""
    longest = max(here, key=lambda one: int(one.elapsed_ns[start:].max()), default=None)
    if longest is None:
        return seen
    at = start + int(longest.elapsed_ns[start:].argmax())
    span = Span(int(longest.start_ns[at]), int(longest.start_ns[at]) + int(longest.elapsed_ns[at]))
    used = {
        rank: rate
        for rank in use.ranks
        if (rate := use.total(f"rank:{rank}", _CPU, span)) is not None
    }
    gpus = {
        series.channel.scope: rate
        for series in _of_ranks(use, "gpu.utilisation")
        if (rate := series.mean(span.start_ns, span.end_ns)) is not None
    }
    return replace(
        seen,
        stall_s=span.seconds,
        stall_at=at,
        window_s=float(sorted(longest.elapsed_ns[start:])[len(longest.elapsed_ns[start:]) // 2])
        / 1e9,
        stalled_cores=used,
        stalled_gpus=gpus,
    )
