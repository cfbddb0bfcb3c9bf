"""Join samples to phases: what a node did from a trial's start-up to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.analysis.evidence import Mark, PhaseUse
from harness.store.samples.recording import Recording
from harness.verdicts.hardware_use import BUSY, NodeUse, Span, gpu_share, power_w

_OF_TURNS = {
    "wait": "stands still",
    "settle": "settles",
    "disturbed": "disturbed turns",
    "check": "checks",
}
_MEASURE = "measure"


def in_turns(mark: Mark, before: Sequence[Mark]) -> Mark:
    """Name a phase of a trial that took turns as what it was; turns that count are numbered."""
    if mark.name == _MEASURE:
        number = 1 + sum(one.group == _MEASURE for one in before)
        return replace(mark, name=f"turn {number}", group=_MEASURE)
    group = _OF_TURNS.get(mark.name, "")
    return replace(mark, name=group, group=group) if group else mark


def by_phase(
    trial: str, node: str, recording: Recording, marks: Sequence[Mark], zero_ns: int
) -> Iterator[PhaseUse]:
    """Give what was used in each phase; ``zero_ns`` is when the marks' time begins.

    A phase that comes several times, as turns do, is one.
    """
    ranks = tuple(
        int(series.channel.scope.partition(":")[2]) for series in recording.named("rank.user")
    )
    spans: dict[str, list[Span]] = {}
    for mark in marks:
        span = Span(zero_ns + int(mark.start_s * 1e9), zero_ns + int(mark.end_s * 1e9))
        if span.seconds > 0:
            spans.setdefault(mark.group or mark.name, []).append(span)
    for name, some in spans.items():
        turns = tuple(some) if len(some) > 1 else ()
        use = NodeUse(node, recording, ranks, some[0], turns)
        own = [use.total(f"rank:{rank}", ("rank.user", "rank.system")) for rank in ranks]
        busy = [use.total(one.channel.scope, BUSY) for one in recording.named("cpu.user")]
        yield PhaseUse(
            trial=trial,
            node=node,
            phase=name,
            seconds=use.seconds,
            rank_cores=_sum(own),
            cores_busy=_sum(busy),
            memory_bytes=_sum([use.rate(f"rank:{rank}", "rank.resident") for rank in ranks]),
            disk_bytes_per_s=_moved(use, "disk.read", "disk.written"),
            network_bytes_per_s=_moved(use, "net.received", "net.sent"),
            gpu_busy=gpu_share([use]),
            power_w=power_w([use]),
        )


def _sum(values: Sequence[float | None]) -> float | None:
    """Add up; unknown if one of them is."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _moved(use: NodeUse, *names: str) -> float | None:
    return _sum(
        [
            use.rate(series.channel.scope, name)
            for name in names
            for series in use.recording.named(name)
            if series.channel.scope != "net:lo"
        ]
    )
