"""Record each source on its own drift-free tick, every reading appended at once.

Sources that may keep a reader waiting (a driver, a network file system) each have a thread, all
others share one; a slow GPU thus never delays the kernel's counters, and neither delays the agent,
which sleeps in its own thread. A tick that comes too late is dropped and counted, never repeated to
catch up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.collect.sampler import Sampler
from harness.store.samples import samples_format
from harness.store.samples.samples_format import Channel, Declared

LATE = 0.1
"""A tick that begins later than this share of its period is counted as late."""
_LONGEST_END_S = 2.0
_GRID_NS = 100_000_000
SHORTEST_S = 0.1
"""One tick of the fastest source."""


class Recording:
    """An open samples file; frames of all threads go in whole."""

    def __init__(self, path: Path, **facts: Any) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o644)
        self._lock = threading.Lock()
        self._groups = 0
        self.closed = False
        self.problem: OSError | None = None
        """Why nothing is written any more: a full disk, for example."""
        self.begun_ns = time.monotonic_ns()
        self.fault: str | None = None
        """What ended one of the threads."""
        self.bytes = 0
        self.stand_ins: list[str] = []
        """Devices that their source found to be pretended."""
        self.append(samples_format.header(**facts))
        self.anchor()

    def append(self, data: bytes) -> None:
        """Write frames; after the first failure nothing more, so that what is there stays whole."""
        with self._lock:
            if self.closed or self.problem is not None:
                return
            self.bytes += len(data)
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError as problem:
                self.problem = problem

    def anchor(self) -> None:
        """Tie the node's monotonic clock to its wall clock."""
        self.append(samples_format.anchor(time.monotonic_ns(), time.time_ns(), time.monotonic_ns()))

    def group(self, source: str, period_ns: int, first_ns: int, channels: Sequence[Channel]) -> int:
        """Declare a group; give its number."""
        with self._lock:
            number = self._groups
            self._groups += 1
        self.append(
            samples_format.declare(Declared(number, source, period_ns, first_ns, tuple(channels)))
        )
        return number

    def note(self, what: str, **facts: Any) -> None:
        """Write down something that happened."""
        self.append(samples_format.note(what, t=time.monotonic_ns(), **facts))

    def close(self) -> None:
        """End the file; what a forgotten thread still reads goes nowhere."""
        with self._lock:
            if not self.closed:
                self.closed = True
                os.close(self._descriptor)


@dataclass
class Counts:
    """How well the ticks were kept; the observer's own channels."""

    ticks: int = 0
    late: int = 0
    missed: int = 0


@dataclass
class Group:
    """One source at its rate."""

    source: str
    sampler: Sampler
    period_ns: int
    kept: dict[str, Sampler] | None = None
    """Where a sampler that lasts waits for the next trial."""
    number: int = -1
    first_ns: int = 0
    tick: int = 0
    failures: int = 0
    due_ns: int = 0
    """When the next reading is due."""
    width: int = 0
    news: Callable[[], Sequence[Mapping[str, Any]]] | None = None
    """What the sampler has to tell beside numbers, if it ever has."""

    def begin(self, number: int, first_ns: int) -> None:
        """Take a place in the file, and a first moment."""
        self.number = number
        self.first_ns = self.due_ns = first_ns
        self.width = len(self.sampler.channels)
        self.news = getattr(self.sampler, "news", None)

    def end(self) -> None:
        """Close the sampler, unless the next trial reads on with it; never one that failed."""
        if self.kept is None or self.failures:
            self.sampler.close()
        else:
            self.kept[self.source] = self.sampler

    def pass_over(self, ticks: int) -> None:
        """Go on to a later tick."""
        self.tick += ticks
        self.due_ns += ticks * self.period_ns


class Lane(threading.Thread):
    """One thread that keeps the ticks of some groups."""

    def __init__(
        self,
        name: str,
        recording: Recording,
        counts: Counts,
        opening: Callable[[], Iterable[Group]],
        *,
        turn: float = 0.0,
        shortest_s: float = SHORTEST_S,
    ) -> None:
        super().__init__(name=f"samples-{name}", daemon=True)
        self.source = name
        self._recording = recording
        self._counts = counts
        self._opening = opening
        self._turn = turn
        self._shortest_s = shortest_s
        # A lock that nobody releases until the end: waiting for it costs less than for an Event.
        self._stopping = threading.Lock()
        self._stopping.acquire()

    def run(self) -> None:
        """Record until asked to stop; an error of the recorder is reported with the trial."""
        try:
            self._record()
        except Exception as fault:
            self._recording.fault = f"{type(fault).__name__}: {fault}"
            raise

    def _record(self) -> None:
        """Open the sources, then read each whenever it is due.

        A trial that is over before the fastest source would tick a second time has nothing to tell,
        and is spared the opening of all sources.
        """
        if self._stopping.acquire(timeout=self._shortest_s):
            self._recording.note("too-short", seconds=self._shortest_s)
            return
        groups = list(self._opening())
        now = time.monotonic_ns()
        for group in groups:
            first_ns = self._first_ns(now, group.period_ns)
            channels = group.sampler.channels
            number = self._recording.group(group.source, group.period_ns, first_ns, channels)
            group.begin(number, first_ns)
        while groups:
            due_ns = min([group.due_ns for group in groups])
            if self._stopping.acquire(timeout=max(0.0, (due_ns - time.monotonic_ns()) / 1e9)):
                break
            self._recording.append(self._read_due(groups))
        # The last state counts most of all: what grew since the last tick, and how it ended.
        self._recording.append(self._read(groups))
        for group in groups:
            group.end()

    def _first_ns(self, now: int, period_ns: int) -> int:
        """Begin on the recording's own grid; threads take turns, as they share an interpreter.

        The grid is fine: what is read every five seconds is first read at once all the same.
        """
        begun, grid_ns = self._recording.begun_ns, min(period_ns, _GRID_NS)
        ticks = -(-(now - begun) // grid_ns)
        return begun + ticks * grid_ns + int(self._turn * grid_ns)

    def _read_due(self, groups: Sequence[Group]) -> bytes:
        now = time.monotonic_ns()
        due = [group for group in groups if group.due_ns <= now]
        counts = self._counts
        for group in due:
            late_ns = now - group.due_ns
            counts.ticks += 1
            if late_ns > LATE * group.period_ns:
                counts.late += 1
                skipped = late_ns // group.period_ns
                counts.missed += skipped
                group.pass_over(skipped)
        return self._read(due)

    def _read(self, groups: Sequence[Group]) -> bytes:
        written = []
        before = time.monotonic_ns()
        for group in groups:
            raw = self._reading(group)
            after = time.monotonic_ns()
            written.append(samples_format.sample(group.number, group.tick, before, after, raw))
            group.pass_over(1)
            if group.news is not None:
                for facts in group.news():
                    self._recording.note(group.source, **facts)
            before = time.monotonic_ns()
        return b"".join(written)

    def _reading(self, group: Group) -> Sequence[int]:
        """Read one source; whatever goes wrong in it is a gap, noted the first time."""
        width = group.width
        try:
            raw = group.sampler.read()
            if len(raw) == width:
                return raw
            reason = f"{len(raw)} numbers for {width} channels"
        except Exception as problem:  # noqa: BLE001 a source may fail in any way, the others go on
            reason = f"{type(problem).__name__}: {problem}"
        group.failures += 1
        if group.failures == 1:
            self._recording.note("failing", source=group.source, reason=reason)
        return [samples_format.NOT_READ] * width

    def stop(self) -> None:
        """Ask the thread to read once more and end."""
        self._stopping.release()

    def ended(self) -> bool:
        """Wait for the end; False if a source hangs, which is then left to itself."""
        self.join(_LONGEST_END_S)
        return not self.is_alive()
