"""The collector: it records all that can be read between a trial's two ends."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness import plugins
from harness.collect.lane import SHORTEST_S, Counts, Group, Lane
from harness.collect.own_cost import OwnCost
from harness.collect.recorder import Recording
from harness.collect.sampler import Observed, Sampler
from harness.errors import Unavailable
from harness.machine.small_files import boot_id

OBSERVER_HZ = 1.0
MOST_HZ = 1000.0
_NO_THREAD = "no thread could be started for it; see `ulimit -u`"


@dataclass(frozen=True)
class Source:
    """A source as its module declares it."""

    name: str
    module: Any
    hz: float
    blocks: bool
    shortest_s: float


@dataclass(frozen=True)
class FoundSource:
    """Every source there is, and why some cannot be used at all."""

    sources: tuple[Source, ...]
    broken: Mapping[str, str] = field(default_factory=dict)


def find(rates: Mapping[str, float]) -> FoundSource:
    """Import the sources; ``rates`` (readings per second) go before their own, 0 is off."""
    sources, broken = [], {}
    for entry, module in plugins.loaded("samplers"):
        if module is None:
            broken[entry.name] = str(entry.problem)
            continue
        try:
            source = _source(entry.name, module, rates)
        except (TypeError, ValueError) as problem:  # it declares what is no number
            broken[entry.name] = f"{type(problem).__name__}: {problem}"
            continue
        if source.hz > 0:
            sources.append(source)
        else:
            broken[entry.name] = "switched off"
    return FoundSource(tuple(sources), broken)


def _source(name: str, module: Any, rates: Mapping[str, float]) -> Source:
    most = float(getattr(module, "MOST_HZ", MOST_HZ))
    hz = min(most, rates.get(name, rates.get("all", float(module.HZ))))
    shortest_s = float(getattr(module, "SHORTEST_S", SHORTEST_S))
    return Source(name, module, hz, bool(module.BLOCKS), shortest_s)


@dataclass(frozen=True)
class RecordingResult:
    """What a recording came to."""

    problem: str | None = None
    """Why it is missing or incomplete."""
    stand_ins: tuple[str, ...] = ()
    """Devices that only pretend to be what they are called."""


class Collector:
    """Observes one trial after another; sources are imported once, and opened once if they last."""

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        self._recording: Recording | None = None
        self._problem: str | None = "it was not asked for"
        self._found: dict[tuple[tuple[str, float], ...], FoundSource] = {}
        self._kept: dict[Path, dict[str, Sampler]] = {}
        """By where /proc and /sys are."""
        self._lock = threading.Lock()
        """Of the lanes, and of whether they are to stand still: each hears every word."""
        self._stands_still = False

    def prepare(self) -> None:
        """Import the sources beside whatever else starts, so that no trial waits for it."""
        find({})

    def begin(self, path: Path, observed: Observed, rates: Mapping[str, float]) -> None:
        """Start to record into a file; returns at once, the sources are opened by their threads.

        Whatever goes wrong costs readings, never the trial; ``end`` says it.
        """
        self._problem, self._stands_still = None, False
        try:
            recording = Recording(
                path,
                node=socket.gethostname(),
                pid=os.getpid(),
                boot=boot_id(observed.root) or None,
                clock="monotonic",
                cpus=os.cpu_count(),
            )
        except OSError as problem:
            self._problem = f"{path}: {problem.strerror}"
            return
        self._recording = recording
        recording.note(
            "begins",
            ranks=_facts_of(observed.ranks),
            cpus=_facts_of(observed.cpus),
            devices=_facts_of(observed.devices),
        )
        counts = Counts()
        self._lanes = [
            Lane(
                "kernel", recording, counts, partial(self._open, recording, counts, observed, rates)
            )
        ]
        if not _has_started(self._lanes[0]):
            self._problem, self._recording, self._lanes = _NO_THREAD, None, []
            recording.close()

    def _open(
        self,
        recording: Recording,
        counts: Counts,
        observed: Observed,
        rates: Mapping[str, float],
    ) -> Iterator[Group]:
        """Open what never blocks; give each other source a thread."""
        key = tuple(sorted(rates.items()))
        if key not in self._found:
            self._found[key] = find(rates)
        found = self._found[key]
        kept = self._kept.setdefault(observed.root, {})
        for name, reason in found.broken.items():
            recording.note("unavailable", source=name, reason=reason)
        for source in found.sources:
            if source.blocks:
                opening = partial(_opened, recording, (source,), observed, kept)
                turn = len(self._lanes) / (len(found.sources) + 1)
                lane = Lane(
                    source.name,
                    recording,
                    counts,
                    opening,
                    turn=turn,
                    shortest_s=source.shortest_s,
                )
                if _has_started(lane):
                    self._join(lane)
                else:
                    recording.note("unavailable", source=source.name, reason=_NO_THREAD)
        yield Group("observer", OwnCost(recording, counts), int(1e9 / OBSERVER_HZ))
        quick = [one for one in found.sources if not one.blocks]
        yield from _opened(recording, quick, observed, kept)

    def _join(self, lane: Lane) -> None:
        with self._lock:
            self._lanes.append(lane)
            if self._stands_still:
                lane.stand_still()

    def stand_still(self) -> None:
        """Read nothing while the trial is stopped: its machine is another's then."""
        with self._lock:
            self._stands_still = True
            for lane in filter(Lane.is_alive, self._lanes):
                lane.stand_still()

    def go_on(self) -> None:
        """Read on."""
        with self._lock:
            self._stands_still = False
            for lane in filter(Lane.is_alive, self._lanes):
                lane.go_on()

    def end(self) -> RecordingResult:
        """Read once more, and close the file."""
        if self._recording is None:
            return RecordingResult(self._problem)
        recording, self._recording = self._recording, None
        # The first lane starts the others: it must have ended before they are all known.
        for lane in self._lanes[:1]:
            lane.stop()
            lane.ended()
        for lane in self._lanes[1:]:
            lane.stop()
        hanging = [lane.source for lane in self._lanes if not lane.ended()]
        self._lanes = []
        for source in hanging:
            recording.note("unavailable", source=source, reason="its last reading never came back")
        recording.anchor()
        recording.note("ends", hanging=hanging)
        recording.close()
        problem = recording.problem
        reason = recording.fault if problem is None else f"recording stopped: {problem.strerror}"
        return RecordingResult(reason, tuple(recording.stand_ins))


def _has_started(lane: Lane) -> bool:
    """Start a thread, unless this user may have no more of them (``ulimit -u``)."""
    try:
        lane.start()
    except RuntimeError:
        return False
    return True


def _opened(
    recording: Recording,
    sources: Sequence[Source],
    observed: Observed,
    kept: dict[str, Sampler],
) -> Iterator[Group]:
    for source in sources:
        try:
            # taken out: a thread that still hangs in one shares it with nobody
            sampler = kept.pop(source.name, None) or source.module.open(observed)
        except (Unavailable, OSError) as problem:
            recording.note("unavailable", source=source.name, reason=str(problem))
            continue
        except Exception as problem:  # noqa: BLE001 a source may fail in any way, the others go on
            reason = f"{type(problem).__name__}: {problem}"
            recording.note("unavailable", source=source.name, reason=reason)
            continue
        if notes := getattr(sampler, "notes", None):
            recording.note("devices", source=source.name, **notes)
        stand_in = getattr(sampler, "stand_in", None)
        if stand_in is not None:
            recording.note("stand-in", source=source.name, device=stand_in)
            recording.stand_ins.append(stand_in)
        lasts = getattr(sampler, "lasts", False)
        yield Group(source.name, sampler, int(1e9 / source.hz), kept if lasts else None)


def _facts_of(values: Mapping[int, Any]) -> dict[str, Any]:
    """Write a mapping by rank as JSON can."""
    return {str(rank): value for rank, value in values.items()}
