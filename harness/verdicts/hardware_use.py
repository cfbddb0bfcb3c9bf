"""Join samples to phases: what the hardware did while a trial's steps were timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.store.events.rank_streams import Stream
from harness.store.records import TrialRecord
from harness.store.samples.channel_titles import TITLES
from harness.store.samples.recording import Recording, Series, read_recording
from harness.verdicts.results import Reading
from harness.verdicts.timing import turns

BUSY = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
_COVERED = 0.5
"""Share of the turns that must have been read."""
_EDGE_NS = 100_000_000
"""So far apart are the quickest readings."""
_METERED_S = 9.5
"""Ten seconds, without both edges."""
_STATES = {"cpu.iowait": "waiting for storage", "cpu.steal": "stolen by the host"}


@dataclass(frozen=True)
class Span:
    """A span of time on one node's clock."""

    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True)
class NodeUse:
    """One node of a trial: its recording, its ranks and when their steps were steady."""

    node: str
    recording: Recording
    ranks: tuple[int, ...]
    steady: Span
    turns: tuple[Span, ...] = ()
    """Where it took turns with other trials, its own; what was read between them is of others."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The stretches of time that are judged."""
        return self.turns or (self.steady,)

    @property
    def seconds(self) -> float:
        """How long these are together."""
        return sum(span.seconds for span in self.spans)

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores that the ranks may use; all where that is not known."""
        for note in self.recording.noted("begins"):
            cores_named = {core for cores in (note.get("cpus") or {}).values() for core in cores}
            if cores_named:
                return tuple(sorted(cores_named))
        scopes = (series.channel.scope for series in self.recording.named("cpu.user"))
        return tuple(int(scope.partition(":")[2]) for scope in scopes)

    def rate(self, scope: str, name: str) -> float | None:
        """Give a channel's mean over the steady windows, or over the turns."""
        means = [(span.seconds, self.rate_in(span, scope, name)) for span in self.spans]
        known = [(seconds, mean) for seconds, mean in means if mean is not None]
        read_s = sum(seconds for seconds, _ in known)
        if not known or read_s < _COVERED * self.seconds:
            return None
        return sum(seconds * mean for seconds, mean in known) / read_s

    def watts(self, series: Series) -> float | None:
        """Give a channel's mean power: of turns whose ends were read, or that outlast its meter."""
        counts = series.channel.kind == "counter"
        some = (
            span
            for span in self.turns
            if span.seconds >= _METERED_S or (counts and _was_read_at_ends(series, span))
        )
        metered = replace(self, turns=tuple(some))
        least_s = _COVERED * self.seconds if counts else _METERED_S
        if self.turns and not (metered.turns and metered.seconds >= least_s):
            return None
        return metered.rate(series.channel.scope, series.channel.name)

    def peak(self, series: Series) -> float | None:
        """Give the highest reading in these stretches."""
        peaks = [series.peak(span.start_ns, span.end_ns) for span in self.spans]
        return max((peak for peak in peaks if peak is not None), default=None)

    def rate_in(self, span: Span, scope: str, name: str) -> float | None:
        """Give a channel's mean over a span."""
        series = self.recording.find(scope, name)
        return None if series is None else series.mean(span.start_ns, span.end_ns)

    def total(self, scope: str, names: Sequence[str], span: Span | None = None) -> float | None:
        """Add up some channels of one scope; None if one of them is unknown."""
        rates = [
            self.rate(scope, name) if span is None else self.rate_in(span, scope, name)
            for name in names
        ]
        return None if None in rates else sum(rate for rate in rates if rate is not None)


def _was_read_at_ends(series: Series, span: Span) -> bool:
    ends = (span.start_ns, span.end_ns)
    return all(bool((abs(series.times_ns - end) <= 2 * _EDGE_NS).any()) for end in ends)


def nodes_of(record: TrialRecord, streams: Sequence[Stream], start: int) -> list[NodeUse]:
    """Join each node's samples to the steady windows of its ranks."""
    hosts = record.hosts
    found = []
    for node in sorted(set(hosts.values())):
        recording = read_recording(record.paths.samples(node), record.paths.files)
        here = [one for one in streams if hosts.get(one.rank) == node and len(one.steps) > start]
        if recording is None or not here:
            continue
        steady = Span(
            min(int(one.start_ns[start]) for one in here),
            max(int(one.start_ns[-1] + one.elapsed_ns[-1]) for one in here),
        )
        ranks = tuple(one.rank for one in here)
        found.append(NodeUse(node, recording, ranks, steady, _turns(here[0])))
    return found


def _turns(stream: Stream) -> tuple[Span, ...]:
    """Give the inner part of each turn that counts: readings just outside of it are of others."""
    return tuple(
        Span(begin, end)
        for turn in turns.counted(stream).values()
        if (begin := turn.start_ns + _EDGE_NS) < (end := turn.end_ns - _EDGE_NS)
    )


def readings(nodes: Sequence[NodeUse]) -> tuple[Reading, ...]:
    """Give the readings of every node, rank and device in the steady windows."""
    return tuple(reading for node in nodes for reading in _readings(node))


def _readings(use: NodeUse) -> Iterator[Reading]:
    node = use.node
    cores = [series.channel.scope for series in use.recording.named("cpu.user")]
    busy = {scope: use.total(scope, BUSY) for scope in cores}
    known = [value for value in busy.values() if value is not None]
    if known:
        yield Reading(node, "node", "cores busy", "share", sum(known) / len(known))
    for name, title in _STATES.items():
        rates = [rate for scope in cores if (rate := use.rate(scope, name)) is not None]
        if rates:
            yield Reading(node, "node", title, "share", sum(rates) / len(rates))
    for scope, value in busy.items():
        if value is not None:
            yield Reading(node, scope, "busy", "share", value)
    memory = used_memory(use.recording)
    if memory is not None:
        yield Reading(node, "node", "memory", "bytes", *memory)
    for rank in use.ranks:
        used = use.total(f"rank:{rank}", ("rank.user", "rank.system"))
        if used is not None:
            yield Reading(node, f"rank:{rank}", "cores used", "1", used)
        system = use.rate(f"rank:{rank}", "rank.system")
        if system is not None:
            yield Reading(node, f"rank:{rank}", "cores used by the operating system", "1", system)
    cost = use.rate("observer", "observer.cpu")
    if cost is not None:
        yield Reading(node, "observer", "cores used", "1", cost)
    for series in use.recording.series:
        shown = TITLES.get(series.channel.name)
        if shown is None:
            continue
        title, unit = shown
        place = (series.channel.scope, series.channel.name)
        mean = use.watts(series) if unit == "W" else use.rate(*place)
        if mean is not None:
            peak = use.peak(series)
            if series.channel.name == "numa.used":
                title = series.channel.meaning or title
            yield Reading(node, series.channel.scope, title, unit, mean, peak)


def used_memory(recording: Recording) -> tuple[float, float] | None:
    """Give the mean and the most memory in use over a whole recording."""
    import numpy as np

    total, left = (recording.find("node", f"memory.{name}") for name in ("total", "available"))
    if total is None or left is None or not len(left.raw):
        return None
    used = total.values - left.values
    return float(np.nanmean(used)), float(np.nanmax(used))


def share_of_cores(nodes: Sequence[NodeUse]) -> float | None:
    """Give the share of their cores that the ranks kept busy."""
    used = cores = 0.0
    for use in nodes:
        for rank in use.ranks:
            one = use.total(f"rank:{rank}", ("rank.user", "rank.system"))
            if one is None:
                return None
            used += one
        cores += len(use.cores)
    return used / cores if cores else None


def devices(use: NodeUse) -> Iterator[str]:
    """Name the GPUs that the ranks may use; all where the recording does not say which."""
    notes = list(use.recording.noted("devices"))
    named = {scope for note in notes for scope in note.get("used", ())}
    for series in use.recording.named("gpu.utilisation"):
        if not notes or series.channel.scope in named:
            yield series.channel.scope


def gpu_share(nodes: Sequence[NodeUse], channel: str = "gpu.utilisation") -> float | None:
    """Give the share of time in which any kernel ran on the ranks' GPUs: no measure of load.

    Of the channel ``gpu.memory-busy``, that in which their memory was read or written.
    """
    rates = [use.rate(scope, channel) for use in nodes for scope in devices(use)]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def power_w(nodes: Sequence[NodeUse]) -> float | None:
    """Add up the power of the ranks' GPUs and of the processor packages, as far as counted."""
    known = []
    for use in nodes:
        for scope in devices(use):
            for name in ("gpu.energy", "gpu.power.average", "gpu.power.instant", "gpu.power"):
                series = use.recording.find(scope, name)
                if series is not None and (watts := use.watts(series)) is not None:
                    known.append(watts)
                    break
        packages = filter(_is_package, use.recording.named("energy"))
        known += [watts for series in packages if (watts := use.watts(series))]
    return sum(known) if known else None


def _is_package(series: Series) -> bool:
    """Leave out parts of a package, which it counts already."""
    return series.channel.scope.rpartition("/")[2].startswith(("package", "dram"))


def headline(nodes: Sequence[NodeUse]) -> dict[str, float]:
    """Give the figures shown beside a rate; an unknown one is absent."""
    costs = [cost for use in nodes if (cost := use.rate("observer", "observer.cpu")) is not None]
    figures = {
        "cpu": share_of_cores(nodes),
        "gpu": gpu_share(nodes),
        "gpu_memory": gpu_share(nodes, "gpu.memory-busy"),
        "power_w": power_w(nodes),
        "observer": max(costs, default=None),
    }
    return {name: value for name, value in figures.items() if value is not None}
